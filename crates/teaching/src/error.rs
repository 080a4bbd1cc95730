//! What can go wrong.

use thiserror::Error;
use xla_gym_agents::AgentError;
use xla_gym_env::EnvError;
use xla_gym_rows::RowsError;

/// What can go wrong in teaching.
#[derive(Debug, Error)]
pub enum TeachError {
    /// Something is wrong with a program or its compiler.
    #[error("{program}: {error}")]
    Program {
        /// Which program.
        program: String,
        /// What.
        error: EnvError,
    },
    /// The compiler is not there, or benchmarks cannot be found.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A configuration makes no sense, or training failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Demonstrations cannot be read or written.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// It was asked to end. The same call goes on.
    #[error("interrupted")]
    Interrupted,
}

impl TeachError {
    /// A configuration that makes no sense.
    pub(crate) fn config(message: impl Into<String>) -> TeachError {
        AgentError::Config(message.into()).into()
    }

    pub(crate) fn of(program: &str) -> impl Fn(EnvError) -> TeachError {
        move |error| TeachError::Program { program: program.to_owned(), error }
    }
}
