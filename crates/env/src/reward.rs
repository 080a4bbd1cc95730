//! What an agent is paid.

use serde::{Deserialize, Serialize};
use xla_gym_transitions::State;

/// What XLA itself makes of a benchmark. Counts are operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// `I`: at the start.
    pub initial: u64,
    /// `D`: after its optimisation passes, from the same start.
    pub optimised: u64,
    /// `I′`: before layout assignment, without the optional passes.
    pub legal_initial: u64,
    /// `D′`: before layout assignment.
    pub legal: u64,
    /// At the end, without the optional passes.
    pub kernels_initial: u64,
    /// At the end.
    pub kernels: u64,
}

/// What is paid for each step, and at the end.
///
/// ```
/// use xla_gym_env::{Objective, Potential, Reward};
/// // The paper's second environment.
/// let shaped = Reward { shaping: Some(Potential::default()), ..Reward::default() };
/// assert_eq!(shaped.objective, Objective::Paper);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reward {
    /// For the state after each step.
    pub objective: Objective,
    /// Added to it: `γ φ(s′) − φ(s)`, which changes no optimal policy.
    pub shaping: Option<Potential>,
    /// Paid once, at the end.
    pub at_end: Option<AtEnd>,
    /// Taken for a pass that crashes, is refused or leaves an invalid program.
    pub failure_cost: f64,
}

/// What is paid for the state after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// As in the paper: minus the operations, as a share of those at the start.
    #[default]
    Paper,
    /// The operations that this step removed, as a share of those at the start.
    Difference,
    /// The operations that this step removed, as a share of those that XLA's own order removes:
    /// an episode's sum is its order ratio.
    OverDefault,
    /// By how much this step went below the fewest operations so far, as a share of those that
    /// XLA's own order removes: an episode's sum is the order ratio of its best state, and looking
    /// around costs nothing.
    Record,
    /// The same by logarithms: by how much this step raised `ln(0.1 + ratio)` of the best state.
    /// What is missing to XLA's own order counts for more than what goes beyond it, as it does in a
    /// geometric mean, and graphs on which XLA's own order removes little do not drown the others.
    LogRecord,
    /// Nothing.
    Nothing,
}

/// What is added to a ratio before the logarithm of [`Objective::LogRecord`].
const RATIO_OFFSET: f64 = 0.1;

/// `φ(s) = −(flop_weight · FLOP(s) + transcendental_weight · transcendental(s))`, as a share of the
/// same sum at the start, so that graphs of all sizes count alike and φ of the start is −1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Potential {
    /// Discount of the learning algorithm; it must be the same there.
    pub gamma: f64,
    /// What a floating-point operation weighs.
    pub flop_weight: f64,
    /// What a transcendental function weighs.
    pub transcendental_weight: f64,
}

impl Default for Potential {
    fn default() -> Potential {
        Potential { gamma: 0.99, flop_weight: 1.0, transcendental_weight: 2.0 }
    }
}

/// What is paid once, at the end of an episode, for the result beside XLA's own. All go through
/// XLA's real pipeline without its optional passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Operations before layout assignment: `1 − result / default`.
    Legal,
    /// Operations of the final program: `1 − result / default`.
    Kernels,
    /// Run time: the logarithm of default over result. Differs from run to run.
    RunTime,
}

impl Reward {
    /// For one step, without what is paid at the end. `fewest` are the fewest operations before it.
    pub fn step(
        &self,
        start: &State,
        before: &State,
        after: &State,
        fewest: u64,
        default_reduction: Option<f64>,
        failed: bool,
    ) -> f64 {
        let operations = |state: &State| state.counts.operations as f64;
        let initial = operations(start).max(1.0);
        let objective = match self.objective {
            Objective::Paper => -operations(after) / initial,
            Objective::Difference => (operations(before) - operations(after)) / initial,
            Objective::OverDefault => {
                (operations(before) - operations(after)) / default_reduction.unwrap_or(initial)
            }
            Objective::Record => {
                (fewest as f64 - operations(after)).max(0.0) / default_reduction.unwrap_or(initial)
            }
            Objective::LogRecord => {
                let removed = |left: f64| (initial - left).max(0.0);
                let worth = |left: f64| {
                    (RATIO_OFFSET + removed(left) / default_reduction.unwrap_or(initial)).ln()
                };
                let fewest = fewest as f64;
                worth(fewest.min(operations(after))) - worth(fewest)
            }
            Objective::Nothing => 0.0,
        };
        let shaping = self.shaping.map_or(0.0, |potential| {
            potential.gamma * potential.of(start, after) - potential.of(start, before)
        });
        objective + shaping - if failed { self.failure_cost } else { 0.0 }
    }

