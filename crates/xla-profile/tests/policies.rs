//! The policies that come along belong to XLA, and those of other compilers do not.

use std::sync::Arc;

use xla_gym_agents::{Interface, Shipped, TrainedPolicy};
use xla_gym_engine::EngineConfig;
use xla_gym_env::{World, WorldConfig};
use xla_gym_xla_profile::Xla;

fn world() -> World {
    let xla = WorldConfig::new(Arc::new(Xla::default())).expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..xla.engine.clone() };
    World::new(WorldConfig { engine, ..xla }, ["hlo-v1/ode/life"]).unwrap()
}

#[test]
fn those_that_come_along_know_all_that_this_version_shows() {
    let world = world();
    let hello = world.engine().hello();
    let costs: Vec<&String> = hello.costs.iter().map(|cost| &cost.name).collect();
    assert_eq!(Shipped::of("xla").count(), Shipped::all().len());
    let usual = world.profile().spec().usual_policy.unwrap();
    assert!(Shipped::named(usual, "xla").is_some());
    for shipped in Shipped::of("xla") {
        let policy = shipped.policy().unwrap();
        assert_eq!(policy.interface.opcodes, hello.opcodes, "{}", shipped.name());
        assert!(policy.interface.costs.iter().eq(costs.iter().copied()), "{}", shipped.name());
        assert_eq!(policy.interface.start, world.start_name());
        let passes = policy.interface.passes.iter();
        passes.for_each(|pass| assert!(world.engine().pass(pass).is_ok(), "{pass}"));
        policy.guide(&world).unwrap();
    }
}

#[test]
fn a_policy_that_has_nothing_to_say_here_is_refused() {
    let world = world();
    let own = Shipped::named("general", "xla").unwrap().policy().unwrap();
    let refused = |interface: Interface| {
        TrainedPolicy { interface, ..own.clone() }.guide(&world).unwrap_err().to_string()
    };
    let words = refused(Interface { engine: "toy".to_owned(), ..own.interface.clone() });
    assert!(words.contains("it orders passes of toy, and this is xla"), "{words}");
    let passes = own.interface.passes.iter().map(|pass| format!("{pass}-of-old")).collect();
    let words = refused(Interface { passes, ..own.interface.clone() });
    assert!(words.contains("has none of its 43 passes"), "{words}");
}
