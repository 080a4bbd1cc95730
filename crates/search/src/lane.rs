//! One line of work of a search.

use std::{
    cmp,
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_env::{EnvError, State, Stepped, Walk, World};

use crate::budget::{Budget, StopReason};

/// What a pass is credited that changes a program without making it smaller, where one that does
/// is credited 1.
const NEUTRAL: f64 = 0.4;

/// How many of the best states are kept.
const KEPT: usize = 8;

/// A state worth returning.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The passes that lead there, without those that do nothing.
    pub passes: Vec<PassId>,
    /// What is known of it.
    pub state: Arc<State>,
}

impl Candidate {
    /// What is made small: operations; among equals, the shorter way.
    pub fn rank(&self) -> (u64, usize) {
        (self.state.counts.operations, self.passes.len())
    }
}

/// What the lanes of a search share.
pub(crate) struct Shared {
    pub world: Arc<World>,
    pub benchmark: usize,
    pub prefix: Vec<PassId>,
    pub deadline: Option<Instant>,
    pub stop: Arc<AtomicBool>,
    /// Passes charged so far, for people who watch.
    pub charged: AtomicU64,
    /// Fewest operations so far, likewise.
    pub fewest: AtomicU64,
}

/// One line of work of a search: charges passes, and keeps the best states.
pub struct Lane<'a> {
    shared: &'a Shared,
    left: Option<u64>,
    charged: HashSet<(Fingerprint, PassId)>,
    /// Passes that are known here to do nothing, by state.
    useless: HashSet<(Fingerprint, PassId)>,
    best: Vec<Candidate>,
    /// Orders that were tried before this lane began, such as the compiler's own.
    seeds: Vec<Vec<PassId>>,
    /// By pass: how often it was tried, and how often it was of use.
    tried: Vec<(f64, f64)>,
    over: Option<StopReason>,
    /// Its luck.
    pub rng: ChaCha8Rng,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(shared: &'a Shared, budget: &Budget, seed: u64, lane: u64, of: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(lane);
        Lane {
            shared,
            left: budget.share(lane, of),
            charged: HashSet::new(),
            useless: HashSet::new(),
            best: Vec::new(),
            seeds: Vec::new(),
            tried: vec![(0.0, 0.0); shared.world.actions().len()],
            over: None,
            rng,
        }
    }

    /// A lane that knows what another one knew at its end, and has its own luck and budget.
    pub(crate) fn after(other: &Lane<'a>, left: Option<u64>, seed: u64, lane: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(lane);
        Lane {
            shared: other.shared,
            left,
            charged: other.charged.clone(),
            useless: other.useless.clone(),
            best: other.best.clone(),
            seeds: other.seeds.clone(),
            tried: other.tried.clone(),
            over: other.over,
            rng,
        }
    }

    /// What is left of the budget.
    pub(crate) fn left(&self) -> Option<u64> {
        self.left
    }

    /// Orders that were tried before this lane began.
    pub fn seeds(&self) -> &[Vec<PassId>] {
        &self.seeds
    }

    pub(crate) fn add_seed(&mut self, order: Vec<PassId>) {
        self.seeds.push(order);
    }

    /// A pass at random, those more often that were of use more often.
    pub fn pick(&mut self) -> PassId {
        let weight = |(tried, used): &(f64, f64)| (used + 1.0) / (tried + 2.0);
        let total: f64 = self.tried.iter().map(weight).sum();
        let mut at = self.rng.random_range(0.0..total);
        for (pass, tried) in self.passes().iter().zip(&self.tried) {
            at -= weight(tried);
            if at <= 0.0 {
                return *pass;
            }
        }
        self.passes()[self.passes().len() - 1]
    }

    /// The passes to choose from.
    pub fn passes(&self) -> &'a [PassId] {
        self.shared.world.actions()
    }

    /// A walk from the start, after the prefix of the search.
    pub fn begin(&self) -> Result<Walk, EnvError> {
        let mut walk = Walk::begin(&self.shared.world, self.shared.benchmark)?;
        for &pass in &self.shared.prefix {
            walk.step(pass)?;
        }
        Ok(walk)
    }

    /// Why it is over, if it is.
    pub fn over(&self) -> Option<StopReason> {
        self.over
    }

    /// Ends the lane for want of anything to try.
    pub fn exhausted(&mut self) {
        self.over.get_or_insert(StopReason::Exhausted);
    }

    /// Whether a pass is known to do nothing in the current state.
    pub fn is_useless(&self, walk: &Walk, pass: PassId) -> bool {
        self.useless.contains(&(walk.state().id, pass))
    }

    /// Charges a pass on a state; false if the budget is spent.
    pub fn charge(&mut self, state: Fingerprint, pass: PassId) -> bool {
        if self.over.is_some() {
            return false;
        }
        if self.shared.stop.load(Ordering::Relaxed) {
            self.over = Some(StopReason::Interrupted);
        } else if self.shared.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.over = Some(StopReason::Time);
        } else if !self.charged.contains(&(state, pass)) {
            match &mut self.left {
                Some(0) => self.over = Some(StopReason::Passes),
                left => {
                    if let Some(left) = left {
                        *left -= 1;
                    }
                    self.charged.insert((state, pass));
                    self.shared.charged.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.over.is_none()
    }

    /// Runs a pass and remembers the state if it is good; None if the budget is spent.
    pub fn step(&mut self, walk: &mut Walk, pass: PassId) -> Result<Option<Stepped>, EnvError> {
        let before = walk.state().clone();
        if !self.charge(before.id, pass) {
            return Ok(None);
        }
        let stepped = walk.step(pass)?;
        if let Some(action) = self.passes().iter().position(|other| *other == pass) {
            let (was, is) = (before.counts.operations, walk.state().counts.operations);
            self.tried[action].0 += 1.0;
            self.tried[action].1 += match is.cmp(&was) {
                cmp::Ordering::Less => 1.0,
                cmp::Ordering::Equal if stepped.changed => NEUTRAL,
                _ => 0.0,
            };
        }
        if stepped.changed {
            self.offer(walk);
        } else {
            self.useless.insert((before.id, pass));
        }
        Ok(Some(stepped))
    }

    /// Keeps a state if it is among the best.
    pub fn offer(&mut self, walk: &Walk) {
        let operations = walk.state().counts.operations;
        self.shared.fewest.fetch_min(operations, Ordering::Relaxed);
        let rank = (operations, walk.path().len());
        if self.best.len() >= KEPT && self.best.last().is_some_and(|last| rank >= last.rank()) {
            return;
        }
        match self.best.iter_mut().find(|other| other.state.id == walk.state().id) {
            Some(same) if same.rank() <= rank => return,
            Some(same) => same.passes = walk.path().collect(),
            None => self
                .best
                .push(Candidate { passes: walk.path().collect(), state: walk.state().clone() }),
        }
        self.best.sort_by_key(Candidate::rank);
        self.best.truncate(KEPT);
    }

    pub(crate) fn finish(self) -> (Vec<Candidate>, StopReason) {
        (self.best, self.over.unwrap_or(StopReason::Exhausted))
    }
}
