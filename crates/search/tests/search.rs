//! Searches on the real compiler.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use xla_gym_engine::EngineConfig;
use xla_gym_env::{Start, Walk, World, WorldConfig};
use xla_gym_search::{Budget, Found, Method, Search, StopReason, minimise, search};

const GPT2: &str = "hlo-v1/gpt2/forward-1l";

fn world() -> Arc<World> {
    let mut config = WorldConfig::xla().expect("`make build` comes first");
    config.engine = EngineConfig { quarantine: None, ..config.engine };
    config.start = Start::Normalised;
    Arc::new(World::new(config, [GPT2]).unwrap())
}

fn run(world: &Arc<World>, method: Method, passes: u64, seed: u64) -> Found {
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(passes),
        seed,
        prefix: Vec::new(),
        first: Vec::new(),
        stop: Arc::default(),
    };
    search(&task, &*method.optimizer(), &|_, _| {}).unwrap()
}

#[test]
fn every_method_keeps_to_its_budget_and_to_its_seed() {
    let (one, other) = (world(), world());
    let start = one.start_state(0).unwrap().counts.operations;
    for method in Method::ALL {
        let found = run(&one, method, 400, 1);
        assert!(found.passes <= 400, "{method:?}: {}", found.passes);
        assert_eq!(found.stopped, StopReason::Passes, "{method:?}");
        let best = &found.candidates[0];
        assert!(best.state.counts.operations < start, "{method:?} found nothing");
        let again = run(&other, method, 400, 1);
        assert_eq!(again.candidates[0].passes, best.passes, "{method:?}");
        // What it returns is where its passes lead.
        let mut walk = Walk::begin(&other, 0).unwrap();
        for &pass in &best.passes {
            walk.step(pass).unwrap();
        }
        assert_eq!(walk.state().id, best.state.id, "{method:?}");
    }
}

#[test]
fn a_search_that_is_stopped_keeps_its_best() {
    let world = world();
    let stop = Arc::new(AtomicBool::new(false));
    let task = Search {
        world: &world,
        benchmark: 0,
        budget: Budget { passes: None, time: None },
        seed: 0,
        prefix: Vec::new(),
        first: Vec::new(),
        stop: stop.clone(),
    };
    let watch = |charged: u64, _: u64| {
        stop.fetch_or(charged > 200, Ordering::Relaxed);
    };
    let found = search(&task, &*Method::Random.optimizer(), &watch).unwrap();
    assert_eq!(found.stopped, StopReason::Interrupted);
    assert!(!found.candidates.is_empty());
}

#[test]
fn minimising_keeps_the_result_and_nothing_else() {
    let world = world();
    let found = run(&world, Method::Random, 600, 3);
    let best = &found.candidates[0];
    let operations = best.state.counts.operations;
    let good = |walk: &Walk| walk.state().counts.operations <= operations;
    let short = minimise(&world, 0, &best.passes, |walk| Ok(good(walk))).unwrap();
    assert!(short.len() <= best.passes.len());
    for leave_out in 0..short.len() {
        let mut walk = Walk::begin(&world, 0).unwrap();
        for (_, &pass) in short.iter().enumerate().filter(|(i, _)| *i != leave_out) {
            walk.step(pass).unwrap();
        }
        assert!(!good(&walk), "pass {leave_out} can be left out");
    }
}
