//! The lines that other commands write.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::Outputs;

/// Operations of a program: as it came, after XLA's own order, and after the order in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts3 {
    /// As it came.
    pub initial: u64,
    /// After XLA's own order.
    pub default: u64,
    /// After the order in question.
    pub result: u64,
}

impl Counts3 {
    /// What the order removed, beside what XLA's own removes. Above 1 is better. There is none
    /// where XLA's own removes nothing.
    pub fn ratio(&self) -> Option<f64> {
        let Counts3 { initial, default, result } = *self;
        (initial > default).then(|| (initial as f64 - result as f64) / (initial - default) as f64)
    }
}

/// How a contestant came to its order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// By walking once, as its policy says.
    #[default]
    Rollout,
    /// By trying many orders.
    Search,
    /// Without having learnt anything.
    Baseline,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Kind::Rollout => "rollout",
            Kind::Search => "search",
            Kind::Baseline => "baseline",
        })
    }
}

/// One graph, one contestant, one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The graph's name.
    pub graph: String,
    /// The splits that it belongs to.
    pub splits: Vec<String>,
    /// Who found the order: `ppo`, `random`, `default`.
    pub contestant: String,
    /// How.
    pub kind: Kind,
    /// The seed of this attempt.
    pub seed: u64,
    /// Which weights, where a policy had a part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// How many runs of passes were allowed.
    pub budget: u64,
    /// How many were used.
    pub charged: u64,
    /// At the best state on the way; at the start, if that state was run and not found equal.
    pub order: Counts3,
    /// At the end of the trajectory; likewise.
    #[serde(default)]
    pub end: Option<Counts3>,
    /// Of the program made legal for code generation; likewise.
    #[serde(default)]
    pub legal: Option<Counts3>,
    /// Kernels of the final program.
    #[serde(default)]
    pub kernels: Option<u64>,
    /// Kernels of the final program by XLA's own order.
    #[serde(default)]
    pub kernels_default: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// The order.
    #[serde(default)]
    pub passes: Vec<String>,
    /// The order on the program made legal.
    #[serde(default)]
    pub legal_passes: Vec<String>,
    /// Why XLA's pipeline did not take what came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether the best state computes what the program as emitted does.
    #[serde(default)]
    pub outputs: Outputs,
    /// Whether the state at the end of the trajectory does, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_outputs: Option<Outputs>,
    /// Whether what came of the program made legal does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal_outputs: Option<Outputs>,
    /// Figures that do not count, because outputs were not found equal.
    #[serde(default, skip_serializing_if = "Claimed::is_empty")]
    pub claimed: Claimed,
    /// Why they do not, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The pass after which outputs are no longer found equal, if it was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guilty: Option<String>,
}

/// Figures of states whose outputs were not found equal: what would have counted otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claimed {
    /// Operations at the best state on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    /// Operations at the end of the trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Operations of the program made legal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal: Option<u64>,
    /// Kernels of the final program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<u64>,
}

impl Claimed {
    /// Whether everything counts.
    pub fn is_empty(&self) -> bool {
        *self == Claimed::default()
    }
}

impl Outcome {
    /// Everything that was run, with what it is.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, &Outputs)> {
        let further = [("end", &self.end_outputs), ("legal", &self.legal_outputs)];
        let further =
            further.into_iter().filter_map(|(what, outputs)| Some((what, outputs.as_ref()?)));
        std::iter::once(("order", &self.outputs)).chain(further)
    }

    /// Whether all of its figures rest on outputs that were found equal.
    pub fn is_proven(&self) -> bool {
        self.verdicts().all(|(_, outputs)| *outputs == Outputs::Equal)
    }
}

/// One update of a training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The run's name.
    pub run: String,
    /// What learns.
    pub algorithm: String,
    /// The seed of the run.
    pub seed: u64,
    /// Steps of the environment so far.
    pub step: u64,
    /// Time since the run began.
    pub seconds: f64,
    /// The part of it spent in environments.
    pub environment_seconds: f64,
    /// The part of it spent learning.
    pub learner_seconds: f64,
    /// The mean return of this update's episodes.
    pub episode_return: f64,
    /// The geometric mean of the ratios of this update's episodes.
    pub ratio: f64,
    /// The ratio on validation graphs, where it was taken.
    #[serde(default)]
    pub validation: Option<f64>,
    /// Losses, entropy, and the like.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_what_was_removed_beside_what_the_default_removes() {
        let check = |initial, default, result, expected| {
            assert_eq!(Counts3 { initial, default, result }.ratio(), expected);
        };
        check(100, 80, 80, Some(1.0));
        check(100, 80, 70, Some(1.5));
        check(100, 80, 100, Some(0.0));
        check(100, 80, 120, Some(-1.0));
        check(100, 100, 90, None);
        check(100, 101, 90, None);
    }
}
