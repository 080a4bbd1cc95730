//! What is to be made small, as far as a state shows it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use xla_gym_env::State;

/// A figure of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Operations.
    Operations,
    /// Floating-point operations and transcendental functions, by the compiler's estimate.
    Flops,
    /// Bytes read and written, likewise.
    Bytes,
}

impl Measure {
    /// Its value in a state. Without an estimate of cost, a state is never preferred for it.
    pub fn of(self, state: &State) -> f64 {
        let cost = state.cost.as_ref();
        match self {
            Measure::Operations => state.counts.operations as f64,
            Measure::Flops => cost.map_or(f64::INFINITY, |cost| cost.flops + cost.transcendentals),
            Measure::Bytes => cost.map_or(f64::INFINITY, |cost| cost.bytes_accessed),
        }
    }
}

/// A weighted sum of figures, each as a share of what it was at the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Figure, weight.
    pub parts: Vec<(Measure, f64)>,
}

impl Default for Goal {
    fn default() -> Goal {
        Goal { parts: vec![(Measure::Operations, 1.0)] }
    }
}

impl Goal {
    /// How good a state is, seen from the start; smaller is better. Among equals there, fewer
    /// operations.
    pub fn value(&self, state: &State, start: &State) -> Value {
        let share = |measure: Measure| {
            let (now, before) = (measure.of(state), measure.of(start));
            if before > 0.0 { now / before } else { now }
        };
        Value {
            share: self.parts.iter().map(|(measure, weight)| weight * share(*measure)).sum(),
            operations: state.counts.operations,
        }
    }
}

/// How good a state is; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Of the goal.
    pub share: f64,
    /// Operations, where the goal does not decide.
    pub operations: u64,
}

impl Eq for Value {}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.share.total_cmp(&other.share).then(self.operations.cmp(&other.operations))
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
