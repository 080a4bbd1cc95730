//! What can go wrong.

use xla_gym_engine::{EngineError, protocol::Fingerprint};
use xla_gym_env::EnvError;

/// Why a program cannot be optimized.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptimizeError {
    /// Nobody knows what is to be made small.
    #[error("{0}")]
    Objective(String),
    /// A program that cannot be run, where its time is the objective.
    #[error("its time cannot be measured: {0}")]
    NotRunnable(String),
    /// A recipe for another program.
    #[error(
        "the recipe is for another program ({recipe}, fingerprint {wanted}; this one has {got}); \
         use --force to apply it all the same, or `xla-gym optimize` to make one for this program"
    )]
    OtherProgram {
        /// What the recipe calls its program.
        recipe: String,
        /// Of the recipe's program.
        wanted: Fingerprint,
        /// Of this program.
        got: Fingerprint,
    },
    /// A recipe that begins elsewhere.
    #[error(
        "the recipe begins at the start {recipe:?}, and {world:?} was asked for; use the recipe's, or \
         make one with `xla-gym optimize`"
    )]
    Start {
        /// Of the recipe.
        recipe: String,
        /// Of this world.
        world: String,
    },
    /// A recipe that goes on by a pipeline that this compiler does not have.
    #[error("the recipe goes on by the pipeline {pipeline:?}, which this compiler does not have")]
    NoPipeline {
        /// The pipeline.
        pipeline: String,
    },
    /// A recipe that leaves out of the compiler's pipeline what nobody has left out without harm.
    #[error(
        "the recipe leaves out {pass:?}, which is not among the passes that {pipeline} can do \
         without; take it out of disabled_passes, or make a recipe with `xla-gym optimize`"
    )]
    NotOptional {
        /// The pass.
        pass: String,
        /// How the compiler's pipeline is called.
        pipeline: &'static str,
    },
    /// Remembered passes that do not take place any more.
    #[error(
        "{0} cannot be repeated: a pass of it took place before and does not now, perhaps because \
         it takes about as long as --pass-limit allows"
    )]
    Lost(String),
    /// The compiler.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The walk among its states.
    #[error(transparent)]
    Env(#[from] EnvError),
}
