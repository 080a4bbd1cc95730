//! Plans that are run beside each other until it is clear which is faster.

use std::time::{Duration, Instant};

use xla_gym_engine::{EngineError, Session, protocol::InputSet};
use xla_gym_oracle::io_bytes;
use xla_gym_recipe::{Control, Paired, Timing};

use crate::{
    error::OptimizeError,
    plan::{Judge, Plan},
    stats::{Blocks, Speedup, is_time_to_look, series, speedup},
    track::{Contestant, Track},
};

/// How much the luck of a process makes of run times, before any is seen: a guess, which counts as two
/// measurements.
pub const LUCK: f64 = 0.01;

/// The same of a single compilation.
const COMPILE_LUCK: f64 = 0.05;

/// What is surely smaller than this is no difference worth looking at any longer.
const SAME: f64 = 0.015;

/// A block lasts as long as it took to compile everything, and this long at least.
const BLOCK: Duration = Duration::from_millis(500);

/// And has so many rounds at least, unless the time is over.
const ROUNDS: usize = 5;

/// How often everything is compiled and started anew, at most.
const BLOCKS: u32 = 40;

/// Times of several plans.
pub struct Times {
    /// Of runs, by plan.
    pub run: Vec<Blocks>,
    /// To compile, by plan.
    pub compile: Vec<Blocks>,
}

impl Times {
    /// How much faster a plan runs than the first; `control` is the place of the first once more, if it ran
    /// twice.
    pub fn run_speedup(&self, plan: usize, control: Option<usize>) -> Speedup {
        let control = control.map(|control| &self.run[control]);
        speedup(&self.run[0], &self.run[plan], control, LUCK)
    }

    /// The same for its compilation.
    pub fn compile_speedup(&self, plan: usize, control: Option<usize>) -> Speedup {
        let control = control.map(|control| &self.compile[control]);
        speedup(&self.compile[0], &self.compile[plan], control, COMPILE_LUCK)
    }
}

/// A race of several programs.
pub struct Race<'a> {
    /// Where their processes come from.
    pub session: Session,
    /// Those that run, the first being what the others are compared with.
    pub contestants: Vec<&'a Contestant>,
    /// On which inputs.
    pub inputs: &'a InputSet,
    /// How many fit into memory together; the others run one after the other.
    pub at_a_time: usize,
    /// How long it may take.
    pub patience: Duration,
    /// Whether somebody wants it to end.
    pub stop: &'a dyn Fn() -> bool,
}

impl Race<'_> {
    /// Runs all in turn, started anew again and again, until `enough` says so or the time is over. An
    /// inner error is the compiler's.
    pub fn run(
        mut self,
        enough: &dyn Fn(&Times) -> bool,
    ) -> Result<Result<Times, String>, EngineError> {
        let begin = Instant::now();
        let count = self.contestants.len();
        let mut times =
            Times { run: vec![Blocks::new(); count], compile: vec![Blocks::new(); count] };
        for block in 0..BLOCKS {
            let so_far = begin.elapsed();
            // As long as the last ones took on average, another one would.
            let late = block > 0 && so_far + so_far / block > self.patience;
            let look = is_time_to_look(block as usize);
            if late || block > 0 && ((self.stop)() || look && enough(&times)) {
                break;
            }
            let order: Vec<usize> =
                (0..count).map(|index| (index + block as usize) % count).collect();
            for some in order.chunks(self.at_a_time.clamp(1, count)) {
                let before = Instant::now();
                let mut track = Track::new(&mut self.session)?;
                for &index in some {
                    if let Err(reason) = track.add(self.contestants[index], self.inputs)? {
                        return Ok(Err(reason));
                    }
                }
                let left = self.patience.saturating_sub(begin.elapsed());
                let time = before.elapsed().max(BLOCK).min(left);
                let least = if left.is_zero() { 1 } else { ROUNDS };
                let lanes: Vec<usize> = (0..track.len()).collect();
                if let Err(reason) = track.race(&lanes, least, time, self.stop) {
                    return Ok(Err(reason));
                }
                for (lane, &index) in some.iter().enumerate() {
                    let lane = track.lane(lane);
                    times.run[index].push(std::mem::take(&mut lane.rounds));
                    times.compile[index].push(vec![lane.compile_nanos]);
                }
            }
        }
        Ok(Ok(times))
    }

    /// Runs two programs, the first once more as a control, until it is clear which is faster, that there
    /// is no difference, or the time is over.
    pub fn run_until_clear(self, clock: Clock) -> Result<Result<Timing, String>, EngineError> {
        let enough = |times: &Times| {
            let found = match clock {
                Clock::Run => times.run_speedup(1, Some(2)),
                Clock::Compile => times.compile_speedup(1, Some(2)),
            };
            found.is_clear() || found.is_less_than(SAME)
        };
        Ok(self.run(&enough)?.map(|times| {
            let run = paired(&times.run, times.run_speedup(1, Some(2)), times.run_speedup(2, None));
            let compile = paired(
                &times.compile,
                times.compile_speedup(1, Some(2)),
                times.compile_speedup(2, None),
            );
            Timing { run, compile }
        }))
    }
}

/// Which times are measured until they are clear.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Of runs.
    Run,
    /// Of compilations.
    Compile,
}

/// Measures a plan beside the default, and beside a second compilation of the default as a control.
pub fn measure(
    judge: &Judge,
    plan: &Plan,
    inputs: &InputSet,
    patience: Duration,
    clock: Clock,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Timing, String>, OptimizeError> {
    let (default, plan) = match (
        Contestant::of_plan(judge, &Plan::default_way(judge.spec()))?,
        Contestant::of_plan(judge, plan)?,
    ) {
        (Ok(default), Ok(plan)) => (default, plan),
        (Err(reason), _) | (_, Err(reason)) => return Ok(Err(reason)),
    };
    let race = Race {
        session: judge.emitted()?,
        contestants: vec![&default, &plan, &default],
        inputs,
        at_a_time: judge.at_a_time(),
        patience,
        stop,
    };
    Ok(race.run_until_clear(clock)?)
}

/// Which of two programs is faster, on the same inputs.
pub fn compare_speed(
    mut first: Session,
    second: &mut Session,
    inputs: &InputSet,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Timing, String>, EngineError> {
    let (one, other) = (Contestant::of_program(&mut first)?, Contestant::of_program(second)?);
    let contestants = vec![&one, &other, &one];
    let bytes = io_bytes(&first.signature()?).max(1);
    let limit = first.engine().config().limits.memory_bytes;
    let at_a_time = usize::try_from(limit / bytes).unwrap_or(usize::MAX);
    let race = Race { session: first, contestants, inputs, at_a_time, patience, stop };
    race.run_until_clear(Clock::Run)
}

fn paired(times: &[Blocks], found: Speedup, control: Speedup) -> Paired {
    Paired {
        default: series(&times[0].concat()),
        result: series(&times[1].concat()),
        speedup: found.ratio,
        interval: found.interval,
        controls: vec![Control { speedup: control.ratio, interval: control.interval }],
        within_noise: !found.is_clear(),
    }
}
