//! Another compiler, one of whose passes is wrong on some programs: it is caught and named.

use std::sync::Arc;

use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{EngineConfig, Source};
use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_proof::{Guilty, Options, Outputs, Pipeline, Prover};
use xla_gym_toy_profile::Toy;

/// `(a + 0 - b) + a * b`. Once it reads `a - b` there, the pass `cancel` makes zero of that.
const PROGRAM: &str = "toy\ninput 0\nconst 0\nadd 0 1\ninput 1\nneg 3\nadd 2 4\nmul 0 3\nadd 5 6\n";

fn world(start: &str) -> Arc<World> {
    let toy = WorldConfig::new(Arc::new(Toy::default())).expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..toy.engine.clone() };
    let source = Source { name: "toy".into(), bytes: PROGRAM.as_bytes().into() };
    let found = Benchmarks { programs: vec![Benchmark::Memory(source)], skipped: Vec::new() };
    let config = WorldConfig { engine, start: start.to_owned(), ..toy };
    Arc::new(World::with_programs(config, found).unwrap())
}

fn along(walk: &Walk, passes: &[&str]) -> Walk {
    let mut walk = walk.fork();
    for pass in walk.world().engine().passes(passes.iter().copied()).unwrap() {
        walk.step(pass).unwrap();
    }
    walk
}

#[test]
fn the_pass_that_is_wrong_is_named() {
    let world = world("emitted");
    let prover = Prover::new(Options::default());
    assert!(prover.comparable(&world, 0).unwrap());
    let start = Walk::begin(&world, 0).unwrap();
    let mut right = along(&start, &["simplify", "copy-elim", "dead"]);
    assert!(right.path().len() > 0);
    let proof = prover.prove(&mut right, Pipeline::Whole).unwrap();
    assert_eq!(proof.outputs, Outputs::Equal, "{}", proof.words);

    let passes = ["simplify", "copy-elim", "cancel", "dead"];
    let mut wrong = along(&start, &passes);
    let proof = prover.prove(&mut wrong, Pipeline::Whole).unwrap();
    assert_eq!(proof.outputs, Outputs::Different, "{}", proof.words);
    let passes = world.engine().passes(passes).unwrap();
    let guilty = prover.guilty(&start, &passes, Pipeline::Whole).unwrap();
    assert_eq!(guilty, Some(Guilty { pass: "cancel".to_owned(), before: 2 }));
}

#[test]
fn orders_are_compiled_as_they_are_counted_and_compared_with_the_program_as_it_came() {
    let world = world("lowered");
    let spec = world.profile().spec();
    let pipeline = Pipeline::from_start(spec, world.start());
    assert_eq!(pipeline, Pipeline::Replaced);
    let prover = Prover::new(Options::default());
    // The start itself is another program than what came, so it is run.
    let mut start = Walk::begin(&world, 0).unwrap();
    assert_ne!(start.state().id, world.emitted_state(0).unwrap().id);
    assert_eq!(prover.prove(&mut start, pipeline).unwrap().outputs, Outputs::Equal);
    assert!(prover.compared() > 0);
    let mut other = along(&start, &["shift", "dead"]);
    assert_eq!(prover.prove(&mut other, pipeline).unwrap().outputs, Outputs::Different);
}
