//! A program of demonstrations, and the world in which it is the only one.

use std::{cell::OnceCell, sync::Arc};

use xla_gym_agents::Demonstration;
use xla_gym_data::Benchmarks;
use xla_gym_engine::{EngineConfig, protocol::PassId};
use xla_gym_env::{CacheConfig, EnvError, Walk, World, WorldConfig};
use xla_gym_profile::Spec;

use crate::Setting;

/// A world for each program, whose episodes begin with the program as it came: what is remembered of
/// one is of no use to another.
pub(crate) fn world(
    setting: &Setting<'_>,
    found: Benchmarks,
    passes: &[String],
) -> Result<Arc<World>, EnvError> {
    let config = WorldConfig {
        // What other calls met must not change this one.
        engine: EngineConfig { quarantine: None, ..setting.engine.clone() },
        start: setting.profile.spec().starts[0].name.to_owned(),
        profile: setting.profile.clone(),
        passes: passes.to_vec(),
        cache: CacheConfig::default(),
    };
    Ok(Arc::new(World::with_programs(config, found)?))
}

/// A program that is loaded when it is needed.
pub(crate) struct Program<'a> {
    setting: &'a Setting<'a>,
    name: &'a str,
    world: OnceCell<Arc<World>>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(setting: &'a Setting<'a>, name: &'a str) -> Program<'a> {
        Program { setting, name, world: OnceCell::new() }
    }

    pub(crate) fn world(&self) -> Result<&Arc<World>, EnvError> {
        if let Some(world) = self.world.get() {
            return Ok(world);
        }
        let world = world(self.setting, Benchmarks::find([self.name])?, &[])?;
        Ok(self.world.get_or_init(|| world))
    }
}

/// The starts from which orders are worth learning: of those that are compared by the same figure, the
/// first.
pub(crate) fn starts(spec: &Spec) -> Vec<usize> {
    let figure = |start: &usize| spec.starts[*start].counts_as;
    let is_first = |start: &usize| (0..*start).all(|earlier| figure(&earlier) != figure(start));
    (0..spec.starts.len()).filter(is_first).collect()
}

/// How a demonstration calls a start: nothing is said of the program as it came.
pub(crate) fn start_name(spec: &Spec, start: usize) -> Option<String> {
    (start > 0).then(|| spec.starts[start].name.to_owned())
}

/// The start at which an order begins.
pub(crate) fn start_of(world: &World, order: &Demonstration) -> Result<usize, EnvError> {
    let Some(name) = &order.start else { return Ok(world.start()) };
    world.profile().spec().start(name).ok_or_else(|| {
        EnvError::Config(format!("{name:?} is no start of {}", world.engine().name()))
    })
}

/// The passes after which an order begins, those that lead to its start among them.
pub(crate) fn prefix(world: &World, order: &Demonstration) -> Result<Vec<PassId>, EnvError> {
    let start = world.start_passes(0, start_of(world, order)?)?;
    Ok([&start[..], &ids(world, &order.after)?].concat())
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

/// What tests on the toy compiler are made with.
#[cfg(test)]
pub(crate) fn toy() -> Setting<'static> {
    use xla_gym_env::Profile;
    let profile = Arc::new(xla_gym_toy_profile::Toy::default());
    let engine = profile.engine_config().expect("`cargo build -p xla-gym-toy-worker` comes first");
    Setting { profile, engine, stop: Arc::default(), watch: &() }
}

/// A world of a program of the tests' own set.
#[cfg(test)]
pub(crate) fn world_of(name: &str) -> Arc<World> {
    world(&toy(), Benchmarks::find([file_of(name)]).unwrap(), &[]).unwrap()
}

#[cfg(test)]
pub(crate) fn file_of(name: &str) -> String {
    format!("{}/../../testdata/toy/{name}.toy", env!("CARGO_MANIFEST_DIR"))
}
