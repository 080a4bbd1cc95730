//! States run beside the program that they come from, on real XLA and on a compiler that runs nothing.

use std::{path::Path, sync::Arc};

use xla_gym_engine::EngineConfig;
use xla_gym_env::{CacheConfig, Start, Walk, World, WorldConfig};
use xla_gym_proof::{Options, Outputs, Pipeline, Prover};

const GRAPH: &str = "../../testdata/proof/batched-scatter.hlo";

fn world() -> Arc<World> {
    let xla = WorldConfig::xla().expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..xla.engine.clone() };
    Arc::new(World::new(WorldConfig { engine, ..xla }, [GRAPH]).unwrap())
}

fn along(world: &Arc<World>, passes: &[&str]) -> Walk {
    let passes = world.engine().passes(passes.iter().copied()).unwrap();
    let mut walk = Walk::begin(world, 0).unwrap();
    for pass in passes {
        walk.step(pass).unwrap();
    }
    walk
}

#[test]
fn equal_states_are_compared_once() {
    let world = world();
    let prover = Prover::new(Options { trials: 1, ..Options::default() });
    let start = prover.prove(&mut Walk::begin(&world, 0).unwrap(), Pipeline::Whole).unwrap();
    assert_eq!((start.outputs, prover.compared()), (Outputs::Equal, 0));
    let mut first = along(&world, &["cse", "algsimp"]);
    assert!(first.path().len() > 0);
    let proof = prover.prove(&mut first, Pipeline::Whole).unwrap();
    assert_eq!(proof.outputs, Outputs::Equal, "{}", proof.words);
    assert!(proof.seconds > 0.0);
    let compared = prover.compared();
    // By another way to the same state, also after what it was compared by is gone.
    prover.forget(0);
    let mut again = along(&world, &["cse", "cse", "algsimp", "algsimp"]);
    assert_eq!(again.state().id, first.state().id);
    assert_eq!(prover.prove(&mut again, Pipeline::Whole).unwrap(), proof);
    assert_eq!(prover.compared(), compared);
    // How it is compiled makes a difference.
    let legalising = world.legalising(0).unwrap();
    let mut legal = Walk::begin_after(&world, 0, &legalising).unwrap();
    let replaced = prover.prove(&mut legal, Pipeline::Replaced).unwrap();
    assert_eq!(replaced.outputs, Outputs::Equal, "{}", replaced.words);
    assert!(prover.compared() > compared);
}

#[test]
fn a_compiler_that_runs_nothing_leaves_everything_unchecked() {
    let own = std::env::current_exe().unwrap();
    let worker = own.ancestors().nth(2).unwrap().join("xla-gym-worker-toy");
    assert!(worker.is_file(), "`cargo build --release -p xla-gym-toy-worker` comes first");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toy");
    std::fs::write(&file, "toy\ninput 0\ncopy 0\nconst 0\nadd 1 2\n").unwrap();
    let config = WorldConfig {
        engine: EngineConfig { quarantine: None, ..EngineConfig::new(worker) },
        start: Start::Emitted,
        passes: Vec::new(),
        cache: CacheConfig::default(),
    };
    let world = Arc::new(World::new(config, [Path::new(&file).to_str().unwrap()]).unwrap());
    let mut walk = along(&world, &["simplify", "copy-elim"]);
    assert!(walk.path().len() > 0);
    let proof = Prover::new(Options::default()).prove(&mut walk, Pipeline::Whole).unwrap();
    assert_eq!(proof.outputs, Outputs::Unchecked, "{}", proof.words);
}
