//! What is known of each graph.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize, Serializer};
use xla_gym_engine::protocol::Fingerprint;

/// The list of graphs with what is known of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name and version of the data set.
    pub name: String,
    /// The compiler that the counts and baselines come from.
    pub engine: String,
    /// The graphs, by id.
    pub graphs: Vec<Graph>,
}

/// One graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Such as `hlo-v1/gpt2/train-4l-adamw`.
    pub id: String,
    /// Model family.
    pub family: String,
    /// Families that resemble each other share one; splits keep it together.
    pub super_family: String,
    /// What it is, in a sentence.
    pub what: String,
    /// `forward`, `gradient`, `train`, `generate`, …
    pub kind: String,
    /// What emitted it.
    pub framework: String,
    /// How: depth, optimizer, …
    pub options: BTreeMap<String, serde_json::Value>,
    /// SHA-256 of the text.
    pub sha256: String,
    /// SHA-256 of the sequence of opcodes; unique in the data set.
    pub opcode_sequence: String,
    /// Identity as the engine sees it.
    pub fingerprint: Fingerprint,
    /// What the compiler counts, by name.
    pub counts: BTreeMap<String, u64>,
    /// What it estimates, by name.
    pub cost: Option<BTreeMap<String, f64>>,
    /// Instructions per opcode.
    pub opcodes: BTreeMap<String, u32>,
    /// Whether bf16 values occur.
    pub bf16: bool,
    /// On which side of each split it is.
    pub splits: BTreeMap<Split, Side>,
    /// What the compiler's own pipeline makes of it, or why it makes nothing.
    pub default: Result<Baseline, String>,
    /// Where it is packed.
    pub archive: String,
    /// Its name there.
    pub member: String,
}

/// What the compiler's own pipeline makes of a graph: figures by name, which its profile reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baseline(#[serde(serialize_with = "whole_numbers")] pub BTreeMap<String, f64>);

impl Baseline {
    /// A figure by name; zero if it is not there.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// Writes counts as what they are.
fn whole_numbers<S: Serializer>(
    values: &BTreeMap<String, f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| {
        let whole = value.fract() == 0.0 && value.abs() < 9e15;
        let number = if whole { (*value as i64).into() } else { serde_json::Value::from(*value) };
        (name, number)
    }))
}

/// The ways to divide the graphs into training and test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Inside the GPT-2 training loop, as in the paper's first experiment.
    Gpt2,
    /// All families on both sides, as in the paper's second experiment.
    Diverse,
    /// Whole super-families held out.
    Unseen,
    /// Models as large as people train them, of which none is trained on.
    FullSize,
}

impl Split {
    /// All of them.
    pub const ALL: [Split; 4] = [Split::Gpt2, Split::Diverse, Split::Unseen, Split::FullSize];

    /// Those of the data set that is trained on.
    pub const HLO_V1: [Split; 3] = [Split::Gpt2, Split::Diverse, Split::Unseen];
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Split::Gpt2 => "gpt2",
            Split::Diverse => "diverse",
            Split::Unseen => "unseen",
            Split::FullSize => "full-size",
        })
    }
}

/// The two sides of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// For training.
    Train,
    /// Never seen in training.
    Test,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Train => "train",
            Side::Test => "test",
        })
    }
}

impl Graph {
    /// Its instructions.
    pub fn size(&self) -> u64 {
        self.counts.get("instructions").copied().unwrap_or_default()
    }
}

impl Manifest {
    /// Finds a graph.
    pub fn graph(&self, id: &str) -> Option<&Graph> {
        self.graphs.iter().find(|graph| graph.id == id)
    }

    /// The graphs on one side of a split, in the order of the manifest.
    pub fn side(&self, split: Split, side: Side) -> impl Iterator<Item = &Graph> {
        self.graphs.iter().filter(move |graph| graph.splits.get(&split) == Some(&side))
    }
}
