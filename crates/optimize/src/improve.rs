//! Better plans by what the pipeline makes of them.
//!
//! A search for orders sees a program before the pipeline. What comes out of it, and most of
//! all how much memory the final program needs, is known only afterwards; so the best plans are changed a
//! little and sent through it again.

use std::collections::HashSet;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_common::on_all_cores;

use crate::{
    error::OptimizeError,
    plan::{Judge, Judged, Plan},
    vary::Variation,
    watch::Watch,
};

/// Plans that are changed and judged at a time: not the number of cores, since results must not
/// depend on that.
const TOGETHER: usize = 4;

/// From so many of the best one is taken and changed.
const PARENTS: usize = 4;

/// How to change plans.
pub struct Improvement<'a> {
    /// Of which program.
    pub judge: &'a Judge,
    /// In which ways.
    pub variation: Variation<'a>,
    /// What is to be made small.
    pub value: &'a dyn Fn(&Judged) -> f64,
    /// How many plans are tried, at most.
    pub tries: usize,
    /// With which luck.
    pub seed: u64,
    /// Whether to end.
    pub enough: &'a dyn Fn() -> bool,
}

impl Improvement<'_> {
    /// Changes the best of `judged`, and adds what comes of it.
    pub fn run(&self, judged: &mut Vec<Judged>, watch: &dyn Watch) -> Result<(), OptimizeError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut seen: HashSet<Plan> = judged.iter().map(|judged| judged.plan.clone()).collect();
        let mut waiting: Vec<Plan> = self.variation.beginners();
        waiting.retain(|plan| seen.insert(plan.clone()));
        waiting.reverse();
        let mut tried = 0;
        while tried < self.tries && !(self.enough)() {
            judged.sort_by(|a, b| (self.value)(a).total_cmp(&(self.value)(b)));
            let plans = self.next(judged, &mut waiting, &mut seen, &mut rng);
            tried += TOGETHER;
            let best = judged.first().map_or(1.0, self.value);
            watch.doing(&format!("changing the best plans, {:.3} of the default", best.min(1.0)));
            watch.at(tried as u64);
            let results = on_all_cores(plans.len(), |index| self.judge.judge(&plans[index]))?;
            judged.extend(results.into_iter().flatten());
        }
        Ok(())
    }

    /// Plans that were not tried: of those that wait and of those near the best, in turn.
    fn next(
        &self,
        judged: &[Judged],
        waiting: &mut Vec<Plan>,
        seen: &mut HashSet<Plan>,
        rng: &mut ChaCha8Rng,
    ) -> Vec<Plan> {
        let mut plans = Vec::new();
        for turn in 0..TOGETHER {
            if turn.is_multiple_of(2)
                && let Some(plan) = waiting.pop()
            {
                plans.push(plan);
            } else if !judged.is_empty() {
                let parent = rng.random_range(0..judged.len().min(PARENTS));
                let plan = self.variation.changed(&judged[parent].plan, rng);
                if seen.insert(plan.clone()) {
                    plans.push(plan);
                }
            }
        }
        plans
    }
}
