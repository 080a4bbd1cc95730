//! The memory tier: three caches that share one bound.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use quick_cache::{
    DefaultHashBuilder, Equivalent, Options, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use xla_gym_protocol::{Fingerprint, PassId};

use crate::known::{Outcome, State};

/// What an outcome takes without its message: key, value, and the cache's own tables, which are
/// up to half empty.
const OUTCOME_BYTES: u64 = 160;

/// What a state takes without its opcode counts, by the same reckoning.
const STATE_BYTES: u64 = 256;

/// What a start takes, by the same reckoning.
const START_BYTES: u64 = 144;

/// A typical state, opcode counts and all; only used to size the cache's tables.
const TYPICAL_STATE_BYTES: u64 = 700;

/// The part of each cache that is kept for entries that were asked for again. Low, because search
/// mostly returns to states that it has just seen.
const HOT_PART: f64 = 0.5;

/// Everything remembered in this process, up to a bound in bytes.
pub struct Memory {
    outcomes: Cache<(Fingerprint, PassId), Outcome, Bytes>,
    states: Cache<Fingerprint, Arc<State>, Bytes>,
    starts: Cache<StartKey, Fingerprint, Bytes>,
}

impl Memory {
    /// A quarter of the bound goes to outcomes, a sixteenth to starts and the rest to states.
    pub fn new(bytes: usize) -> Memory {
        let bytes = bytes as u64;
        let (outcomes, starts) = (bytes / 4, bytes / 16);
        Memory {
            outcomes: cache(outcomes, OUTCOME_BYTES),
            states: cache(bytes - outcomes - starts, TYPICAL_STATE_BYTES),
            starts: cache(starts, START_BYTES),
        }
    }

    pub fn outcome(&self, from: Fingerprint, pass: PassId) -> Option<Outcome> {
        self.outcomes.get(&(from, pass))
    }

    pub fn add(&self, from: Fingerprint, pass: PassId, outcome: Outcome) {
        self.outcomes.insert((from, pass), outcome);
    }

    pub fn forget(&self, from: Fingerprint, pass: PassId) {
        self.outcomes.remove(&(from, pass));
    }

    pub fn state(&self, id: Fingerprint) -> Option<Arc<State>> {
        self.states.get(&id)
    }

    /// The state, without making it count as used.
    pub fn peek_state(&self, id: Fingerprint) -> Option<Arc<State>> {
        self.states.peek(&id)
    }

    /// Adds a state and says whether it was news. A state that is known in full stays as it is.
    pub fn add_state(&self, state: &Arc<State>) -> bool {
        let news =
            self.states.peek(&state.id).is_none_or(|old| !old.is_complete() && old != *state);
        if news {
            self.states.insert(state.id, Arc::clone(state));
        }
        news
    }

    pub fn start(&self, source: Fingerprint, kind: &str) -> Option<Fingerprint> {
        self.starts.get(&BorrowedStartKey { source, kind })
    }

    pub fn add_start(&self, source: Fingerprint, kind: &str, state: Fingerprint) {
        self.starts.insert(StartKey { source, kind: kind.into() }, state);
    }

    /// Every outcome, in the order of states and passes.
    pub fn all_outcomes(&self) -> Vec<((Fingerprint, PassId), Outcome)> {
        let mut all: Vec<_> = self.outcomes.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }

    pub fn entries(&self) -> u64 {
        (self.outcomes.len() + self.states.len() + self.starts.len()) as u64
    }

    pub fn bytes(&self) -> u64 {
        self.outcomes.weight() + self.states.weight() + self.starts.weight()
    }
}

fn cache<Key: Eq + Hash, Value: Clone>(bytes: u64, bytes_per_entry: u64) -> Cache<Key, Value, Bytes>
where
    Bytes: Weighter<Key, Value>,
{
    let options: Options = OptionsBuilder::new()
        .weight_capacity(bytes)
        .estimated_items_capacity((bytes / bytes_per_entry) as usize)
        .hot_allocation(HOT_PART)
        .build()
        .expect("building fails only where one of the two capacities is missing");
    Cache::with_options(options, Bytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// Reckons what an entry takes, in bytes.
#[derive(Clone)]
struct Bytes;

impl Weighter<(Fingerprint, PassId), Outcome> for Bytes {
    fn weight(&self, _key: &(Fingerprint, PassId), outcome: &Outcome) -> u64 {
        match outcome {
            Outcome::Leads(_) => OUTCOME_BYTES,
            Outcome::Fails(failure) => OUTCOME_BYTES + failure.message.capacity() as u64,
        }
    }
}

impl Weighter<Fingerprint, Arc<State>> for Bytes {
    fn weight(&self, _key: &Fingerprint, state: &Arc<State>) -> u64 {
        STATE_BYTES + (state.opcodes.capacity() * size_of::<u32>()) as u64
    }
}

impl Weighter<StartKey, Fingerprint> for Bytes {
    fn weight(&self, key: &StartKey, _state: &Fingerprint) -> u64 {
        START_BYTES + key.kind.len() as u64
    }
}

#[derive(PartialEq, Eq)]
struct StartKey {
    source: Fingerprint,
    kind: Box<str>,
}

/// Spares a look-up the copy of the kind.
struct BorrowedStartKey<'a> {
    source: Fingerprint,
    kind: &'a str,
}

impl Hash for StartKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        BorrowedStartKey { source: self.source, kind: &self.kind }.hash(hasher);
    }
}

impl Hash for BorrowedStartKey<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.source.hash(hasher);
        self.kind.hash(hasher);
    }
}

impl Equivalent<StartKey> for BorrowedStartKey<'_> {
    fn equivalent(&self, key: &StartKey) -> bool {
        self.source == key.source && self.kind == &*key.kind
    }
}
