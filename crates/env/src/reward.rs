//! What an agent is paid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xla_gym_engine::protocol::{Cost, Hello};
use xla_gym_profile::{Figure, Profile};
use xla_gym_transitions::State;

use crate::error::EnvError;

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
    /// Paid once, at the end of an episode, for the result beside the compiler's own: a figure of the
    /// profile by name, after the pipeline, as `1 − result / default`. For `run-time` it is the logarithm
    /// of default over result, and differs from run to run.
    pub at_end: Option<String>,
    /// Taken for a pass that crashes, is refused or leaves an invalid program.
    pub failure_cost: f64,
}

/// What is paid for the state after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// As in the paper: minus the primary metric, as a share of those at the start.
    #[default]
    Paper,
    /// What this step removed of it, as a share of those at the start.
    Difference,
    /// What this step removed, as a share of what the compiler's own order removes:
    /// an episode's sum is its order ratio.
    OverDefault,
    /// By how much this step went below the lowest so far, as a share of what the compiler's own order
    /// removes: an episode's sum is the order ratio of its best state, and looking
    /// around costs nothing.
    Record,
    /// The same by logarithms: by how much this step raised `ln(0.1 + ratio)` of the best state.
    /// What is missing to the compiler's own order counts for more than what goes beyond it, as it does in a
    /// geometric mean, and programs on which the compiler's own order removes little do not drown the others.
    LogRecord,
    /// Nothing.
    Nothing,
}

/// What is added to a ratio before the logarithm of [`Objective::LogRecord`].
const RATIO_OFFSET: f64 = 0.1;

/// `φ(s) = −Σ weight · cost(s)` over the compiler's estimates, as a share of the same sum at the start, so
/// that programs of all sizes count alike and φ of the start is −1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Potential {
    /// Discount of the learning algorithm; it must be the same there.
    pub gamma: f64,
    /// What each cost weighs, by its name. Empty: as the compiler's profile has it.
    pub weights: BTreeMap<String, f64>,
}

impl Default for Potential {
    fn default() -> Potential {
        Potential { gamma: 0.99, weights: BTreeMap::new() }
    }
}

/// A [`Reward`] for one compiler: names are found once, not at every step.
#[derive(Clone, Debug)]
pub struct Rules {
    reward: Reward,
    /// Discount, and what each cost weighs, in the worker's order.
    shaping: Option<(f64, Cost)>,
    /// What is paid for at the end.
    pub at_end: Option<Figure>,
}

impl Rules {
    /// Finds what the reward names.
    pub fn new(reward: &Reward, profile: &dyn Profile, hello: &Hello) -> Result<Rules, EnvError> {
        let spec = profile.spec();
        let unknown = |what: &str, name: &str, known: Vec<&str>| {
            let known = known.join(", ");
            Err(EnvError::Config(format!("{what}: {name:?} is none of {known}")))
        };
        let shaping = match &reward.shaping {
            None => None,
            Some(potential) => {
                let mut weights = vec![0.0; hello.costs.len()];
                let usual = spec.work.iter().map(|(name, weight)| (*name, *weight));
                let named = potential.weights.iter().map(|(name, weight)| (&**name, *weight));
                let chosen: Vec<(&str, f64)> =
                    if potential.weights.is_empty() { usual.collect() } else { named.collect() };
                for (name, weight) in chosen {
                    let Some(at) = hello.cost(name) else {
                        let known = hello.costs.iter().map(|metric| &*metric.name).collect();
                        return unknown("the weights of the potential", name, known);
                    };
                    weights[at] = weight;
                }
                Some((potential.gamma, Cost::new(&weights)))
            }
        };
        let at_end = match &reward.at_end {
            None => None,
            Some(name) => match spec.figure(name) {
                Some(figure) => Some(figure),
                None => {
                    let known = spec.all_figures().map(|figure| spec.figure_name(figure)).collect();
                    return unknown("what is paid at the end", name, known);
                }
            },
        };
        Ok(Rules { reward: reward.clone(), shaping, at_end })
    }

