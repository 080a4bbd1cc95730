//! What is to be made small, as far as a state shows it.

use std::cmp::Ordering;

use xla_gym_env::State;
use xla_gym_profile::Measure;

/// The value of a measure in a state. Without an estimate of cost, a state is never preferred for it.
fn of(measure: Measure, state: &State) -> f64 {
    match measure {
        Measure::Count(at) => state.counts.get(usize::from(at)).copied().unwrap_or_default() as f64,
        Measure::Costs(which) => state.cost.as_ref().map_or(f64::INFINITY, |cost| {
            cost.iter()
                .enumerate()
                .filter(|(at, _)| which >> at & 1 == 1)
                .map(|(_, cost)| cost)
                .sum()
        }),
    }
}

/// A weighted sum of measures, each as a share of what it was at the start.
///
/// ```
/// use xla_gym_search::{Goal, Measure};
///
/// // Mostly fewer operations, and a little less of the first estimate of cost.
/// let goal = Goal { parts: vec![(Measure::PRIMARY, 0.8), (Measure::costs(&[0]), 0.2)] };
/// assert_ne!(goal, Goal::default());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Measure, weight.
    pub parts: Vec<(Measure, f64)>,
}

impl Default for Goal {
    fn default() -> Goal {
        Goal { parts: vec![(Measure::PRIMARY, 1.0)] }
    }
}

impl Goal {
    /// How good a state is, seen from the start; smaller is better. Among equals there, less of
    /// the primary metric.
    pub fn value(&self, state: &State, start: &State) -> Value {
        let share = |measure: Measure| {
            let (now, before) = (of(measure, state), of(measure, start));
            if before > 0.0 { now / before } else { now }
        };
        Value {
            share: self.parts.iter().map(|(measure, weight)| weight * share(*measure)).sum(),
            primary: state.counts.primary(),
        }
    }
}

/// How good a state is; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Of the goal.
    pub share: f64,
    /// The primary metric, where the goal does not decide.
    pub primary: u64,
}

impl Eq for Value {}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.share.total_cmp(&other.share).then(self.primary.cmp(&other.primary))
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
