//! A whole training on the toy compiler: from both of its starts, paid by what the compiler itself
//! makes of programs, and tried on a program that was held out and run.

mod common;

use std::{path::Path, sync::atomic::AtomicBool};

use common::{config, programs, setting, world};
use xla_gym_agents::{
    Chooser, Config, EpisodeRequest, Gatherer, LAST, Observer, Shipped, TrainedPolicy, train,
};
use xla_gym_env::{Env, Walk};
use xla_gym_search::Policy as _;

/// The lines that walks leave of all programs from both starts.
fn left(config: &Config, chooser: Chooser<'_>) -> u64 {
    let world = world(config);
    let env = Env::new(&world, config.environment.env()).unwrap();
    let observer = Observer::new(&config.observation, &env);
    let gatherer =
        Gatherer { world: world.clone(), config: config.environment.env(), observer, mask: true };
    let requests: Vec<EpisodeRequest> = (0..2 * world.len())
        .map(|number| {
            let (benchmark, start) = (number / 2, number % 2);
            EpisodeRequest { benchmark, start, seed: 0, stream: number as u64 }
        })
        .collect();
    let episodes = gatherer.gather(&requests, chooser).unwrap();
    assert!(episodes.iter().zip(&requests).all(|(e, r)| e.start == r.start));
    episodes.iter().map(|episode| episode.lowest()).sum()
}

const CHANGES: [&str; 9] = [
    "steps=6000",
    "environment.other-starts={lowered=0.5}",
    "environment.reward.objective=log-record",
    "environment.reward.shaping.gamma=0.99",
    "observation.policy=['share', 'cost', 'size', 'inlined', 'applied', 'latest']",
    "validation.every=3",
    "algorithm.batch=64",
    "algorithm.learning-rate=2e-3",
    "algorithm.entropy=0.02",
];

#[test]
fn training_improves_on_luck_and_says_for_which_compiler_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&programs(folder.path()), "ppo", &CHANGES);
    let run = folder.path().join("run");
    let trained = common::trained(&config, &run);
    assert!(trained.validation.is_some(), "a program was held out, run and found equal");
    let policy = TrainedPolicy::read(&run.join(LAST)).unwrap();
    let learnt = left(&config, Chooser::Greedy(&policy.network));
    let luck = left(&config, Chooser::Random);
    assert!(learnt < luck, "learnt {learnt}, by luck {luck}");

    let world = world(&config);
    let hello = world.engine().hello();
    assert_eq!((&*policy.interface.engine, &*policy.interface.start), ("toy", "emitted"));
    assert_eq!(policy.interface.opcodes, hello.opcodes);
    assert_eq!(policy.interface.costs, ["work"]);
    let weights =
        policy.guide(&world).unwrap().weigh(&Walk::begin(&world, 0).unwrap(), world.actions());
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{weights:?}");
    // What comes along is for another compiler.
    for shipped in Shipped::all() {
        let words = shipped.policy().unwrap().guide(&world).unwrap_err().to_string();
        assert!(words.contains(&shipped.policy().unwrap().card.name), "{words}");
        assert!(words.contains("and this is toy"), "{words}");
    }
}

fn refused(change: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&programs(folder.path()), "a2c", &["steps=60", change]);
    let (run, stop): (&Path, _) = (&folder.path().join("run"), AtomicBool::new(false));
    train(&config, &setting(run, 60.0, &stop), &mut ()).unwrap_err().to_string()
}

#[test]
fn what_the_compiler_does_not_have_is_refused_by_name() {
    for (change, words) in [
        ("environment.start=normalized", "\"normalized\" is no start; there are emitted, lowered"),
        ("environment.legal=0.3", "\"legal\" is no start of toy: emitted, lowered"),
        ("environment.other-starts={emitted=0.5}", "\"emitted\" is where all others begin anyway"),
        ("environment.reward.at-end=kernels", "\"kernels\" is none of lines, final"),
        ("environment.reward.shaping.flop-weight=1.0", "\"flops\" is none of work"),
    ] {
        let error = refused(change);
        assert!(error.contains(words), "{change}: {error}");
    }
}
