//! Looks for what is fast, by the clock.
//!
//! Neither operations nor bytes tell how fast a program is, so candidates of many kinds are compiled
//! and run beside the default, the best are changed a little and run again.

use std::{
    collections::HashSet,
    slice::from_ref,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::protocol::InputSet;
use xla_gym_search::Candidate;

use crate::{
    error::OptimizeError,
    objective::{Figures, Objective},
    plan::{Judge, Judged, Plan},
    race::{Runner, race, run_in_turn},
    stats::speedup,
    vary::Variation,
    watch::Watch,
};

/// Rounds of a first heat.
const HEAT: usize = 5;

/// How many stay in the race.
const KEPT: usize = 5;

/// What is known of a plan that was run.
struct Entry {
    judged: Judged,
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
        let mut default = match Runner::new(self.judge, &Plan::default_way(), self.inputs)? {
            Ok(runner) => runner,
            Err(reason) => return Err(OptimizeError::NotRunnable(reason)),
        };
        race(&mut [&mut default], HEAT, &|| false);
        let mut figures = self.judge.default_figures;
        figures.run_nanos = Some(default.median());
        figures.compile_nanos = Some(default.compile_nanos);

        let mut state = State {
            entries: Vec::new(),
            seen: self.judge.default.end_fingerprint.into_iter().collect(),
            default,
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
        let mut runner = match Runner::new(self.judge, &judged.plan, self.inputs)? {
            Ok(runner) => runner,
            Err(reason) => {
                state.dropped.push(format!("{plan}: {reason}"));
                return Ok(true);
            }
        };
        state.tried += 1;
        state.default.rounds.clear();
        race(&mut [&mut state.default, &mut runner], HEAT, &|| false);
        self.rate(&mut judged, &runner, &state.default, &state.figures);
        let value = self.objective.value(&judged.figures, &state.figures);
        if runner.broken.is_none() && value.is_finite() {
            state.entries.push(Entry { judged, value });
            state.sort();
        }
        Ok(true)
    }

    /// Times relative to the default in the same heat.
    fn rate(&self, judged: &mut Judged, runner: &Runner, default: &Runner, figures: &Figures) {
        let (ratio, _) = speedup(from_ref(&default.rounds), from_ref(&runner.rounds));
        judged.figures.run_nanos = figures.run_nanos.map(|nanos| nanos / ratio);
        judged.figures.compile_nanos = Some(runner.compile_nanos);
    }

    /// All that are left, together, compiled and started anew a few times, so that none is the first
    /// by the luck of its process.
    fn last_heat(&self, state: &mut State, time: Duration) -> Result<Vec<Judged>, OptimizeError> {
        let mut left: Vec<Judged> = state.entries.drain(..).map(|entry| entry.judged).collect();
        let default = Plan::default_way();
        let mut plans = vec![&default];
        plans.extend(left.iter().map(|judged| &judged.plan));
        match run_in_turn(self.judge, &plans, self.inputs, time, self.stop)? {
            Ok((run, compile)) => {
                for (index, judged) in left.iter_mut().enumerate() {
                    let rate = |times: &[Vec<Vec<f64>>], nanos: Option<f64>| {
                        nanos.map(|nanos| nanos / speedup(&times[0], &times[index + 1]).0)
                    };
                    judged.figures.run_nanos = rate(&run, state.figures.run_nanos);
                    judged.figures.compile_nanos = rate(&compile, state.figures.compile_nanos);
                }
            }
            // The heats have to do.
            Err(reason) => state.dropped.push(reason),
        }
        let value = |judged: &Judged| self.objective.value(&judged.figures, &state.figures);
        left.sort_by(|a, b| value(a).total_cmp(&value(b)));
        Ok(left)
    }
}

struct State {
    entries: Vec<Entry>,
    /// Final programs that were run.
    seen: HashSet<xla_gym_engine::protocol::Fingerprint>,
    default: Runner,
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