    /// Whether [`Defaults`] are needed at every step.
    pub fn needs_default(&self) -> bool {
        matches!(self.objective, Objective::OverDefault | Objective::Record | Objective::LogRecord)
    }
}

impl Potential {
    /// `φ` of a state. Where XLA gives no estimate, it is that of the start.
    pub fn of(&self, start: &State, state: &State) -> f64 {
        let sum = |state: &State| {
            let cost = state.cost?;
            Some(self.flop_weight * cost.flops + self.transcendental_weight * cost.transcendentals)
        };
        match (sum(state), sum(start)) {
            (Some(now), Some(initial)) if initial > 0.0 && now.is_finite() => -now / initial,
            _ => -1.0,
        }
    }
}

impl Defaults {
    /// Operations that XLA's own order removes. Where it removes nothing, all of them: something to
    /// divide by that does not make one graph count for more than the others.
    pub fn reduction(&self) -> f64 {
        reduction(self.initial, self.optimised)
    }

    /// The same before layout assignment.
    pub fn legal_reduction(&self) -> f64 {
        reduction(self.legal_initial, self.legal)
    }
}

fn reduction(initial: u64, default: u64) -> f64 {
    let removed = if initial > default { initial - default } else { initial };
    removed.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_engine::protocol::{Cost, Counts, Fingerprint};

    fn state(operations: u64, flops: f64, transcendentals: f64) -> State {
        State {
            id: Fingerprint(operations.into()),
            counts: Counts {
                instructions: operations,
                operations,
                inlined: operations,
                computations: 1,
            },
            opcodes: Vec::new(),
            cost: Some(Cost { flops, transcendentals, bytes_accessed: 0.0 }),
        }
    }

    #[test]
    fn the_paper_pays_minus_the_scaled_count() {
        let (start, after) = (state(100, 0.0, 0.0), state(80, 0.0, 0.0));
        let pay = |objective| {
            let reward = Reward { objective, ..Reward::default() };
            reward.step(&start, &start, &after, 90, Some(40.0), false)
        };
        assert_eq!(pay(Objective::Record), 0.25);
        // From 10 of the 40 removed to 20 of them.
        assert!((pay(Objective::LogRecord) - (0.6_f64 / 0.35).ln()).abs() < 1e-12);
        assert_eq!(pay(Objective::Paper), -0.8);
        assert_eq!(pay(Objective::Difference), 0.2);
        assert_eq!(pay(Objective::OverDefault), 0.5);
    }

    #[test]
    fn a_failure_costs_what_the_configuration_says() {
        let start = state(100, 0.0, 0.0);
        let reward = Reward { failure_cost: 0.25, ..Reward::default() };
        assert_eq!(reward.step(&start, &start, &start, 100, None, true), -1.25);
    }

    #[test]
    fn shaping_telescopes() {
        let states: Vec<State> =
            (0..20).map(|i| state(100, 1e6 / f64::from(i + 1), 1e3 + f64::from(i * i))).collect();
        let potential = Potential::default();
        let reward =
            Reward { objective: Objective::Nothing, shaping: Some(potential), ..Reward::default() };
        let mut sum = 0.0;
        for (t, pair) in states.windows(2).enumerate() {
            sum += potential.gamma.powi(t as i32)
                * reward.step(&states[0], &pair[0], &pair[1], 100, None, false);
        }
        let end = potential.gamma.powi(19) * potential.of(&states[0], &states[19]);
        let expected = end - potential.of(&states[0], &states[0]);
        assert!((sum - expected).abs() < 1e-12, "{sum} {expected}");
        assert_eq!(potential.of(&states[0], &states[0]), -1.0);
    }
}
