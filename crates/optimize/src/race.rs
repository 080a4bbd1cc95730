//! Programs that are run in turn, so that their times can be compared.

use std::time::{Duration, Instant};

use xla_gym_engine::{
    Compiled, EngineError, Scratch,
    protocol::{InputSet, Observe},
};
use xla_gym_recipe::{Control, Paired, Timing};
use xla_gym_score::{NORMALISING, Start};

use crate::{
    error::OptimizeError,
    plan::{Judge, Plan},
    stats::{series, speedup},
};

/// A round of one program lasts at least this long, so that the clock is fine enough.
const ROUND: Duration = Duration::from_millis(4);

/// The most runs of a round.
const MOST_RUNS: u32 = 50;

/// A program that takes longer runs once to warm up, and once is a round.
const LONG: Duration = Duration::from_secs(1);

/// A compiled plan in a process of its own.
pub struct Runner {
    scratch: Scratch,
    compiled: Compiled,
    /// Runs of a round.
    runs: u32,
    /// Whether one takes long.
    is_long: bool,
    /// Nanoseconds to compile, the passes of the order included.
    pub compile_nanos: f64,
    /// Nanoseconds of a run, by round.
    pub rounds: Vec<f64>,
    /// Why it runs no more.
    pub broken: Option<String>,
}

impl Runner {
    /// Compiles a plan, and runs it twice to warm it up. An inner error is the compiler's.
    pub fn new(
        judge: &Judge,
        plan: &Plan,
        inputs: &InputSet,
    ) -> Result<Result<Runner, String>, OptimizeError> {
        let order_nanos = order_nanos(judge, plan)?;
        let mut scratch = match judge.session(plan) {
            Ok(mut session) => session.scratch()?,
            Err(error @ OptimizeError::Lost(_)) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error),
        };
        let mut start = || {
            let compiled = scratch.compile(&plan.disabled)?;
            scratch.make_inputs(&compiled, inputs)?;
            let (mut times, _) = scratch.execute(&compiled, 1, false)?;
            if times.iter().all(|nanos| Duration::from_nanos(*nanos) < LONG) {
                times = scratch.execute(&compiled, 1, false)?.0;
            }
            Ok((compiled, times))
        };
        let (compiled, times) = match start() {
            Ok(started) => started,
            Err(error @ EngineError::Interrupted) => return Err(error.into()),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let once = times.last().copied().unwrap_or(1).max(1);
        let runs = (ROUND.as_nanos() as u64 / once + 1).min(MOST_RUNS.into()) as u32;
        let compile_nanos = order_nanos + compiled.nanos as f64;
        let is_long = Duration::from_nanos(once) >= LONG;
        let rounds = Vec::new();
        Ok(Ok(Runner { scratch, compiled, runs, is_long, compile_nanos, rounds, broken: None }))
    }

