//! How far a run is, and how it goes on from there.

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use xla_gym_records::Progress;

use super::{CHECKPOINT, CONFIGURATION, PROGRESS, Run};
use crate::{config::Config, error::AgentError, tensors::Tensors};

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Done {
    pub(super) updates: u64,
    pub(super) steps: u64,
    pub(super) episodes: u64,
    pub(super) seconds: f64,
    pub(super) environment_seconds: f64,
    pub(super) learner_seconds: f64,
    pub(super) best: Option<f64>,
    /// The last validation, if it was of the policy as it is now.
    pub(super) latest: Option<f64>,
    /// What has to be exceeded by the gain of the configuration, or the run stands still.
    pub(super) reference: Option<f64>,
    /// Validations since that was exceeded.
    pub(super) since: usize,
    pub(super) plateau: bool,
}

impl Done {
    fn words(&self) -> BTreeMap<String, String> {
        let mut words = BTreeMap::from([
            ("run.updates".to_owned(), self.updates.to_string()),
            ("run.steps".to_owned(), self.steps.to_string()),
            ("run.episodes".to_owned(), self.episodes.to_string()),
            ("run.seconds".to_owned(), self.seconds.to_string()),
            ("run.environment-seconds".to_owned(), self.environment_seconds.to_string()),
            ("run.learner-seconds".to_owned(), self.learner_seconds.to_string()),
            ("run.since".to_owned(), self.since.to_string()),
            ("run.plateau".to_owned(), self.plateau.to_string()),
        ]);
        for (name, figure) in [
            ("run.best", self.best),
            ("run.latest", self.latest),
            ("run.reference", self.reference),
        ] {
            words.extend(figure.map(|figure| (name.to_owned(), figure.to_string())));
        }
        words
    }

    fn from_words(tensors: &Tensors) -> Result<Done, String> {
        let float = |name: &str| {
            let word = tensors.words.get(name).ok_or_else(|| format!("{name} is missing"))?;
            word.parse::<f64>().map_err(|_| format!("{name} is not a number: {word:?}"))
        };
        Ok(Done {
            updates: tensors.number("run.updates")?,
            steps: tensors.number("run.steps")?,
            episodes: tensors.number("run.episodes")?,
            seconds: float("run.seconds")?,
            environment_seconds: float("run.environment-seconds")?,
            learner_seconds: float("run.learner-seconds")?,
            best: float("run.best").ok(),
            latest: float("run.latest").ok(),
            reference: float("run.reference").ok(),
            since: tensors.number("run.since")? as usize,
            plateau: tensors.words.get("run.plateau").is_some_and(|word| word == "true"),
        })
    }
}

impl Run<'_> {
    /// Saves everything that is needed to go on from here.
    pub(super) fn save(&mut self) -> Result<(), AgentError> {
        let mut tensors = Tensors::default();
        self.learner.save(&mut tensors);
        tensors.words.extend(self.done.words());
        tensors.write(&self.setting.folder.join(CHECKPOINT))?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Goes on from a checkpoint. What was written down after it is written anew.
    pub(super) fn resume(&mut self, path: &Path) -> Result<(), AgentError> {
        let wrong = |message| AgentError::Format { path: path.to_owned(), message };
        let tensors = Tensors::read(path)?;
        self.learner.load(&tensors).map_err(wrong)?;
        self.done = Done::from_words(&tensors).map_err(wrong)?;
        let folder = self.setting.folder;
        let log = folder.join(PROGRESS);
        let cannot = |error| AgentError::Write { path: log.clone(), error };
        let text = fs::read_to_string(&log).map_err(cannot)?;
        let kept: String = text
            .split_inclusive('\n')
            .take_while(|line| {
                let progress = serde_json::from_str::<Progress>(line);
                line.ends_with('\n')
                    && progress.is_ok_and(|progress| progress.step <= self.done.steps)
            })
            .collect();
        self.log.set_len(kept.len() as u64).map_err(cannot)?;
        Ok(())
    }
}

/// How far the run is that a checkpoint is of.
pub(super) fn resume_step(path: &Path) -> Result<u64, AgentError> {
    let wrong = |message| AgentError::Format { path: path.to_owned(), message };
    Tensors::read(path)?.number("run.steps").map_err(wrong)
}

/// A run goes on only with the configuration with which it began. One that never came to its first
/// checkpoint has not begun.
pub(super) fn same_configuration(config: &Config, folder: &Path) -> Result<(), AgentError> {
    let path = folder.join(CONFIGURATION);
    let text = config.to_toml()?;
    let begun = folder.join(CHECKPOINT).exists();
    match fs::read_to_string(&path) {
        Ok(before) if before == text => Ok(()),
        // Written by an earlier version, in other words.
        Ok(before)
            if Config::parse(&before, &[])
                .is_ok_and(|before| before.to_toml().ok() == Some(text.clone())) =>
        {
            Ok(())
        }
        Ok(_) if begun => Err(AgentError::Config(format!(
            "{} was begun with another configuration (see {CONFIGURATION} there); choose another \
             folder, or remove it",
            folder.display()
        ))),
        _ => fs::write(&path, text).map_err(|error| AgentError::Write { path, error }),
    }
}
