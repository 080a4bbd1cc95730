//! What shipped policies expect of XLA is there, by name.

use xla_gym_agents::Shipped;
use xla_gym_engine::{Engine, EngineConfig};
use xla_gym_xla_profile::engine_config;

#[test]
fn shipped_policies_see_what_they_saw_in_training() {
    let config = EngineConfig { quarantine: None, ..engine_config().expect("`make build`") };
    let engine = Engine::start(config).expect("the engine starts");
    let hello = engine.hello();
    let mut checked = 0;
    for shipped in Shipped::of(&hello.engine) {
        let interface = &shipped.policy().unwrap().interface;
        // What is not there is taken for zero, and the policy decides by that.
        for cost in &interface.costs {
            assert!(hello.cost(cost).is_some(), "{}: no estimate {cost}", shipped.name());
        }
        for opcode in &interface.opcodes {
            assert!(hello.opcodes.contains(opcode), "{}: no opcode {opcode}", shipped.name());
        }
        assert!(engine.passes(interface.passes.iter().map(String::as_str)).is_ok());
        assert_eq!((interface.costs.len(), interface.start.as_str()), (3, "emitted"));
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} policies are for XLA");
}
