//! Searches on the toy compiler: what holds for all methods holds on any compiler.

use std::{path::Path, sync::Arc};

use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_search::{Budget, Found, Goal, Measure, Method, Search, StopReason, search};
use xla_gym_toy_profile::Toy;

/// Those that are right on every program, so that what is found means something.
const PASSES: [&str; 5] = ["fold", "simplify", "dedup", "copy-elim", "dead"];

fn world(program: &str) -> Arc<World> {
    let config = WorldConfig::new(Arc::new(Toy::default()));
    let mut config = config.expect("`cargo build -p xla-gym-toy-worker` comes first");
    config.engine.quarantine = None;
    config.passes = PASSES.map(str::to_owned).to_vec();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/toy");
    let file = folder.join(format!("{program}.toy")).display().to_string();
    Arc::new(World::new(config, [file]).unwrap())
}

fn run(world: &Arc<World>, method: Method, passes: u64, goal: Goal) -> Found {
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(passes),
        seed: 1,
        goal,
        policy: None,
        prefix: Vec::new(),
        first: Vec::new(),
        costs: Arc::default(),
        stop: Arc::default(),
    };
    search(&task, &*method.optimizer(), &|_, _| {}).unwrap()
}

#[test]
fn every_method_shortens_a_program_within_its_budget_and_again() {
    let (one, other) = (world("filters"), world("filters"));
    let start = Walk::begin(&one, 0).unwrap().state().counts.primary();
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Coreset) {
        let found = run(&one, method, 200, Goal::default());
        assert!(found.passes <= 200, "{method:?}: {}", found.passes);
        let best = &found.candidates[0];
        assert!(best.state.counts.primary() < start / 2, "{method:?} found too little");
        let again = run(&other, method, 200, Goal::default());
        assert_eq!(again.candidates[0].passes, best.passes, "{method:?}");
        let mut walk = Walk::begin(&other, 0).unwrap();
        for &pass in &best.passes {
            walk.step(pass).unwrap();
        }
        assert_eq!(walk.state().id, best.state.id, "{method:?}");
    }
}

#[test]
fn a_program_that_is_short_already_is_searched_to_its_end() {
    let world = world("minimal");
    for method in Method::ALL {
        let found = run(&world, method, 1_000_000, Goal::default());
        assert_eq!(found.stopped, StopReason::Exhausted, "{method:?}");
        assert_eq!(found.candidates[0].state.counts.primary(), 10, "{method:?}");
    }
}

#[test]
fn a_goal_can_be_any_count_or_cost_that_the_worker_has() {
    let world = world("matrices");
    // The second count are constants, the only cost is work.
    let constants = Measure::Count(1);
    assert_eq!(world.engine().hello().count("constants"), Some(1));
    let best = |measure: Measure| {
        let goal = Goal { parts: vec![(measure, 1.0)] };
        run(&world, Method::Beam, 300, goal).candidates[0].state.clone()
    };
    let (few, light) = (best(constants), best(Measure::costs(&[0])));
    let start = Walk::begin(&world, 0).unwrap().state().clone();
    assert!(few.counts[1] < start.counts[1], "{few:?}");
    assert!(light.cost.unwrap()[0] < start.cost.unwrap()[0], "{light:?}");
}
