//! The memory tier by itself.

mod common;

use std::sync::Arc;

use common::{ENGINE, count, fill, id, outcome, state};
use xla_gym_protocol::PassId;
use xla_gym_transitions::{Config, Failure, FailureKind, Outcome, State, Stats, Transitions};

fn in_memory(memory_bytes: usize) -> Transitions {
    Transitions::open(&Config { memory_bytes, ..Config::default() }, ENGINE).unwrap()
}

#[test]
fn what_is_added_is_found() {
    let transitions = in_memory(256 << 20);
    assert_eq!(count(&transitions, 0..100), [0; 3]);
    fill(&transitions, 0..100);
    assert_eq!(count(&transitions, 0..100), [100; 3]);
    assert_eq!(transitions.start(id(1), "normalised"), None, "another kind of start");
    assert_eq!(transitions.outcome(id(1), PassId(49)), None, "another pass");
    let stats = transitions.stats();
    assert_eq!((stats.hits_memory, stats.hits_disk, stats.misses), (100, 0, 101));
    assert_eq!(stats.memory_entries, 300);
    assert_eq!((stats.disk_error, stats.note, stats.unwritten), (None, None, 0));
}

#[test]
fn failures_of_every_kind_are_kept() {
    let transitions = in_memory(1 << 20);
    let kinds = [
        (FailureKind::Refused, "refused", true),
        (FailureKind::Died, "died", true),
        (FailureKind::OutOfMemory, "out-of-memory", false),
        (FailureKind::TimeLimit, "time-limit", false),
        (FailureKind::Invalid, "invalid", true),
        (FailureKind::Killed, "killed", false),
    ];
    for (pass, (kind, name, repeats)) in kinds.into_iter().enumerate() {
        let pass = PassId(pass as u16);
        let fails = Outcome::Fails(Failure { kind, message: name.to_owned() });
        transitions.add(id(1), pass, fails.clone());
        assert_eq!(transitions.outcome(id(1), pass), Some(fails));
        assert_eq!((kind.to_string().as_str(), kind.repeats()), (name, repeats));
    }
}

#[test]
fn the_bound_is_kept_and_the_recent_stay() {
    let bound = 4 << 20;
    let transitions = in_memory(bound);
    fill(&transitions, 0..200_000);
    let stats = transitions.stats();
    assert!(stats.memory_bytes <= bound as u64, "{stats:?}");
    // A quarter for outcomes of 160 bytes each, and so on; failures are heavier.
    assert!((4_000..20_000).contains(&stats.memory_entries), "{stats:?}");
    let [outcomes, states, starts] = count(&transitions, 199_000..200_000);
    assert!(outcomes > 950 && states > 950, "{outcomes} outcomes and {states} states of 1000");
    let [_, _, recent] = count(&transitions, 199_800..200_000);
    assert!(recent > 190, "{recent} of 200 starts, {starts} of 1000");
}

#[test]
fn without_memory_nothing_is_kept_and_nothing_breaks() {
    let transitions = in_memory(0);
    fill(&transitions, 0..100);
    assert_eq!(count(&transitions, 0..100), [0; 3]);
}

#[test]
fn what_is_forgotten_is_gone() {
    let transitions = in_memory(1 << 20);
    fill(&transitions, 0..2);
    transitions.forget(id(1), PassId(1));
    assert_eq!(transitions.outcome(id(1), PassId(1)), None);
    assert_eq!(transitions.outcome(id(0), PassId(0)), Some(outcome(id(0), PassId(0))));
}

#[test]
fn a_state_known_in_full_takes_the_place_of_one_that_is_not() {
    let transitions = in_memory(1 << 20);
    let full = state(id(1));
    let bare = Arc::new(State { cost: None, ..State::clone(&full) });
    for (added, expected) in [(&bare, &bare), (&full, &full), (&bare, &full)] {
        transitions.add_state(Arc::clone(added));
        assert_eq!(transitions.state(id(1)).as_ref(), Some(expected));
    }
}

#[test]
fn threads_share_it() {
    fn shareable<T: Send + Sync>(_: &T) {}
    let transitions = in_memory(256 << 20);
    shareable(&transitions);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let transitions = &transitions;
            scope.spawn(move || fill(transitions, thread * 1000..(thread + 1) * 1000));
        }
    });
    assert_eq!(count(&transitions, 0..4000), [4000; 3]);
    assert_ne!(transitions.stats(), Stats::default());
}