    /// For one step, without what is paid at the end. `lowest` is the lowest before it.
    pub fn step(
        &self,
        start: &State,
        before: &State,
        after: &State,
        lowest: u64,
        default_reduction: Option<f64>,
        failed: bool,
    ) -> f64 {
        let size = |state: &State| state.counts.primary() as f64;
        let initial = size(start).max(1.0);
        let objective = match self.reward.objective {
            Objective::Paper => -size(after) / initial,
            Objective::Difference => (size(before) - size(after)) / initial,
            Objective::OverDefault => {
                (size(before) - size(after)) / default_reduction.unwrap_or(initial)
            }
            Objective::Record => {
                (lowest as f64 - size(after)).max(0.0) / default_reduction.unwrap_or(initial)
            }
            Objective::LogRecord => {
                let removed = |left: f64| (initial - left).max(0.0);
                let worth = |left: f64| {
                    (RATIO_OFFSET + removed(left) / default_reduction.unwrap_or(initial)).ln()
                };
                let lowest = lowest as f64;
                worth(lowest.min(size(after))) - worth(lowest)
            }
            Objective::Nothing => 0.0,
        };
        let shaping = self.shaping.as_ref().map_or(0.0, |(gamma, weights)| {
            gamma * potential(weights, start, after) - potential(weights, start, before)
        });
        objective + shaping - if failed { self.reward.failure_cost } else { 0.0 }
    }

    /// Whether the compiler's own result is needed at every step.
    pub fn needs_default(&self) -> bool {
        matches!(
            self.reward.objective,
            Objective::OverDefault | Objective::Record | Objective::LogRecord
        )
    }
}

/// `φ` of a state. Where the compiler gives no estimate, it is that of the start.
fn potential(weights: &Cost, start: &State, state: &State) -> f64 {
    let sum = |state: &State| -> Option<f64> {
        let cost = state.cost.as_ref()?;
        Some(weights.iter().zip(&cost[..]).map(|(weight, cost)| weight * cost).sum())
    };
    match (sum(state), sum(start)) {
        (Some(now), Some(initial)) if initial > 0.0 && now.is_finite() => -now / initial,
        _ => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_gym_engine::protocol::{Counts, Fingerprint};

    fn state(size: u64, flops: f64, transcendentals: f64) -> State {
        State {
            id: Fingerprint(size.into()),
            counts: Counts::new(&[size]),
            opcodes: Vec::new(),
            cost: Some(Cost::new(&[flops, transcendentals])),
        }
    }

    fn rules(reward: Reward) -> Rules {
        let shaping = reward.shaping.as_ref().map(|one| (one.gamma, Cost::new(&[1.0, 2.0])));
        Rules { reward, shaping, at_end: None }
    }

    #[test]
    fn the_paper_pays_minus_the_scaled_count() {
        let (start, after) = (state(100, 0.0, 0.0), state(80, 0.0, 0.0));
        let pay = |objective| {
            let reward = Reward { objective, ..Reward::default() };
            rules(reward).step(&start, &start, &after, 90, Some(40.0), false)
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
        assert_eq!(rules(reward).step(&start, &start, &start, 100, None, true), -1.25);
    }

    #[test]
    fn shaping_telescopes() {
        let states: Vec<State> =
            (0..20).map(|i| state(100, 1e6 / f64::from(i + 1), 1e3 + f64::from(i * i))).collect();
        let gamma = Potential::default().gamma;
        let rules = rules(Reward {
            objective: Objective::Nothing,
            shaping: Some(Potential::default()),
            ..Reward::default()
        });
        let phi = |state| potential(&Cost::new(&[1.0, 2.0]), &states[0], state);
        let mut sum = 0.0;
        for (t, pair) in states.windows(2).enumerate() {
            sum +=
                gamma.powi(t as i32) * rules.step(&states[0], &pair[0], &pair[1], 100, None, false);
        }
        let end = gamma.powi(19) * phi(&states[19]);
        let expected = end - phi(&states[0]);
        assert!((sum - expected).abs() < 1e-12, "{sum} {expected}");
        assert_eq!(phi(&states[0]), -1.0);
    }
}
