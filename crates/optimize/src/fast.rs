//! Looks for what is fast, by the clock.
//!
//! Neither counts nor estimates tell how fast a program is, so candidates of many kinds are compiled
//! and run beside the default, the best are changed a little and run again.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::protocol::InputSet;
use xla_gym_profile::Figures;
use xla_gym_search::Candidate;

use crate::{
    error::OptimizeError,
    objective::Objective,
    plan::{Judge, Judged, Plan},
    race::{LUCK, Race},
    stats::{median, speedup},
    track::{Contestant, Track},
    vary::Variation,
    watch::Watch,
};

/// A first heat has so many rounds at least, and lasts so long.
const HEAT: usize = 5;
const HEAT_TIME: Duration = Duration::from_millis(150);

/// So many plans run beside one compilation of the default, at most; then everything begins anew.
const BESIDE: usize = 12;

/// How many stay in the race.
const KEPT: usize = 5;

/// What is known of a plan that was run.
struct Entry {
    judged: Judged,
    contestant: Contestant,
    value: f64,
}

/// A race against the clock.
pub struct FastSearch<'a> {
    /// Of which program.
    pub judge: &'a Judge,
    /// What is to be made small.
    pub objective: &'a Objective,
    /// On which inputs.
    pub inputs: &'a InputSet,
    /// With which luck.
    pub seed: u64,
    /// When it is over.
    pub deadline: Instant,
    /// Whether somebody wants it to end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What came of it.
pub struct Fast {
    /// The best plans that were run, the best first. Their times are from the last heat.
    pub plans: Vec<Judged>,
    /// The default's figures with its times.
    pub default: Figures,
    /// Those that could not, with the reason.
    pub dropped: Vec<String>,
}

