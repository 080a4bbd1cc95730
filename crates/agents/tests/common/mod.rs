//! A toy compiler to learn on, whose answers can be found by trying everything.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use xla_gym_agents::{Config, Setting, Trained, make_world, train};
use xla_gym_engine::{EngineConfig, protocol::Limits};
use xla_gym_env::World;
use xla_gym_toy_profile::Toy;

/// Each needs its passes in an order of its own.
const PROGRAMS: [&str; 3] = [
    "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n",
    "toy\ninput 0\ncopy 0\nconst 0\nadd 1 2\ncopy 3\ninput 0\nadd 4 5\nneg 6\n",
    "toy\nconst 1\ninput 1\nmul 1 0\ncopy 2\nmul 1 0\nadd 3 4\nconst 5\nconst -5\nadd 6 7\nadd 5 8\n",
];

/// Passes that mean well.
pub const PASSES: [&str; 5] = ["fold", "simplify", "dedup", "copy-elim", "dead"];

/// Steps in an episode.
pub const LIMIT: usize = 6;

/// The programs, as files.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    let write = |(number, text): (usize, &&str)| {
        let path = folder.join(format!("program-{number}.toy"));
        std::fs::write(&path, text).unwrap();
        path
    };
    PROGRAMS.iter().enumerate().map(write).collect()
}

/// The toy compiler.
pub fn engine() -> EngineConfig {
    let named =
        EngineConfig::named("toy").expect("`cargo build -p xla-gym-toy-worker` comes first");
    let limits = Limits { pass_millis: 2_000, request_millis: 20_000, memory_bytes: 256 << 20 };
    EngineConfig { limits, quarantine: None, ..named }
}

/// Where a configuration trains.
#[allow(dead_code, reason = "not every test needs it")]
pub fn world(config: &Config) -> Arc<World> {
    Arc::new(make_world(config, Arc::new(Toy::default()), engine()).unwrap())
}

/// How a run on the toy compiler is to be run.
pub fn setting<'a>(folder: &'a Path, checkpoint_seconds: f64, stop: &'a AtomicBool) -> Setting<'a> {
    Setting {
        folder,
        profile: Arc::new(Toy::default()),
        engine: engine(),
        command: String::new(),
        commit: None,
        checkpoint_seconds,
        stop,
    }
}

/// A configuration for the toy compiler.
pub fn config(programs: &[PathBuf], algorithm: &str, changes: &[&str]) -> Config {
    let text = format!(
        "benchmarks = {programs:?}\nvalidation.every = 0\nnetwork.hidden = [32]\n\
         [environment]\ntraj-limit = {LIMIT}\npasses = {PASSES:?}\n\
         reward.objective = 'difference'\n\
         [observation]\npolicy = ['share', 'applied', 'latest']\n[algorithm]\nname = '{algorithm}'\n"
    );
    let changes: Vec<String> = changes.iter().map(|change| change.to_string()).collect();
    Config::parse(&text, &changes).unwrap()
}

/// Trains to the end.
#[allow(dead_code, reason = "not every test trains")]
pub fn trained(config: &Config, folder: &Path) -> Trained {
    let stop = AtomicBool::new(false);
    train(config, &setting(folder, 1e9, &stop), &mut ()).unwrap()
}
