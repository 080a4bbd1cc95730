//! The same with fewer passes.

use std::time::{Duration, Instant};

use xla_gym_env::{EnvError, Walk};
use xla_gym_search::minimise;

use crate::{
    error::OptimizeError,
    plan::{Judge, Judged, Plan},
};

/// Leaves out passes while what comes out is no worse: operations at the end of the order, and
/// whatever the pipeline makes of them. Stops trying after `patience`, since each try is a run of
/// the whole pipeline.
pub fn shorten(judge: &Judge, judged: Judged, patience: Duration) -> Result<Judged, OptimizeError> {
    let begin = Instant::now();
    let most = judged.figures;
    let good = |walk: &mut Walk| {
        if walk.state().counts.operations > most.operations || begin.elapsed() > patience {
            return Ok(false);
        }
        let run = match judge.pipeline(walk, &judged.plan.disabled) {
            Ok(Ok(run)) => run,
            Ok(Err(_)) => return Ok(false),
            Err(OptimizeError::Env(error)) => return Err(error),
            Err(OptimizeError::Engine(error)) => return Err(EnvError::Engine(error)),
            Err(_) => return Ok(false),
        };
        let cost = |cost: Option<f64>, most: Option<f64>| match (cost, most) {
            (Some(cost), Some(most)) => cost <= most,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        Ok(run.middle.operations <= most.legal
            && run.end.operations <= most.kernels
            && cost(run.end_cost.map(|cost| cost.flops + cost.transcendentals), most.flops)
            && cost(run.end_cost.map(|cost| cost.bytes_accessed), most.bytes))
    };
    let passes = minimise(&judge.world, judge.benchmark, &judged.plan.passes, good)?;
    let plan = Plan { passes, ..judged.plan.clone() };
    // A pass may have become too slow meanwhile, and what is left may be worse.
    let no_worse = |short: &Judged| {
        let figures = &short.figures;
        figures.operations <= most.operations
            && figures.legal <= most.legal
            && figures.kernels <= most.kernels
    };
    Ok(judge.judge(&plan)?.ok().filter(no_worse).unwrap_or(judged))
}
