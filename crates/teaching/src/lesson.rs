//! One lesson: policies of several seeds learn the same demonstrations, and become one.

use std::path::{Path, PathBuf};

use xla_gym_agents::{AgentError, Config, Progress, TrainedPolicy, together, train};
use xla_gym_rows::write;

use crate::{Setting, TeachError, Watch, by_program::read_sorted};

/// The demonstrations of a lesson, in its folder.
const ORDERS: &str = "demonstrations.jsonl";

/// A lesson.
pub(crate) struct Lesson<'a> {
    /// Files with demonstrations.
    pub orders: Vec<PathBuf>,
    /// How to learn.
    pub config: &'a Config,
    /// The seed of the first policy; the others have those that follow.
    pub seed: u64,
    /// How many policies.
    pub members: u64,
    /// The command that is behind it, for the model card.
    pub command: &'a str,
    /// The commit of the software, likewise.
    pub commit: Option<&'a str>,
}

impl Lesson<'_> {
    /// Learns. `folder` is for what is in between; those of its policies that are there already are
    /// not trained again.
    pub(crate) fn learn(
        &self,
        folder: &Path,
        output: &Path,
        setting: &Setting<'_>,
    ) -> Result<TrainedPolicy, TeachError> {
        if output.exists() {
            return Ok(TrainedPolicy::read(output)?);
        }
        std::fs::create_dir_all(folder)
            .map_err(|error| AgentError::Write { path: folder.to_owned(), error })?;
        let orders: Vec<&Path> = self.orders.iter().map(PathBuf::as_path).collect();
        write(&folder.join(ORDERS), &read_sorted(&orders)?)?;
        let seeds = self.seed..self.seed + self.members;
        let members =
            seeds.map(|seed| self.member(seed, folder, setting)).collect::<Result<Vec<_>, _>>()?;
        let policy = match &members[..] {
            [alone] => alone.clone(),
            several => {
                together(&self.config.name, self.command, several).map_err(TeachError::config)?
            }
        };
        policy.write(output)?;
        Ok(policy)
    }

    fn member(
        &self,
        seed: u64,
        folder: &Path,
        setting: &Setting<'_>,
    ) -> Result<TrainedPolicy, TeachError> {
        setting.go_on()?;
        let finished = folder.join(format!("seed-{seed}.safetensors"));
        if finished.exists() {
            return Ok(TrainedPolicy::read(&finished)?);
        }
        let mut config = self.config.clone();
        config.seed = seed;
        config.folder = folder.to_owned();
        if let Some(imitation) = &mut config.imitation {
            imitation.orders = ORDERS.into();
        }
        let run = xla_gym_agents::Setting {
            folder: &folder.join(format!("seed-{seed}")),
            profile: setting.profile.clone(),
            engine: setting.engine.clone(),
            command: self.command.to_owned(),
            commit: self.commit,
            checkpoint_seconds: 60.0,
            stop: &setting.stop,
        };
        let mut watch = Learning { watch: setting.watch, seed };
        let trained = match train(&config, &run, &mut watch) {
            Err(AgentError::Interrupted) => return Err(TeachError::Interrupted),
            other => other?,
        };
        if trained.interrupted {
            return Err(TeachError::Interrupted);
        }
        let policy = TrainedPolicy::read(&trained.policy)?;
        policy.write(&finished)?;
        Ok(policy)
    }
}

/// Passes on what is said of a training run.
struct Learning<'a> {
    watch: &'a dyn Watch,
    seed: u64,
}

impl xla_gym_agents::Watch for Learning<'_> {
    fn doing(&mut self, what: &str) {
        self.watch.doing(&format!("seed {}, {what}", self.seed));
    }

    fn warn(&mut self, what: &str) {
        self.watch.say(&format!("seed {}: {what}", self.seed));
    }

    fn updated(&mut self, progress: &Progress, of: u64) {
        self.watch.doing(&format!(
            "seed {}, {} of {of} steps: order ratio {:.3}",
            self.seed, progress.step, progress.ratio
        ));
    }
}
