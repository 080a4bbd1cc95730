//! How far a training run is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
