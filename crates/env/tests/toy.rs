//! Another compiler: nothing in the environments knows XLA, and nothing a compiler does ends them.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{
    Source,
    protocol::{Form, Limits},
};
use xla_gym_env::{Env, EnvConfig, FailureKind, World, WorldConfig};
use xla_gym_toy_profile::Toy;

const PROGRAM: &str = "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n";

fn world(passes: &[&str]) -> Arc<World> {
    world_with(passes, |_| {})
}

fn world_with(passes: &[&str], change: impl FnOnce(&mut WorldConfig)) -> Arc<World> {
    let mut config = WorldConfig::new(Arc::new(Toy::default()))
        .expect("`cargo build -p xla-gym-toy-worker` comes first");
    config.engine.quarantine = None;
    config.engine.limits =
        Limits { pass_millis: 200, request_millis: 5_000, memory_bytes: 256 << 20 };
    config.passes = passes.iter().map(|&name| name.to_owned()).collect();
    change(&mut config);
    let source = Source { name: "toy".into(), bytes: PROGRAM.as_bytes().into() };
    let found = Benchmarks { programs: vec![Benchmark::Memory(source)], skipped: Vec::new() };
    Arc::new(World::with_programs(config, found).unwrap())
}

#[test]
fn the_shortest_program_is_reached() {
    let world = world(&["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let mut env = Env::new(&world, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..40 {
        env.step(rng.random_range(0..5)).unwrap();
    }
    assert_eq!(env.counts().unwrap().primary(), 2);
}

#[test]
fn whatever_a_compiler_does_is_a_step() {
    let faults = ["half", "abort", "panic", "segfault", "overflow", "hang", "hog", "garbage"];
    let passes: Vec<&str> = faults.iter().copied().chain(["shift", "fold"]).collect();
    let world = world(&passes);
    let mut env = Env::new(&world, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    env.step(8).unwrap();
    let before = env.fingerprint().unwrap();
    for (action, name) in faults.iter().enumerate() {
        let failure = env.step(action).unwrap().info.failure.unwrap();
        let expected = match *name {
            "half" => FailureKind::Refused,
            "hang" => FailureKind::TimeLimit,
            "hog" => FailureKind::OutOfMemory,
            _ => FailureKind::Died,
        };
        assert_eq!(failure.kind, expected, "{name}: {failure:?}");
        assert_eq!(env.fingerprint().unwrap(), before, "{name}");
    }
    assert!(env.step(9).unwrap().info.changed, "and it goes on");
}

#[test]
fn a_remembered_pass_that_has_become_too_slow_fails_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let passes = ["slow", "fold", "simplify"];
    let world_within = |pass_millis| {
        world_with(&passes, |config| {
            config.engine.limits.pass_millis = pass_millis;
            config.cache.disk = Some(folder.path().join("cache.db"));
        })
    };
    let patient = world_within(2_000);
    let mut env = Env::new(&patient, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    assert!(env.step(0).unwrap().info.changed);
    drop(env);
    drop(patient);

    let impatient = world_within(20);
    let mut env = Env::new(&impatient, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    assert!(env.step(0).unwrap().info.remembered, "nothing ran, so nothing was too slow");
    let before = env.state().unwrap().clone();
    let step = env.step(1).unwrap();
    assert_eq!(step.info.failure.unwrap().kind, FailureKind::TimeLimit, "the program is needed");
    assert_eq!(env.state().unwrap(), &before, "the state is what it was");
    assert!(env.print(Form::TEXT).is_err(), "and has no program");
    env.undo(2).unwrap();
    let info = env.step(0).unwrap().info;
    assert_eq!(info.failure.unwrap().kind, FailureKind::TimeLimit);
    assert!(info.remembered, "which is known from now on");
}
