//! A world with one program in it, as several commands need it.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Result, anyhow};
use xla_gym_data::Benchmarks;
use xla_gym_engine::default_limits;
use xla_gym_env::{CacheConfig, World, WorldConfig};
use xla_gym_optimize::Watch;

use crate::{context::Context, progress::Progress};

/// Reads the program and starts the compiler.
pub fn world(
    context: &Context,
    file: &str,
    start: &str,
    cache: Option<PathBuf>,
    progress: &Progress,
) -> Result<Arc<World>> {
    world_with(context, file, start, cache, default_limits().pass_millis, progress)
}

/// The same, with a time limit for a pass that holds if nobody said otherwise.
pub fn world_with(
    context: &Context,
    file: &str,
    start: &str,
    cache: Option<PathBuf>,
    pass_millis: u64,
    progress: &Progress,
) -> Result<Arc<World>> {
    let profile = context.profile(file);
    let config = WorldConfig {
        engine: context.config_for_one(&*profile, pass_millis)?,
        profile,
        start: start.to_owned(),
        passes: Vec::new(),
        cache: CacheConfig { disk: cache, ..CacheConfig::default() },
    };
    progress.doing("reading the program");
    let found = Benchmarks::find_files([file], &config.profile.spec().files)?;
    if found.programs.len() != 1 {
        return Err(anyhow!("{file} stands for {} programs; name one", found.programs.len()));
    }
    let world = Arc::new(World::with_programs(config, found)?);
    // A program that cannot be read is refused by what it is, before anything is done with it.
    world.session(0)?;
    Ok(world)
}

impl Watch for Progress {
    fn doing(&self, what: &str) {
        Progress::doing(self, what);
    }

    fn counting(&self, total: u64, unit: &str) {
        Progress::counting(self, total, unit);
    }

    fn at(&self, done: u64) {
        self.set(done);
    }

    fn done_counting(&self) {
        self.spinning();
    }
}
