//! What a run trains on: its world, where episodes begin, and which programs are held out.

use std::{collections::HashSet, sync::Arc};

use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::EngineConfig;
use xla_gym_env::{CacheConfig, EnvError, Profile, World, WorldConfig};

use crate::{
    config::{Config, Environment},
    error::AgentError,
};

/// The world in which a configuration trains.
pub fn make_world(
    config: &Config,
    profile: Arc<dyn Profile>,
    engine: EngineConfig,
) -> Result<World, AgentError> {
    let mut found = Benchmarks::find(&config.benchmarks).map_err(EnvError::from)?;
    // One that is named twice must not be both trained on and held out.
    let mut seen = HashSet::new();
    found.programs.retain(|program| seen.insert(program.name()));
    found.programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= config.largest,
        _ => true,
    });
    if found.programs.is_empty() && !seen.is_empty() {
        let largest = config.largest;
        let message = format!("largest = {largest}: all {} programs are larger", seen.len());
        return Err(AgentError::Config(message));
    }
    let usual = profile.spec().starts[0].name;
    let world = WorldConfig {
        profile,
        // What other runs met must not change this one.
        engine: EngineConfig { quarantine: None, ..engine },
        start: config.environment.start.clone().unwrap_or_else(|| usual.to_owned()),
        passes: config.environment.passes.clone(),
        cache: CacheConfig { disk: config.environment.cache.clone(), ..CacheConfig::default() },
    };
    Ok(World::with_programs(world, found)?)
}

/// Starts at which episodes begin besides that of the world, with their shares.
pub(super) fn other_starts(
    environment: &Environment,
    world: &World,
) -> Result<Vec<(usize, f64)>, AgentError> {
    let spec = world.profile().spec();
    let find = |(name, share): (&String, &f64)| {
        let refuse = |why: String| {
            AgentError::Config(format!("environment.other-starts: {name:?} is {why}"))
        };
        let names = || format!("no start of {}: {}", spec.engine, spec.start_names().join(", "));
        let start = spec.start(name).ok_or_else(|| refuse(names()))?;
        if start == world.start() {
            return Err(refuse("where all others begin anyway".to_owned()));
        }
        Ok((start, *share))
    };
    let shares = environment.other_starts.iter().filter(|(_, share)| **share > 0.0);
    shares.map(find).collect()
}

/// Programs to train on, by size, and held-out programs.
pub(super) fn divide(
    config: &Config,
    world: &World,
) -> Result<(Vec<usize>, Vec<usize>), AgentError> {
    let mut programs = (0..world.len())
        .map(|benchmark| Ok((world.size(benchmark)?, benchmark)))
        .collect::<Result<Vec<_>, EnvError>>()?;
    programs.sort();
    let programs: Vec<usize> = programs.into_iter().map(|(_, benchmark)| benchmark).collect();
    let every = config.validation.every;
    if every == 0 || programs.len() < 2 {
        return Ok((programs, Vec::new()));
    }
    let kept = |position: usize| position % every == every / 2;
    let mut apart: Vec<usize> =
        programs.iter().enumerate().filter(|(p, _)| kept(*p)).map(|(_, b)| *b).collect();
    // If there are too many, the ones that are taken are of all sizes.
    let most = config.validation.most.max(1);
    if apart.len() > most {
        apart = (0..most).map(|index| apart[index * apart.len() / most]).collect();
    }
    let training: Vec<usize> =
        programs.into_iter().filter(|benchmark| !apart.contains(benchmark)).collect();
    if training.is_empty() {
        let message = "validation.every: no program is left to train on";
        return Err(AgentError::Config(message.to_owned()));
    }
    Ok((training, apart))
}
