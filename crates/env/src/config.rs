//! How one environment behaves.

use serde::{Deserialize, Serialize};

use crate::{reward::Reward, sampler::Sampler};

/// How one environment behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnvConfig {
    /// Steps in an episode.
    pub traj_limit: usize,
    /// What is paid.
    pub reward: Reward,
    /// Whether the last action ends the episode.
    pub stop_action: bool,
    /// In which order the benchmarks come.
    pub sampler: Sampler,
    /// What the action mask knows.
    pub mask: MaskKind,
}

impl Default for EnvConfig {
    fn default() -> EnvConfig {
        EnvConfig {
            traj_limit: 40,
            reward: Reward::default(),
            stop_action: false,
            sampler: Sampler::default(),
            mask: MaskKind::default(),
        }
    }
}

/// What the action mask knows of the current state. It masks actions that do nothing here or fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskKind {
    /// What this environment has tried itself since it was made, or seeded. The same in every run.
    #[default]
    Own,
    /// Whatever the cache knows, also from other environments and earlier runs. Knows more, but
    /// differs from run to run.
    Shared,
    /// Everything, by trying every pass on every new state. The same in every run, and slow.
    Exact,
}
