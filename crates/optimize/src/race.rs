//! Programs that are run in turn, so that their times can be compared.

use std::time::{Duration, Instant};

use xla_gym_engine::{
    Compiled, EngineError, Scratch,
    protocol::{Array, Observe},
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

/// A compiled plan in a process of its own.
pub struct Runner {
    scratch: Scratch,
    compiled: Compiled,
    /// Runs of a round.
    runs: u32,
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
        inputs: &[Array],
    ) -> Result<Result<Runner, String>, OptimizeError> {
        let order_nanos = order_nanos(judge, plan)?;
        let mut scratch = judge.session(plan)?.scratch()?;
        let mut start = || {
            let compiled = scratch.compile(&plan.disabled)?;
            scratch.set_inputs(&compiled, inputs.to_vec())?;
            let (times, _) = scratch.execute(&compiled, 2, false)?;
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
        Ok(Ok(Runner { scratch, compiled, runs, compile_nanos, rounds: Vec::new(), broken: None }))
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
    for round in 0..rounds {
        // A few rounds always, without which there is nothing to compare.
        if round >= 5 && enough() {
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

/// Measures a plan beside the default and two more compilations of the default, all in turn.
pub fn measure(
    judge: &Judge,
    plan: &Plan,
    inputs: &[Array],
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Result<Timing, String>, OptimizeError> {
    let begin = Instant::now();
    let plans = [&Plan::default_way(), plan, &Plan::default_way(), &Plan::default_way()];
    let mut compile_times: Vec<Vec<f64>> = vec![Vec::new(); plans.len()];
    let mut runners = Vec::new();
    // Everything is compiled three times, if there is time.
    for again in 0..3 {
        if again > 0 && (begin.elapsed() > patience / 3 || stop()) {
            break;
        }
        runners.clear();
        for index in 0..plans.len() {
            let index = (index + again) % plans.len();
            match Runner::new(judge, plans[index], inputs)? {
                Ok(runner) => {
                    compile_times[index].push(runner.compile_nanos);
                    runners.push((index, runner));
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
    }
    runners.sort_by_key(|(index, _)| *index);
    let mut racing: Vec<&mut Runner> = runners.iter_mut().map(|(_, runner)| runner).collect();
    race(&mut racing, 300, &|| begin.elapsed() > patience || stop());
    if let Some(reason) = runners.iter().find_map(|(_, runner)| runner.broken.clone()) {
        return Ok(Err(reason));
    }
    let times: Vec<&[f64]> = runners.iter().map(|(_, runner)| &runner.rounds[..]).collect();
    let compile: Vec<&[f64]> = compile_times.iter().map(|times| &times[..]).collect();
    Ok(Ok(Timing { run: paired(&times), compile: paired(&compile) }))
}

/// The first series is the default, the second the result, the others are controls.
fn paired(times: &[&[f64]]) -> Paired {
    let (default, result) = (times[0], times[1]);
    let (ratio, interval) = speedup(default, result);
    let controls: Vec<Control> = times[2..]
        .iter()
        .map(|control| {
            let (speedup, interval) = speedup(default, control);
            Control { speedup, interval }
        })
        .collect();
    let noise = controls.iter().map(|control| control.speedup.ln().abs()).fold(0.0, f64::max);
    // Three measurements are too few for an interval.
    let few = default.len() < 5;
    let spans_one = interval.0 <= 1.0 && interval.1 >= 1.0;
    Paired {
        default: series(default),
        result: series(result),
        speedup: ratio,
        interval,
        within_noise: spans_one || ratio.ln().abs() <= noise || (few && ratio.ln().abs() < 0.05),
        controls,
    }
}
