//! What to do with a program, and what speaks for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xla_gym_oracle::Report;
use xla_gym_profile::Ratio;
use xla_gym_protocol::Fingerprint;

/// The format of recipes.
pub const VERSION: u32 = 2;

/// What to do with a program: passes to run on it, and passes of the compiler's own pipeline to
/// leave out afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The format, [`VERSION`].
    pub version: u32,
    /// The compiler that it was made with.
    pub engine: String,
    /// The program that it was made for.
    pub program: Program,
    /// Where the passes begin: a start of the compiler's profile, by name.
    pub start: String,
    /// The passes. Empty, with nothing disabled: the compiler's own order is the best known.
    pub passes: Vec<String>,
    /// Which of the compiler's own pipelines follows. Empty: the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pipeline: String,
    /// What is left out there: the passes of the pipeline that these replace.
    pub disabled_passes: Vec<String>,
    /// What was to be made small, as it is written on the command line.
    pub objective: String,
    /// By how much the objective shrank: default over result. 1 if nothing was gained.
    pub gain: f64,
    /// What speaks for it.
    pub evidence: Evidence,
    /// Whether it came from elsewhere and nobody has tried it here yet. Only a store says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl Recipe {
    /// Whether it says to leave the compiler to its own order.
    pub fn is_default(&self) -> bool {
        self.passes.is_empty() && self.disabled_passes.is_empty() && self.pipeline.is_empty()
    }
}

/// The program of a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Where it came from. Says nothing about what it is; the fingerprint does.
    pub name: String,
    /// Its content.
    pub fingerprint: Fingerprint,
    /// Its instructions.
    pub instructions: u64,
}

/// What was measured when a recipe was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What the result is worth beside the compiler's own, stage by stage of its profile.
    pub stages: Vec<StageEvidence>,
    /// Figures of the final program by name, as the compiler's profile has them: default and result.
    pub figures: BTreeMap<String, (f64, f64)>,
    /// Whether both compute the same, if it was tried.
    pub outputs: Option<Report>,
    /// Run time and compile time of both, if they were measured.
    pub timing: Option<Timing>,
    /// How it was found.
    pub search: SearchRecord,
    /// Candidates that were dropped, with the reason.
    pub dropped: Vec<String>,
}

/// What a result is worth at one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageEvidence {
    /// Which, by the name that the compiler's profile gives it.
    pub stage: String,
    /// At the start, by the compiler itself, and in the result.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// How the result compares; above 1 is better. Absent where it means nothing.
    pub value: Option<f64>,
}

impl Evidence {
    /// One of the stages.
    pub fn stage(&self, name: &str) -> Option<&StageEvidence> {
        self.stages.iter().find(|evidence| evidence.stage == name)
    }
}

/// How a recipe was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// By which method.
    pub method: String,
    /// With which luck.
    pub seed: u64,
    /// Passes that were charged to the budget.
    pub passes: u64,
    /// Runs of the compiler's whole pipeline beside them.
    pub pipelines: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Why it ended.
    pub stopped: String,
}

/// Times of the default and the result, measured in turn in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Time of one run.
    pub run: Paired,
    /// Time to compile.
    pub compile: Paired,
}

/// Two series of measurements, taken in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The default.
    pub default: Series,
    /// The result.
    pub result: Series,
    /// Default over result.
    pub speedup: f64,
    /// 95% confidence interval of the speed-up.
    pub interval: (f64, f64),
    /// The default beside second compilations of itself: what no change at all looks like.
    pub controls: Vec<Control>,
    /// Whether the difference is too small to be told from noise.
    pub within_noise: bool,
}

/// The default beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Default over its second.
    pub speedup: f64,
    /// 95% confidence interval.
    pub interval: (f64, f64),
}

/// A series of measurements, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// How many.
    pub count: u32,
    /// The one in the middle.
    pub median: f64,
    /// A quarter is below this.
    pub lower_quartile: f64,
    /// A quarter is above this.
    pub upper_quartile: f64,
}
