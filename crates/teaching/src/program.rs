//! A program of demonstrations, and the world in which it is the only one.

use std::{cell::OnceCell, sync::Arc};

use xla_gym_agents::Demonstration;
use xla_gym_data::Benchmarks;
use xla_gym_engine::{EngineConfig, protocol::PassId};
use xla_gym_env::{EnvError, Profile, Walk, World, WorldConfig};

/// A world for each program: what is remembered of one is of no use to another.
pub(crate) fn world(
    profile: &Arc<dyn Profile>,
    engine: &EngineConfig,
    found: Benchmarks,
    passes: &[String],
) -> Result<Arc<World>, EnvError> {
    let config = WorldConfig {
        // What other calls met must not change this one.
        engine: EngineConfig { quarantine: None, ..engine.clone() },
        passes: passes.to_vec(),
        ..WorldConfig::new(profile.clone())?
    };
    Ok(Arc::new(World::with_programs(config, found)?))
}

/// A program that is loaded when it is needed.
pub(crate) struct Program<'a> {
    profile: &'a Arc<dyn Profile>,
    engine: &'a EngineConfig,
    name: &'a str,
    world: OnceCell<Arc<World>>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(
        profile: &'a Arc<dyn Profile>,
        engine: &'a EngineConfig,
        name: &'a str,
    ) -> Program<'a> {
        Program { profile, engine, name, world: OnceCell::new() }
    }

    pub(crate) fn world(&self) -> Result<&Arc<World>, EnvError> {
        if let Some(world) = self.world.get() {
            return Ok(world);
        }
        let world = world(self.profile, self.engine, Benchmarks::find([self.name])?, &[])?;
        Ok(self.world.get_or_init(|| world))
    }
}

/// The passes after which an order begins, those that lead to its start among them.
pub(crate) fn prefix(world: &World, order: &Demonstration) -> Result<Vec<PassId>, EnvError> {
    let start = start_of(world, order.start.as_deref())?;
    Ok([world.start_passes(0, start)?.to_vec(), ids(world, &order.after)?].concat())
}

/// The position of a start by its name; the first, if nothing is said.
pub(crate) fn start_of(world: &World, name: Option<&str>) -> Result<usize, EnvError> {
    let spec = world.profile().spec();
    name.map_or(Some(0), |name| spec.start(name)).ok_or_else(|| {
        let known = spec.start_names().join(", ");
        EnvError::Config(format!("{:?} is no start; there are {known}", name.unwrap_or_default()))
    })
}

/// Passes by their names.
pub(crate) fn ids(world: &World, names: &[String]) -> Result<Vec<PassId>, EnvError> {
    Ok(world.engine().passes(names.iter().map(String::as_str))?)
}

/// Where passes lead.
pub(crate) fn along(
    world: &Arc<World>,
    prefix: &[PassId],
    passes: &[PassId],
) -> Result<Walk, EnvError> {
    let mut walk = Walk::begin_after(world, 0, prefix)?;
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}

#[cfg(test)]
pub(crate) fn demonstration(benchmark: &str, passes: &[&str]) -> Demonstration {
    Demonstration {
        benchmark: benchmark.to_owned(),
        passes: passes.iter().map(|pass| (*pass).to_owned()).collect(),
        ..Demonstration::default()
    }
}

#[cfg(test)]
pub(crate) fn world_of(benchmark: &str) -> Arc<World> {
    let profile: Arc<dyn Profile> = Arc::new(xla_gym_xla_profile::Xla::default());
    let engine = profile.engine_config().unwrap();
    world(&profile, &engine, Benchmarks::find([benchmark]).unwrap(), &[]).unwrap()
}
