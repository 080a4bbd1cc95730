//! Every algorithm finds the best order of a small compiler, which trying everything finds too.

mod common;

use std::sync::Arc;

use common::{LIMIT, PASSES, config, programs, trained};
use xla_gym_agents::{Chooser, Config, EpisodeRequest, Gatherer, Observer, TrainedPolicy};
use xla_gym_env::{Env, Walk, World};

/// The fewest lines that any order of the allowed length leaves.
fn lowest(world: &Arc<World>, benchmark: usize) -> u64 {
    fn deeper(walk: &Walk, world: &World, left: usize) -> u64 {
        let mut best = walk.state().counts.primary();
        if left > 0 {
            for &pass in world.actions() {
                let mut next = walk.fork();
                if next.step(pass).unwrap().changed {
                    best = best.min(deeper(&next, world, left - 1));
                }
            }
        }
        best
    }
    deeper(&Walk::begin(world, benchmark).unwrap(), world, LIMIT)
}

fn walked(config: &Config, world: &Arc<World>, chooser: Chooser<'_>) -> Vec<u64> {
    let env = Env::new(world, config.environment.env()).unwrap();
    let observer = Observer::new(&config.observation, &env);
    let gatherer =
        Gatherer { world: world.clone(), config: config.environment.env(), observer, mask: true };
    let request = |benchmark| EpisodeRequest { benchmark, start: 0, seed: 0, stream: 0 };
    (0..world.len()).map(|b| gatherer.play(request(b), chooser).unwrap().lowest()).collect()
}

/// How far seeds of an algorithm came: lines left over all programs, and the fewest possible.
fn check(algorithm: &str, changes: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let programs = programs(folder.path());
    for seed in 0..3 {
        let seed_change = format!("seed={seed}");
        let all: Vec<&str> = changes.iter().copied().chain([seed_change.as_str()]).collect();
        let config = config(&programs, algorithm, &all);
        let run = folder.path().join(format!("run-{seed}"));
        let trained = trained(&config, &run);
        let policy = TrainedPolicy::read(&trained.policy).unwrap();
        assert_eq!(policy.interface.passes, PASSES);
        let world = common::world(&config);
        let best: Vec<u64> = (0..world.len()).map(|program| lowest(&world, program)).collect();
        let start = |b| world.emitted_state(b).unwrap().counts.primary();
        assert!((0..world.len()).all(|b| best[b] < start(b)), "there is something to learn");
        assert_ne!(walked(&config, &world, Chooser::Random), best, "luck is not enough");
        let chooser = Chooser::Greedy(&policy.network);
        assert_eq!(walked(&config, &world, chooser), best, "{algorithm}, seed {seed}");
    }
}

#[test]
fn ppo_finds_the_best_order() {
    check("ppo", &PPO);
}

const PPO: [&str; 5] = [
    "steps=20000",
    "algorithm.batch=64",
    "algorithm.learning-rate=2e-3",
    "algorithm.entropy=0.02",
    "algorithm.discounting.goes-on=false",
];

#[test]
fn a2c_finds_the_best_order() {
    let changes = [
        "steps=60000",
        "algorithm.episodes=8",
        "algorithm.learning-rate=2e-3",
        "algorithm.entropy=0.02",
        "algorithm.normalise=true",
        "algorithm.discounting.goes-on=false",
    ];
    check("a2c", &changes);
}

#[test]
fn dqn_finds_the_best_order() {
    let changes = [
        "steps=20000",
        "network.activation=relu",
        "environment.reward.objective=paper",
        "algorithm.batch=64",
        "algorithm.train-every=1",
        "algorithm.target-every=500",
        "algorithm.learning-rate=1e-3",
        "algorithm.exploration=0.9",
        "algorithm.gamma=0.9",
    ];
    check("dqn", &changes);
    let double: Vec<&str> = changes.iter().copied().chain(["algorithm.double=true"]).collect();
    check("dqn", &double);
}

#[test]
fn trpo_finds_the_best_order() {
    let changes = [
        "steps=60000",
        "algorithm.episodes=64",
        "algorithm.learning-rate=2e-3",
        "algorithm.discounting.goes-on=false",
    ];
    check("trpo", &changes);
}

#[test]
fn the_two_enhancements_learn_too() {
    let shaped: Vec<&str> =
        PPO.iter().copied().chain(["environment.reward.shaping.gamma=0.99"]).collect();
    check("ppo", &shaped);
    let seeing: Vec<&str> = PPO.iter().copied().chain(["observation.value=[\"cost\"]"]).collect();
    check("ppo", &seeing);
}
