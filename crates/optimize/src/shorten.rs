//! The same with fewer passes.

use std::time::{Duration, Instant};

use xla_gym_env::{EnvError, Walk};
use xla_gym_profile::Figure;
use xla_gym_search::minimise;

use crate::{
    error::OptimizeError,
    plan::{Judge, Judged, Plan},
};

/// Leaves out passes while what comes out is no worse: the primary metric at the end of the order, and
/// whatever the pipeline makes of them. Stops trying after `patience`, since each try is a run of
/// the whole pipeline.
pub fn shorten(judge: &Judge, judged: Judged, patience: Duration) -> Result<Judged, OptimizeError> {
    let begin = Instant::now();
    let most = judged.figures;
    let good = |walk: &mut Walk| {
        let primary = walk.state().counts.primary();
        if judge.spec().is_of_order(Figure::PRIMARY) && primary as f64 > most.primary() {
            return Ok(false);
        }
        let run = match judge.pipeline(walk, &judged.plan.finish) {
            Ok(Ok(run)) => run,
            Ok(Err(_)) => return Ok(false),
            Err(OptimizeError::Env(error)) => return Err(error),
            Err(OptimizeError::Engine(error)) => return Err(EnvError::Engine(error)),
            Err(_) => return Ok(false),
        };
        Ok(run.figures(judge.spec(), primary).no_worse(&most))
    };
    let enough = || begin.elapsed() > patience;
    let passes = minimise(&judge.world, judge.benchmark, &judged.plan.passes, good, enough)?;
    let plan = Plan { passes, ..judged.plan.clone() };
    // A pass may have become too slow meanwhile, and what is left may be worse.
    let short = judge.judge(&plan)?.ok();
    Ok(short.filter(|short| short.figures.no_worse(&most)).unwrap_or(judged))
}
