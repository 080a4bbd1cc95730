//! The lines that other commands write.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::Outputs;

/// What was counted at one stage of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name, by which [`Header`](super::Header) says more of it.
    pub name: String,
    /// In the program as it came, where that means anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<f64>,
    /// By the baseline.
    pub default: f64,
    /// By the order in question. As if nothing had been done, if outputs were not found equal.
    pub result: f64,
    /// What would have counted, had outputs been found equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<f64>,
    /// Whether the program of this stage computes what the program as emitted does. Absent where it
    /// is the one of the stage before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Outputs>,
    /// The order, if it is another one than that of the stage before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<Vec<String>>,
}

impl Stage {
    /// What an order removed, beside what the baseline removes.
    pub fn new(name: impl Into<String>, initial: f64, default: f64, result: f64) -> Stage {
        Stage { initial: Some(initial), ..Stage::left(name, default, result) }
    }

    /// What an order leaves, beside what the baseline leaves.
    pub fn left(name: impl Into<String>, default: f64, result: f64) -> Stage {
        Stage { name: name.into(), default, result, ..Stage::default() }
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
    /// What was counted, stage by stage.
    pub stages: Vec<Stage>,
    /// How long it took.
    pub seconds: f64,
    /// Why the compiler did not take what came of a stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why some figures do not count, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The pass after which outputs are no longer found equal, if it was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guilty: Option<String>,
}

impl Outcome {
    /// What was counted at a stage, if anything was.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// The same, to be changed.
    pub fn stage_mut(&mut self, name: &str) -> Option<&mut Stage> {
        self.stages.iter_mut().find(|stage| stage.name == name)
    }

    /// Everything that was run, with the name of its stage.
    pub fn verdicts(&self) -> impl Iterator<Item = (&str, &Outputs)> {
        self.stages.iter().enumerate().filter_map(|(index, stage)| {
            // There is no stage before the first.
            let unknown = (index == 0).then_some(&Outputs::Unchecked);
            Some((stage.name.as_str(), stage.outputs.as_ref().or(unknown)?))
        })
    }

    /// Whether all of its figures rest on outputs that were found equal.
    pub fn is_proven(&self) -> bool {
        !self.stages.is_empty() && self.verdicts().all(|(_, outputs)| *outputs == Outputs::Equal)
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
