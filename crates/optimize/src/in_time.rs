//! The best answer within a time.
//!
//! First where the policy and orders that did well elsewhere lead, so that there is something early; then
//! what a search finds, on a program with fewer layers where there is one; then the best of that, changed
//! a little, by what the pipeline makes of the whole.

use std::time::Duration;

use xla_gym_engine::on_all_cores;
use xla_gym_search::Method;

use crate::{
    error::OptimizeError,
    find::Looked,
    optimize::{Run, nearest},
    plan::{Judge, Judged, Plan},
    reduced::reduced,
    shorten::shorten,
    task::{Answer, Proven},
};

/// By which share of the time a proof may end late.
const GRACE: f64 = 0.1;

/// How many of the plans that are best with fewer layers are tried on the whole, at most.
const CARRIED_OVER: usize = 16;

/// A program with fewer layers, and the plans that were found for it.
struct Smaller {
    judge: Judge,
    found: Vec<Judged>,
}

impl Run<'_> {
    /// Searches, proves and answers, all within the time.
    pub(crate) fn answer_in_time(mut self) -> Result<Answer, OptimizeError> {
        let mut best: Option<Proven> = None;
        let mut judged = Vec::new();
        if self.clock.left(self.proving).is_zero() {
            let (needed, total) = (self.proving, self.budget.time.unwrap_or_default());
            self.dropped.push(format!(
                "everything: running a result beside the original takes about {:.0} s more, and {:.0} of \
                 {:.0} s are left; --seconds {:.0} would do",
                needed.as_secs_f64(),
                self.clock.left(Duration::ZERO).as_secs_f64(),
                total.as_secs_f64(),
                // As much again for searching.
                2.0 * (self.clock.elapsed() + needed).as_secs_f64(),
            ));
        }
        let mut smaller = reduced(self.judge)?.map(|judge| Smaller { judge, found: Vec::new() });
        let mut looked = self.find(smaller.as_mut(), Method::Coreset, 0.3, &mut judged)?;
        // Proving twice has to leave most of the time for searching.
        if self.proving * 4 < self.clock.left(Duration::ZERO) {
            best = self.prove_best(&judged, None, Duration::ZERO)?;
        }
        if !self.is_stopped() {
            let more = self.find(smaller.as_mut(), self.task.method, 0.5, &mut judged)?;
            looked = Looked {
                orders: more.orders,
                // It begins with the same orders.
                passes: looked.passes.max(more.passes),
                time: looked.time + more.time,
                stopped: more.stopped,
            };
            self.change(&looked, &mut judged, usize::MAX, 0.8)?;
        }
        let nearest = nearest(&judged);
        if best.is_none() || !self.is_stopped() {
            // The last try may begin just before the end.
            let left = self.clock.left(self.proving).saturating_sub(self.judge.judging() * 2);
            let shortening = self.task.shortening.min(left);
            let better = self.prove_best(&judged, best.as_ref(), shortening)?;
            best = better.or(best);
        }
        let (chosen, not_measured) = self.measure_if_wanted(best.map(|best| (best, None)))?;
        self.answer(&looked, chosen, Vec::new(), nearest, not_measured)
    }

    /// Searches for orders for some share of the time that is left, and sends the best through the
    /// pipeline. Where there is a program with fewer layers, all of that happens there first, and the best
    /// of it is tried on the whole.
    fn find(
        &mut self,
        smaller: Option<&mut Smaller>,
        method: Method,
        share: f64,
        judged: &mut Vec<Judged>,
    ) -> Result<Looked, OptimizeError> {
        let Some(Smaller { judge, found }) = smaller else {
            let looked = self.look(method, share)?;
            self.send(&looked, 0.4, judged)?;
            return Ok(looked);
        };
        let mut run = Run {
            judge,
            default: judge.default_figures,
            inputs: self.inputs.clone(),
            dropped: Vec::new(),
            ..*self
        };
        let looked = run.look(method, share * 0.5)?;
        run.send(&looked, 0.25, found)?;
        if method != Method::Coreset {
            run.change(&looked, found, usize::MAX, 0.4)?;
        }
        // What would be no answer there may still be one on the whole.
        found.sort_by_cached_key(|judged| !run.is_good(judged));
        self.carry_over(found, judged)?;
        Ok(looked)
    }

    /// Tries the best plans of a program with fewer layers on the whole.
    fn carry_over(&self, found: &[Judged], judged: &mut Vec<Judged>) -> Result<(), OptimizeError> {
        self.watch.doing("trying the best on the whole program");
        let until = self.clock.after(0.5, self.proving);
        let plans: Vec<&Plan> = found
            .iter()
            .map(|found| &found.plan)
            .filter(|plan| !judged.iter().any(|other| other.plan == **plan))
            .take(CARRIED_OVER)
            .collect();
        let results = on_all_cores(plans.len(), |index| {
            if index > 0 && (self.is_stopped() || self.is_late(until, 1)) {
                return Ok(None);
            }
            self.judge.judge(plans[index]).map(Result::ok)
        })?;
        judged.extend(results.into_iter().flatten());
        self.sort(judged);
        Ok(())
    }

    /// The best of plans that is better than the one that is proven, and can be proven too. Shortened
    /// first, for so long.
    fn prove_best(
        &mut self,
        judged: &[Judged],
        than: Option<&Proven>,
        shortening: Duration,
    ) -> Result<Option<Proven>, OptimizeError> {
        let Run { judge, task, watch, .. } = *self;
        for judged in judged {
            let value = |judged: &Judged| task.objective.value(&judged.figures, &self.default);
            if than.is_some_and(|than| value(&than.judged) <= value(judged)) {
                break;
            }
            if !self.is_good(judged) {
                continue;
            }
            // A little late is better than unproven.
            let grace = self.budget.time.unwrap_or_default().mul_f64(GRACE);
            let left = self.clock.left(Duration::ZERO);
            if left.saturating_add(grace) < self.proving {
                self.dropped.push(format!(
                    "{}: running it beside the original takes about {:.0} s, and {:.0} s were left \
                     (--seconds)",
                    judged.plan,
                    self.proving.as_secs_f64(),
                    left.as_secs_f64(),
                ));
                break;
            }
            let mut judged = judged.clone();
            if !shortening.is_zero() && !self.is_stopped() {
                watch.doing("leaving out what can be left out");
                judged = shorten(judge, judged, shortening)?;
            }
            // The same final program was proven already.
            if let Some(same) =
                than.filter(|than| than.judged.end.is_some() && than.judged.end == judged.end)
            {
                return Ok(Some(Proven { judged, outputs: same.outputs.clone() }));
            }
            watch.doing("running the result");
            if let Some(proven) = self.prove(judged)? {
                return Ok(Some(proven));
            }
        }
        Ok(None)
    }
}
