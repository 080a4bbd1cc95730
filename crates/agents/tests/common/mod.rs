//! A toy compiler to learn on, whose answers can be found by trying everything.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use xla_gym_agents::{Config, Setting, Trained, train};
use xla_gym_engine::{EngineConfig, protocol::Limits};

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
    // Test programs lie one folder below the binaries.
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(2).map(Path::to_owned).unwrap();
    let worker = folder.join("xla-gym-worker-toy");
    assert!(worker.is_file(), "`cargo build --release -p xla-gym-toy-worker` comes first");
    let limits = Limits { pass_millis: 2_000, request_millis: 20_000, memory_bytes: 256 << 20 };
    EngineConfig { limits, ..EngineConfig::new(worker) }
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
    let setting = Setting {
        folder,
        engine: engine(),
        command: String::new(),
        commit: None,
        checkpoint_seconds: 1e9,
        stop: &stop,
    };
    train(config, &setting, &mut ()).unwrap()
}
