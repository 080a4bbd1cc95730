//! States run beside the program that they come from, on real XLA.

use std::sync::Arc;

use xla_gym_engine::EngineConfig;
use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_proof::{Options, Outputs, Pipeline, Prover};
use xla_gym_xla_profile::{MADE_LEGAL, Xla};

const GRAPH: &str = "../../testdata/proof/batched-scatter.hlo";

fn world() -> Arc<World> {
    let xla = WorldConfig::new(Arc::new(Xla::default())).expect("`make build` comes first");
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
    let spec = world.profile().spec();
    let start = spec.start(MADE_LEGAL).unwrap();
    assert_eq!(Pipeline::from_start(spec, 0), Pipeline::Whole);
    let mut legal = Walk::begin_at(&world, 0, start).unwrap();
    let replaced = prover.prove(&mut legal, Pipeline::from_start(spec, start)).unwrap();
    assert_eq!(replaced.outputs, Outputs::Equal, "{}", replaced.words);
    assert!(prover.compared() > compared);
}