impl FastSearch<'_> {
    /// Runs it, on plans and orders that a search found to begin with.
    pub fn run(
        &self,
        plans: Vec<Plan>,
        orders: &[Candidate],
        watch: &dyn Watch,
    ) -> Result<Fast, OptimizeError> {
        let begin = Instant::now();
        let time = self.deadline.saturating_duration_since(begin);
        if self.judge.at_a_time() < 2 {
            return Err(OptimizeError::NotRunnable(format!(
                "two programs of {:.1} GiB each do not fit into memory (--memory-limit) together",
                self.judge.needs() as f64 / f64::from(1 << 30)
            )));
        }
        let default = Contestant::of_plan(self.judge, &Plan::default_way(self.judge.spec()))?
            .map_err(OptimizeError::NotRunnable)?;
        let mut track = self.track(&default)?;
        track.race(&[0], HEAT, HEAT_TIME, self.stop).map_err(OptimizeError::NotRunnable)?;
        let mut figures = self.judge.default_figures;
        let lane = track.lane(0);
        figures.run_nanos = Some(median(&lane.rounds));
        figures.compile_nanos = Some(lane.compile_nanos);

        let mut state = State {
            entries: Vec::new(),
            seen: self.judge.default.fingerprint.into_iter().collect(),
            default,
            track: Some(track),
            figures,
            tried: 0,
            dropped: Vec::new(),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let variation = Variation::new(self.judge, orders);
        let plans = plans.into_iter().chain(variation.beginners());
        watch.counting(time.as_secs(), "seconds");
        let on = |share: f64| begin.elapsed() < time.mul_f64(share) && !(self.stop)();
        for plan in plans {
            if !on(0.45) {
                break;
            }
            self.heat(&mut state, &plan, watch)?;
            watch.at(begin.elapsed().as_secs());
        }
        let mut idle = 0;
        while on(0.7) && !state.entries.is_empty() && idle < 50 {
            let parent = rng.random_range(0..state.entries.len().min(3));
            let plan = variation.changed(&state.entries[parent].judged.plan, &mut rng);
            idle = if self.heat(&mut state, &plan, watch)? { 0 } else { idle + 1 };
            watch.at(begin.elapsed().as_secs());
        }
        watch.doing(&format!("running the best of {}", state.tried));
        let left = self.deadline.saturating_duration_since(Instant::now());
        let plans = self.last_heat(&mut state, left)?;
        watch.done_counting();
        Ok(Fast { plans, default: state.figures, dropped: state.dropped })
    }

    /// Compiles a plan and runs it beside the default; false if the same program was tried.
    fn heat(
        &self,
        state: &mut State,
        plan: &Plan,
        watch: &dyn Watch,
    ) -> Result<bool, OptimizeError> {
        let best = state.entries.first().map_or(1.0, |entry| entry.value);
        watch.doing(&format!("running, best {:.3} of the default", best.min(1.0)));
        let mut judged = match self.judge.judge(plan)? {
            Ok(judged) => judged,
            Err(reason) => {
                state.dropped.push(format!("{plan}: {reason}"));
                return Ok(false);
            }
        };
        if judged.end.is_some_and(|end| !state.seen.insert(end)) {
            return Ok(false);
        }
        let mut track = match state.track.take() {
            Some(track) => track,
            None => self.track(&state.default)?,
        };
        let added = match Contestant::of_plan(self.judge, &judged.plan)? {
            Ok(contestant) => track.add(&contestant, self.inputs)?.map(|lane| (contestant, lane)),
            Err(reason) => Err(reason),
        };
        let (contestant, lane) = match added {
            Ok(added) => added,
            // The process may be gone.
            Err(reason) => {
                state.dropped.push(format!("{plan}: {reason}"));
                return Ok(true);
            }
        };
        state.tried += 1;
        track.lane(0).rounds.clear();
        if let Err(reason) = track.race(&[0, lane], HEAT, HEAT_TIME, self.stop) {
            state.dropped.push(format!("{plan}: {reason}"));
            return Ok(true);
        }
        let default = vec![std::mem::take(&mut track.lane(0).rounds)];
        let own = track.lane(lane);
        let found = speedup(&default, &vec![std::mem::take(&mut own.rounds)], None, LUCK);
        judged.figures.run_nanos = state.figures.run_nanos.map(|nanos| nanos / found.ratio);
        judged.figures.compile_nanos = Some(own.compile_nanos);
        let value = self.objective.value(&judged.figures, &state.figures);
        if value.is_finite() {
            state.entries.push(Entry { judged, contestant, value });
            state.sort();
        }
        if track.len() <= BESIDE.min(self.judge.at_a_time() - 1) {
            state.track = Some(track);
        }
        Ok(true)
    }

    /// A process in which the default runs.
    fn track(&self, default: &Contestant) -> Result<Track, OptimizeError> {
        let mut track = Track::new(&mut self.judge.emitted()?)?;
        let added = track.add(default, self.inputs)?;
        added.map(|_| track).map_err(OptimizeError::NotRunnable)
    }

    /// All that are left, together, compiled and started anew a few times, so that none is the first
    /// by the luck of its process.
    fn last_heat(&self, state: &mut State, time: Duration) -> Result<Vec<Judged>, OptimizeError> {
        let mut contestants = vec![&state.default];
        contestants.extend(state.entries.iter().map(|entry| &entry.contestant));
        let race = Race {
            session: self.judge.emitted()?,
            contestants,
            inputs: self.inputs,
            at_a_time: self.judge.at_a_time(),
            patience: time,
            stop: self.stop,
        };
        match race.run(&|_| false)? {
            Ok(times) => {
                let Figures { run_nanos, compile_nanos, .. } = state.figures;
                for (index, entry) in state.entries.iter_mut().enumerate() {
                    let run = times.run_speedup(index + 1, None).ratio;
                    let compile = times.compile_speedup(index + 1, None).ratio;
                    let figures = &mut entry.judged.figures;
                    figures.run_nanos = run_nanos.map(|nanos| nanos / run);
                    figures.compile_nanos = compile_nanos.map(|nanos| nanos / compile);
                }
            }
            // The heats have to do.
            Err(reason) => state.dropped.push(reason),
        }
        let mut left: Vec<Judged> = state.entries.drain(..).map(|entry| entry.judged).collect();
        let value = |judged: &Judged| self.objective.value(&judged.figures, &state.figures);
        left.sort_by(|a, b| value(a).total_cmp(&value(b)));
        Ok(left)
    }
}

struct State {
    entries: Vec<Entry>,
    /// Final programs that were run.
    seen: HashSet<xla_gym_engine::protocol::Fingerprint>,
    default: Contestant,
    /// The default, and plans that ran beside it, if the process is still good.
    track: Option<Track>,
    figures: Figures,
    tried: u64,
    dropped: Vec<String>,
}

impl State {
    fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.value.total_cmp(&b.value));
        self.entries.truncate(KEPT);
    }
}

/// How long the clock may run if nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(120);
