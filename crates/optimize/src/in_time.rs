//! The best answer within a time.
//!
//! First where the policy and orders that did well elsewhere lead, so that there is something early; then
//! what a search finds, on a program with fewer layers where there is one; then the best of that, changed
//! a little, by what the pipeline makes of the whole.

use std::time::Duration;

use xla_gym_common::on_all_cores;
use xla_gym_search::Method;

use crate::{
    error::OptimizeError,
    find::Looked,
    optimize::{Run, nearest},
    plan::{Judge, Judged},
    reduced::reduced,
    shorten::shorten,
    task::{Answer, Proven},
};

/// By which share of the time a proof may end late.
const GRACE: f64 = 0.1;

/// How many of the plans that are best with fewer layers are tried on the whole, at most.
const CARRIED_OVER: usize = 16;

/// How many plans have to be tried on both programs before it can be said that they rank differently.
const ENOUGH_TO_TELL: usize = 5;

/// A program with fewer layers, and the plans that were found for it.
struct Smaller {
    judge: Judge,
    found: Vec<Judged>,
    /// Plans that were tried on both: their values there, and on the whole.
    tried: Vec<(f64, f64)>,
}

impl Smaller {
    fn new(judge: Judge) -> Smaller {
        Smaller { judge, found: Vec::new(), tried: Vec::new() }
    }

    /// Whether plans rank there about as they do on the whole, as far as one can tell.
    fn agrees(&self) -> bool {
        rank_alike(&self.tried)
    }
}

/// Whether more pairs are in the same order on both sides than in the opposite one. Few of them say
/// nothing.
fn rank_alike(values: &[(f64, f64)]) -> bool {
    if values.len() < ENOUGH_TO_TELL {
        return true;
    }
    let mut agreement = 0.0;
    for (index, (a, b)) in values.iter().enumerate() {
        for (other_a, other_b) in &values[index + 1..] {
            let [on_a, on_b] = [a - other_a, b - other_b];
            if on_a != 0.0 && on_b != 0.0 {
                agreement += (on_a * on_b).signum();
            }
        }
    }
    agreement >= 0.0
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
        let hurried = self.is_stopped() || self.clock.left(self.proving).is_zero();
        let mut smaller = if hurried { None } else { reduced(self.judge)?.map(Smaller::new) };
        let mut looked = self.find(smaller.as_mut(), Method::Coreset, 0.3, &mut judged)?;
        // What the pipeline makes of the whole may not go by what a few layers do.
        smaller = smaller.filter(Smaller::agrees);
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
        let Some(smaller) = smaller else {
            let looked = self.look(method, share)?;
            self.send(&looked, 0.4, judged)?;
            return Ok(looked);
        };
        let Smaller { judge, found, tried } = smaller;
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
        let value = |run: &Run<'_>, judged: &Judged| {
            run.task.objective.value(&judged.figures, &run.default)
        };
        for (there, here) in self.carry_over(found, judged)? {
            tried.push((value(&run, &there), value(self, &here)));
            judged.push(here);
        }
        // A known plan may be none of the best there.
        let known = self.task.known.as_ref().map(|known| self.judge.judge(known)).transpose()?;
        judged.extend(known.and_then(Result::ok));
        self.sort(judged);
        Ok(looked)
    }

    /// Tries the best plans of a program with fewer layers on the whole. What they came to there, and here.
    fn carry_over(
        &self,
        found: &[Judged],
        judged: &[Judged],
    ) -> Result<Vec<(Judged, Judged)>, OptimizeError> {
        self.watch.doing("trying the best on the whole program");
        let until = self.clock.after(0.5, self.proving);
        let is_new = |found: &&Judged| !judged.iter().any(|other| other.plan == found.plan);
        let found: Vec<&Judged> = found.iter().filter(is_new).take(CARRIED_OVER).collect();
        let results = on_all_cores(found.len(), |index| {
            if index > 0 && (self.is_stopped() || self.is_late(until, 1)) {
                return Ok(None);
            }
            self.judge.judge(&found[index].plan).map(Result::ok)
        })?;
        let pairs = found.into_iter().cloned().zip(results);
        Ok(pairs.filter_map(|(there, here)| Some((there, here?))).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_rank_the_other_way_round_are_noticed() {
        let pairs = |b: [f64; 5]| -> Vec<(f64, f64)> { (1..6).map(f64::from).zip(b).collect() };
        assert!(rank_alike(&pairs([1.0, 2.0, 2.0, 4.0, 3.0])));
        assert!(!rank_alike(&pairs([5.0, 4.0, 2.0, 3.0, 1.0])));
        assert!(rank_alike(&pairs([1.0; 5])), "all the same says nothing");
        assert!(rank_alike(&pairs([5.0, 4.0, 3.0, 2.0, 1.0])[..4]), "few say nothing");
    }
}
