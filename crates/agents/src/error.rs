//! What can go wrong.

use std::{io, path::PathBuf};

use thiserror::Error;
use xla_gym_env::EnvError;
use xla_gym_rows::RowsError;

/// What can go wrong in training.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    Format {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A policy does not belong to the compiler at hand.
    #[error("the policy {name} cannot be used here: {why}")]
    Policy {
        /// Which one.
        name: String,
        /// Why.
        why: String,
    },
    /// Somebody else works in the folder of a run.
    #[error("{} is in use by another training run", .0.display())]
    Busy(PathBuf),
    /// A run was ended before its first update, so that nothing of it is left.
    #[error("interrupted before the first update: the same command begins again")]
    Interrupted,
    /// The weights are no numbers any more.
    #[error("the policy diverged in update {update}: try a smaller learning rate")]
    Diverged {
        /// In which update.
        update: u64,
    },
    /// Known orders cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The environment gave up.
    #[error(transparent)]
    Env(#[from] EnvError),
}
