//! What is written down of a run: a line for each update, and policies with their cards.

use std::{collections::BTreeMap, io::Write};

use xla_gym_records::Progress;

use super::Run;
use crate::{
    error::AgentError,
    policy::{Card, Interface, TrainedPolicy},
};

impl Run<'_> {
    pub(super) fn progress(
        &self,
        episode_return: f64,
        ratio: f64,
        validation: Option<f64>,
        figures: BTreeMap<String, f64>,
    ) -> Progress {
        Progress {
            run: self.setting.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            algorithm: self.config.name.clone(),
            seed: self.config.seed,
            step: self.done.steps,
            seconds: self.done.seconds,
            environment_seconds: self.done.environment_seconds,
            learner_seconds: self.done.learner_seconds,
            episode_return,
            ratio,
            validation,
            figures,
        }
    }

    pub(super) fn write_down(&mut self, progress: &Progress) -> Result<(), AgentError> {
        let folder = self.setting.folder;
        let step = progress.step;
        let mut write = || -> std::io::Result<()> {
            let line = serde_json::to_string(progress)? + "\n";
            self.log.write_all(line.as_bytes())?;
            let mut scalar = |tag: &str, value: f64| self.events.scalar(tag, step, value);
            scalar("episode/return", progress.episode_return)?;
            scalar("episode/order-ratio", progress.ratio)?;
            if let Some(ratio) = progress.validation {
                scalar("validation/order-ratio", ratio)?;
            }
            for (name, value) in &progress.figures {
                scalar(&format!("learner/{name}"), *value)?;
            }
            scalar("time/steps-per-second", step as f64 / progress.seconds.max(1e-9))?;
            scalar("time/environment", progress.environment_seconds)?;
            scalar("time/learner", progress.learner_seconds)?;
            self.events.flush()
        };
        write().map_err(|error| AgentError::Write { path: folder.to_owned(), error })
    }

    /// The policy as it is now, with its card.
    pub(super) fn policy(&self, validation: Option<f64>) -> TrainedPolicy {
        let world = &self.gatherer.world;
        let hello = world.engine().hello();
        let actions = 0..world.actions().len();
        TrainedPolicy {
            network: self.learner.policy().clone(),
            interface: Interface {
                engine: hello.engine.clone(),
                views: self.config.observation.policy.clone(),
                opcodes: hello.opcodes.clone(),
                costs: hello.costs.iter().map(|cost| cost.name.clone()).collect(),
                passes: actions.map(|action| world.action_name(action).to_owned()).collect(),
                traj_limit: self.config.environment.traj_limit,
                start: world.start_name().to_owned(),
            },
            card: Card {
                name: self.setting.folder.file_name().unwrap_or_default().to_string_lossy().into(),
                algorithm: self.config.algorithm.name().to_owned(),
                engine: world.engine().name(),
                benchmarks: self.config.benchmarks.clone(),
                programs: self.training.len(),
                seed: self.config.seed,
                steps: self.done.steps,
                seconds: self.done.seconds,
                validation,
                commit: self.setting.commit.map(str::to_owned),
                command: self.setting.command.clone(),
                configuration: self.config.to_toml().unwrap_or_default(),
                members: Vec::new(),
            },
        }
    }
}
