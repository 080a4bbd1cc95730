//! Looks for orders, and sends the best through the real pipeline.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use xla_gym_common::on_all_cores;
use xla_gym_engine::protocol::PassId;
use xla_gym_search::{Budget, Candidate, Costs, Goal, Method, Policy, Search, StopReason, search};

use crate::{
    error::OptimizeError,
    plan::{Judge, Judged, Plan},
    watch::Watch,
};

/// How many of the best also go before the untouched pipeline.
const BEFORE: usize = 2;

/// What to look for, and how.
pub struct Looking<'a> {
    /// What is to be made small.
    pub goal: Goal,
    /// How.
    pub method: Method,
    /// How much it may take.
    pub budget: Budget,
    /// With which luck.
    pub seed: u64,
    /// Which passes look promising, if somebody knows.
    pub policy: Option<Arc<dyn Policy>>,
    /// Orders that are tried first.
    pub first: Vec<Vec<PassId>>,
    /// What passes cost on this program.
    pub costs: Arc<Costs>,
    /// Whether to search also from the program after what the pipeline does to it in any case.
    pub also_prepared: bool,
    /// Set by whoever wants it to end.
    pub stop: &'a Arc<AtomicBool>,
}

/// What a search came to.
pub struct Looked {
    /// The best orders.
    pub orders: Vec<Candidate>,
    /// Passes that were charged.
    pub passes: u64,
    /// How long it took.
    pub time: Duration,
    /// Why it ended.
    pub stopped: StopReason,
}

/// Searches from the start, and from the program after what the pipeline does to it in any case: what
/// that adds later cannot be tidied up any more, but it is not always needed.
pub fn look(
    judge: &Judge,
    looking: &Looking<'_>,
    watch: &dyn Watch,
) -> Result<Looked, OptimizeError> {
    let preparation = judge.preparation(&judge.bare)?;
    let mut prefixes = vec![Vec::new()];
    if looking.also_prepared && !preparation.is_empty() {
        prefixes.push(preparation);
    }
    let parts = prefixes.len() as u64;
    if let Some(passes) = looking.budget.passes {
        watch.counting(passes, "passes");
    }
    let mut looked = Looked {
        orders: Vec::new(),
        passes: 0,
        time: Duration::ZERO,
        stopped: StopReason::Exhausted,
    };
    let mut best = Vec::new();
    let mut best_first = Vec::new();
    for prefix in prefixes {
        let task = Search {
            world: &judge.world,
            benchmark: judge.benchmark,
            budget: Budget {
                passes: looking.budget.passes.map(|passes| passes / parts),
                time: looking.budget.time.map(|time| time / parts as u32),
            },
            seed: looking.seed,
            goal: looking.goal.clone(),
            policy: looking.policy.clone(),
            prefix,
            first: looking.first.clone(),
            costs: looking.costs.clone(),
            stop: looking.stop.clone(),
        };
        let before = looked.passes;
        let found = search(&task, &*looking.method.optimizer(), &|charged, lowest| {
            if lowest.is_finite() {
                watch.doing(&format!("searching, {:.1}% of the start", lowest * 100.0));
            }
            watch.at(before + charged);
        })?;
        looked.passes += found.passes;
        looked.time += found.time;
        looked.stopped = looked.stopped.max(found.stopped);
        best.push(found.candidates.into_iter());
        best_first.push(found.first.into_iter());
    }
    watch.done_counting();
    // The best of each search in turn, and the best of what it tried first: what a long search finds
    // is often the same a few times over.
    best.append(&mut best_first);
    let mut seen = HashSet::new();
    loop {
        let turn: Vec<Candidate> = best.iter_mut().filter_map(Iterator::next).collect();
        if turn.is_empty() {
            return Ok(looked);
        }
        looked.orders.extend(turn.into_iter().filter(|order| seen.insert(order.state.id)));
    }
}

/// What became of candidates in the real pipeline.
#[derive(Default)]
pub struct Sent {
    /// Those that came through.
    pub judged: Vec<Judged>,
    /// Those that did not, with the reason.
    pub dropped: Vec<String>,
}

/// Sends orders through the pipeline, in the place of its own passes. With `variants`, also the same
/// prepared and cleaned up before, and the best of them before the untouched pipeline. Ends early
/// when `enough` says so, though not before the first.
pub fn send(
    judge: &Judge,
    orders: &[Candidate],
    variants: bool,
    enough: &(dyn Fn() -> bool + Sync),
) -> Result<Sent, OptimizeError> {
    let spec = judge.spec();
    let cleaning = spec.cleaning(judge.world.engine())?;
    let results = on_all_cores(orders.len(), |index| {
        if index > 0 && enough() {
            return Ok(Vec::new());
        }
        let order = &orders[index].passes;
        let variants = variants && !enough();
        let mut plans = vec![Plan::instead(spec, order.clone())];
        let mut walk = crate::plan::walk(&judge.world, judge.benchmark, order)?;
        if variants && let Ok(run) = judge.pipeline(&mut walk, &spec.instead)? {
            let preparation = judge.preparation(&run)?;
            if !preparation.is_empty() {
                // What the pipeline has to add can be added before, and cleaned up after.
                plans.push(Plan::instead(spec, [&order[..], &preparation, &cleaning].concat()));
            }
        }
        if variants && index < BEFORE {
            plans.push(Plan::before(spec, order.clone()));
        }
        drop(walk);
        let mut results = Vec::new();
        for (variant, plan) in plans.iter().enumerate() {
            if variant > 0 && enough() {
                break;
            }
            results.push(judge.judge(plan)?);
        }
        Ok::<_, OptimizeError>(results)
    })?;
    let mut sent = Sent::default();
    for (order, results) in orders.iter().zip(results) {
        for result in results {
            match result {
                Ok(judged) => sent.judged.push(judged),
                Err(reason) => {
                    let plan = Plan::before(spec, order.passes.clone());
                    sent.dropped.push(format!("{plan}: {reason}"));
                }
            }
        }
    }
    Ok(sent)
}
