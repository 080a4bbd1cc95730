//! What counts mean is part of the key under which transitions are remembered, so it must not change
//! unnoticed.

use std::path::Path;

use xla_gym_common::fnv64;
use xla_gym_engine::{Engine, EngineConfig, protocol::Observe};
use xla_gym_xla_profile::{COMPUTATIONS, INLINED, INSTRUCTIONS, OPERATIONS, engine_config};

/// What is counted: the number that the worker gives it, and a hash of the counts of the graphs below.
const KNOWN: (u32, u64) = (1, 0x43f7_adc9_b7d0_065a);

/// Calls, loops, branches, reducers, fusions to be, and custom calls.
const GRAPHS: [&str; 6] = [
    "mlp-train",
    "gpt2-train-1l",
    "gpt2-scan-layers-train",
    "nested-while",
    "conditional",
    "custom-call",
];

#[test]
fn counts_do_not_change_their_meaning_without_a_new_number() {
    let config =
        EngineConfig { quarantine: None, ..engine_config().expect("`make build` comes first") };
    let engine = Engine::start(config).unwrap();
    let mut counted = Vec::new();
    for graph in GRAPHS {
        let path = format!("../../testdata/graphs/{graph}.hlo.zst");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let mut session = engine.load_file(path).unwrap();
        // Before and after calls are gone.
        for pass in ["call-inliner", "dce"] {
            counted.push(session.observe(Observe::COUNTS).unwrap().counts.unwrap());
            session.apply(engine.pass(pass).unwrap(), Observe::NOTHING).unwrap();
        }
    }
    let numbers = counted
        .iter()
        .flat_map(|counts| [INSTRUCTIONS, OPERATIONS, INLINED, COMPUTATIONS].map(|at| counts[at]));
    let hash = fnv64(numbers.flat_map(u64::to_le_bytes));
    assert_eq!(
        (engine.hello().counting, hash),
        KNOWN,
        "what counts mean has changed: raise the worker's COUNTING, and write the new pair here; \
         {counted:#?}"
    );
}