    /// One round.
    fn round(&mut self) {
        if self.broken.is_some() {
            return;
        }
        match self.scratch.execute(&self.compiled, self.runs, false) {
            Ok((times, _)) => {
                let times: Vec<f64> = times.into_iter().map(|nanos| nanos as f64).collect();
                self.rounds.push(crate::stats::median(&times));
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    /// The middle of its rounds.
    pub fn median(&self) -> f64 {
        if self.broken.is_some() { f64::INFINITY } else { crate::stats::median(&self.rounds) }
    }
}

/// Runs all in turn, each time in another order, until the rounds are over or `enough` says so.
pub fn race(runners: &mut [&mut Runner], rounds: usize, enough: &dyn Fn() -> bool) {
    let least = if runners.iter().any(|runner| runner.is_long) { 1 } else { 5 };
    for round in 0..rounds {
        // A few rounds always, without which there is nothing to compare.
        if round >= least && enough() {
            break;
        }
        let count = runners.len();
        for index in 0..count {
            runners[(index + round) % count].round();
        }
    }
}

/// Time of the passes of a plan, the normalising ones included.
fn order_nanos(judge: &Judge, plan: &Plan) -> Result<f64, OptimizeError> {
    if plan.passes.is_empty() {
        return Ok(0.0);
    }
    let engine = judge.world.engine();
    let mut passes = match judge.world.start() {
        Start::Normalised => engine.passes(NORMALISING.iter().copied())?,
        Start::Emitted => Vec::new(),
    };
    passes.extend(&plan.passes);
    let mut session = judge.emitted()?;
    let mut nanos = 0;
    for pass in passes {
        match session.apply(pass, Observe::NOTHING) {
            Ok(applied) => nanos += applied.nanos,
            Err(EngineError::Pass(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(nanos as f64)
}

/// How often everything is compiled and started anew for a measurement, at most.
const INSTANCES: u32 = 6;

/// Series by program, by block: see [`speedup`].
type Blocks = Vec<Vec<Vec<f64>>>;

/// Runs plans in turn, several times anew, within `patience`. Run times and compile times. Where not all
/// fit into memory together, one at a time.
pub fn run_in_turn(
    judge: &Judge,
    plans: &[&Plan],
    inputs: &InputSet,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Result<(Blocks, Blocks), String>, OptimizeError> {
    let begin = Instant::now();
    let mut run_times: Blocks = vec![Vec::new(); plans.len()];
    let mut compile_times: Blocks = vec![Vec::new(); plans.len()];
    for instance in 0..INSTANCES {
        let so_far = begin.elapsed();
        // As long as the last one took on average, another one would.
        if instance > 0 && (so_far + so_far / instance > patience || stop()) {
            break;
        }
        let order: Vec<usize> =
            (0..plans.len()).map(|index| (index + instance as usize) % plans.len()).collect();
        for some in order.chunks(judge.at_a_time().min(plans.len())) {
            let before = begin.elapsed();
            let mut runners = Vec::new();
            for &index in some {
                match Runner::new(judge, plans[index], inputs)? {
                    Ok(runner) => runners.push((index, runner)),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
            runners.sort_by_key(|(index, _)| *index);
            let share = patience.mul_f64(some.len() as f64 / plans.len() as f64) / INSTANCES;
            let until = before + (begin.elapsed() - before).max(share);
            let mut racing: Vec<&mut Runner> =
                runners.iter_mut().map(|(_, runner)| runner).collect();
            race(&mut racing, 60, &|| begin.elapsed() > until || stop());
            for (index, runner) in runners {
                if let Some(reason) = runner.broken {
                    return Ok(Err(reason));
                }
                run_times[index].push(runner.rounds);
                compile_times[index].push(vec![runner.compile_nanos]);
            }
        }
    }
    Ok(Ok((run_times, compile_times)))
}

/// Measures a plan beside the default and two more compilations of the default, all in turn.
pub fn measure(
    judge: &Judge,
    plan: &Plan,
    inputs: &InputSet,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Timing, String>, OptimizeError> {
    let default = Plan::default_way();
    let plans = [&default, plan, &default, &default];
    let measured = run_in_turn(judge, &plans, inputs, patience, stop)?;
    Ok(measured.map(|(run, compile)| Timing { run: paired(&run), compile: paired(&compile) }))
}

/// The first series is the default, the second the result, the others are controls.
fn paired(times: &[Vec<Vec<f64>>]) -> Paired {
    let (ratio, interval) = speedup(&times[0], &times[1]);
    let controls: Vec<Control> = times[2..]
        .iter()
        .map(|control| {
            let (speedup, interval) = speedup(&times[0], control);
            Control { speedup, interval }
        })
        .collect();
    let noise = controls.iter().map(|control| control.speedup.ln().abs()).fold(0.0, f64::max);
    let spans_one = interval.0 <= 1.0 && interval.1 >= 1.0;
    let few = times[0].iter().map(Vec::len).sum::<usize>() < 3;
    Paired {
        default: series(&times[0].concat()),
        result: series(&times[1].concat()),
        speedup: ratio,
        interval,
        // Of one or two measurements nothing can be said.
        within_noise: spans_one || ratio.ln().abs() <= noise || few,
        controls,
    }
}
