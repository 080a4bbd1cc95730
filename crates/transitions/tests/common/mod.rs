//! Entries whose values follow from their keys, so that any of them can be checked at any time.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{path::Path, sync::Arc};

use xla_gym_protocol::{Cost, Counts, Fingerprint, PassId};
use xla_gym_transitions::{Config, Failure, FailureKind, Outcome, State, Transitions};

pub const ENGINE: &str = "toy 1";

/// Numbers spread over all 128 bits, as true fingerprints are.
pub fn id(number: u64) -> Fingerprint {
    Fingerprint(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// What follows from a state and a pass: mostly another state, sometimes a failure.
pub fn outcome(from: Fingerprint, pass: PassId) -> Outcome {
    let mixed = from.0.rotate_left(31) ^ u128::from(pass.0).wrapping_mul(0x1234_5678_9abc_def1);
    if mixed.is_multiple_of(7) {
        let message = format!("pass {} refuses {from}", pass.0);
        Outcome::Fails(Failure { kind: FailureKind::Refused, message })
    } else {
        Outcome::Leads(Fingerprint(mixed))
    }
}

/// What follows from an identity.
pub fn state(id: Fingerprint) -> Arc<State> {
    let small = (id.0 >> 64) as u64 % 1000;
    Arc::new(State {
        id,
        counts: Counts::new(&[small + 5, small + 10]),
        opcodes: (0..120).map(|opcode| (small as u32 + opcode) % 40).collect(),
        cost: Some(Cost::new(&[small as f64 * 1e6, 8.0])),
    })
}

pub fn on_disk(path: &Path) -> Config {
    Config { disk: Some(path.to_owned()), ..Config::default() }
}

pub fn open(path: &Path) -> Transitions {
    Transitions::open(&on_disk(path), ENGINE).unwrap()
}

/// Adds so many outcomes, states and starts.
pub fn fill(transitions: &Transitions, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let (from, pass) = (id(number), PassId((number % 50) as u16));
        transitions.add(from, pass, outcome(from, pass));
        transitions.add_state(state(from));
        transitions.add_start(from, "emitted", id(number + 1));
    }
}

/// How many of them are there; those that are must be right.
pub fn count(transitions: &Transitions, numbers: std::ops::Range<u64>) -> [usize; 3] {
    let mut found = [0; 3];
    for number in numbers {
        let (from, pass) = (id(number), PassId((number % 50) as u16));
        if let Some(known) = transitions.outcome(from, pass) {
            assert_eq!(known, outcome(from, pass));
            found[0] += 1;
        }
        if let Some(known) = transitions.state(from) {
            assert_eq!(known, state(from));
            found[1] += 1;
        }
        if let Some(known) = transitions.start(from, "emitted") {
            assert_eq!(known, id(number + 1));
            found[2] += 1;
        }
    }
    found
}
