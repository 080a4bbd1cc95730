//! Searches on the real compiler.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use xla_gym_engine::EngineConfig;
use xla_gym_env::{State, Walk, World, WorldConfig};
use xla_gym_search::{
    Budget, Found, Goal, Habits, Measure, Method, Policy, Search, StopReason, minimise, search,
};
use xla_gym_xla_profile::{BYTES, NORMALIZED, Xla};

const GPT2: &str = "hlo-v1/gpt2/forward-1l";

fn config() -> WorldConfig {
    let config = WorldConfig::new(Arc::new(Xla::default())).expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..config.engine };
    WorldConfig { engine, ..config }
}

fn world() -> Arc<World> {
    let mut config = config();
    config.start = NORMALIZED.to_owned();
    Arc::new(World::new(config, [GPT2]).unwrap())
}

fn task(world: &Arc<World>, budget: Budget, seed: u64) -> Search<'_> {
    Search {
        world,
        benchmark: 0,
        budget,
        seed,
        goal: Goal::default(),
        policy: None,
        prefix: Vec::new(),
        first: Vec::new(),
        costs: Arc::default(),
        stop: Arc::default(),
    }
}

fn run(world: &Arc<World>, method: Method, passes: u64, seed: u64) -> Found {
    let task = task(world, Budget::passes(passes), seed);
    search(&task, &*method.optimizer(), &|_, _| {}).unwrap()
}

#[test]
fn every_method_keeps_to_its_budget_and_to_its_seed() {
    let (one, other) = (world(), world());
    let start = Walk::begin(&one, 0).unwrap().state().counts.primary();
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Coreset) {
        let found = run(&one, method, 400, 1);
        assert!(found.passes <= 400, "{method:?}: {}", found.passes);
        assert_eq!(found.stopped, StopReason::Passes, "{method:?}");
        let best = &found.candidates[0];
        assert!(best.state.counts.primary() < start, "{method:?} found nothing");
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
        goal: Goal::default(),
        policy: None,
        prefix: Vec::new(),
        first: Vec::new(),
        costs: Arc::default(),
        stop: stop.clone(),
    };
    let watch = |charged: u64, _: f64| {
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
    let operations = best.state.counts.primary();
    let good = |walk: &Walk| walk.state().counts.primary() <= operations;
    let short = minimise(&world, 0, &best.passes, |walk| Ok(good(walk)), || false).unwrap();
    let cut = minimise(&world, 0, &best.passes, |walk| Ok(good(walk)), || true).unwrap();
    assert_eq!(cut, best.passes, "nothing is tried when it is enough");
    assert!(short.len() <= best.passes.len());
    for leave_out in 0..short.len() {
        let mut walk = Walk::begin(&world, 0).unwrap();
        for (_, &pass) in short.iter().enumerate().filter(|(i, _)| *i != leave_out) {
            walk.step(pass).unwrap();
        }
        assert!(!good(&walk), "pass {leave_out} can be left out");
    }
}

#[test]
fn a_search_makes_small_what_its_goal_says() {
    let world = world();
    let best = |measure: Measure| -> Vec<(u64, f64)> {
        let task = Search {
            goal: Goal { parts: vec![(measure, 1.0)] },
            ..task(&world, Budget::passes(300), 0)
        };
        let found = search(&task, &*Method::Random.optimizer(), &|_, _| {}).unwrap();
        let figures = |state: &State| (state.counts.primary(), state.cost.unwrap()[BYTES]);
        found.candidates.iter().map(|candidate| figures(&candidate.state)).collect()
    };
    let (few, cheap) = (best(Measure::PRIMARY), best(Measure::costs(&[BYTES as u8])));
    assert!(few.is_sorted_by_key(|(operations, _)| *operations), "{few:?}");
    assert!(cheap.is_sorted_by_key(|(_, bytes)| *bytes), "{cheap:?}");
    // Which is not the same: otherwise this would show nothing.
    assert!(!cheap.is_sorted_by_key(|(operations, _)| *operations), "{cheap:?}");
}

#[test]
fn a_small_program_is_searched_to_its_end() {
    // Without an end of its own, a search in passes would go on for ever here.
    let mut config = config();
    config.passes = ["algsimp", "cse", "dce"].map(str::to_owned).to_vec();
    let world = Arc::new(World::new(config, [GPT2]).unwrap());
    for method in Method::ALL {
        let task = task(&world, Budget::passes(1_000_000), 0);
        let found = search(&task, &*method.optimizer(), &|_, _| {}).unwrap();
        assert_eq!(found.stopped, StopReason::Exhausted, "{method:?}");
    }
}

#[test]
fn a_policy_says_where_to_look() {
    let world = world();
    let good = world.engine().passes(["constant_folding:aggressive", "algsimp", "cse"]).unwrap();
    let habits = Habits::learn([&good[..]]);
    let walk = Walk::begin(&world, 0).unwrap();
    let weights = habits.weigh(&walk, world.actions());
    let of = |pass| weights[world.actions().iter().position(|other| *other == pass).unwrap()];
    assert!(of(good[0]) > 10.0 * of(good[1]), "the first of the order comes first");
    assert!(weights.iter().all(|weight| *weight > 0.0), "nothing is ruled out");
    // Guided by an order that is known to be good, a few passes find more than without.
    for method in [Method::Beam, Method::Mcts] {
        let best = |policy: Option<Arc<dyn Policy>>| {
            let task = Search { policy, ..task(&world, Budget::passes(150), 0) };
            let found = search(&task, &*method.optimizer(), &|_, _| {}).unwrap();
            found.candidates[0].state.counts.primary()
        };
        assert!(best(Some(Arc::new(habits.clone()))) < best(None), "{method:?}");
    }
}
