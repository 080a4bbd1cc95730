//! Programs whose inputs are too large to be made.
//!
//! A file of a hundred bytes can ask for terabytes. Where a program is going to be run, Python hears
//! of it before anything is allocated.

use xla_gym_engine::EngineError;
use xla_gym_env::{Env, EnvError, Figure, World};
use xla_gym_oracle::too_large;

/// Refuses a program that is going to be run, and whose inputs would be too large.
pub fn check(world: &World, benchmark: usize) -> Result<(), EnvError> {
    let signature = world.engine().load(&world.source(benchmark)?)?.signature()?;
    let Some(message) = too_large(&signature) else { return Ok(()) };
    Err(EngineError::Load { name: world.benchmark_name(benchmark).to_owned(), message }.into())
}

/// The same at the beginning of an episode, if its end is going to be timed.
pub fn check_episode(env: &Env) -> Result<(), EnvError> {
    let spec = env.world().profile().spec();
    match env.config().reward.at_end.as_deref().and_then(|name| spec.figure(name)) {
        Some(Figure::RunTime) => check(env.world(), env.benchmark()?),
        _ => Ok(()),
    }
}
