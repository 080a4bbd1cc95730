//! What can go wrong with an environment, apart from what passes do.

use xla_gym_data::BenchmarkError;
use xla_gym_engine::EngineError;
use xla_gym_transitions::TransitionsError;

/// Why an environment cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The compiler is not there, or a program cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A benchmark cannot be found or read.
    #[error(transparent)]
    Benchmark(#[from] BenchmarkError),
    /// The disk cache cannot be opened.
    #[error(transparent)]
    Cache(#[from] TransitionsError),
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// `step` before the first `reset`, or after the end of an episode.
    #[error("{0}: call reset first")]
    NotRunning(&'static str),
    /// There is no such action.
    #[error("there is no action {action}; there are {count}, counted from 0")]
    NoSuchAction {
        /// As asked for.
        action: usize,
        /// How many there are.
        count: usize,
    },
    /// A state does not fit this environment.
    #[error("this state cannot be restored here: {0}")]
    State(String),
}
