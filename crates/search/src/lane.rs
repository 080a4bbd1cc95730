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

use crate::{
    budget::{Budget, StopReason},
    costs::Costs,
    goal::{Goal, Value},
    policy::Policy,
};

/// What a pass is credited that changes a program without making it smaller, where one that does
/// is credited 1.
const NEUTRAL: f64 = 0.4;

/// After so many walks without anything new there is nothing left to try.
const STALE: u32 = 500;

/// How many of the best states are kept.
const KEPT: usize = 8;

/// A state worth returning.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The passes that lead there, without those that do nothing.
    pub passes: Vec<PassId>,
    /// What is known of it.
    pub state: Arc<State>,
    /// How good it is.
    pub value: Value,
}

impl Candidate {
    /// What is made small; among equals, the shorter way.
    pub fn rank(&self) -> (Value, usize) {
        (self.value, self.passes.len())
    }
}

/// What the lanes of a search share.
pub(crate) struct Shared {
    pub world: Arc<World>,
    pub benchmark: usize,
    pub start: Arc<State>,
    pub goal: Goal,
    pub policy: Option<Arc<dyn Policy>>,
    pub prefix: Vec<PassId>,
    pub deadline: Option<Instant>,
    pub costs: Arc<Costs>,
    pub stop: Arc<AtomicBool>,
    /// Passes charged so far, for people who watch.
    pub charged: AtomicU64,
    /// The lowest value of the goal so far, likewise: the bits of a float.
    pub lowest: AtomicU64,
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
    /// Walks begun since something new was tried.
    stale: u32,
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
            stale: 0,
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
            stale: 0,
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

    /// A weight for each pass where a walk stands: what the policy expects, if there is one, and
    /// how often the pass was of use in this search. Zero for those that do nothing there.
    pub fn weights(&self, walk: &Walk) -> Vec<f64> {
        let mut weights = match &self.shared.policy {
            Some(policy) => policy.weigh(walk, self.passes()),
            None => vec![1.0; self.passes().len()],
        };
        for (action, (weight, pass)) in weights.iter_mut().zip(self.passes()).enumerate() {
            let (tried, used) = self.tried[action];
            *weight *= (used + 1.0) / (tried + 2.0) * self.worth(action);
            if self.is_useless(walk, *pass) {
                *weight = 0.0;
            }
        }
        weights
    }

    /// What a pass is worth by the time that it takes, if time is limited: 1 is usual.
    fn worth(&self, action: usize) -> f64 {
        self.shared.deadline.map_or(1.0, |deadline| {
            self.shared.costs.worth(action, deadline.saturating_duration_since(Instant::now()))
        })
    }

    /// Whether a pass takes too long for the time that is left.
    pub fn is_too_slow(&self, pass: PassId) -> bool {
        self.action(pass).is_some_and(|action| self.worth(action) == 0.0)
    }

    fn action(&self, pass: PassId) -> Option<usize> {
        self.passes().iter().position(|other| *other == pass)
    }

    /// What the policy puts first, apart from passes that do nothing; none if nothing is left, or if
    /// there is no policy.
    pub fn first_choice(&self, walk: &Walk) -> Option<PassId> {
        let weights = self.shared.policy.as_ref()?.weigh(walk, self.passes());
        let choices = self.passes().iter().copied().zip(weights);
        let useful =
            choices.filter(|(pass, weight)| *weight > 0.0 && !self.is_useless(walk, *pass));
        let useful = useful.filter(|(pass, _)| !self.is_too_slow(*pass));
        // The first among equals, as where an agent walks.
        let better =
            |best: (PassId, f64), next: (PassId, f64)| if next.1 > best.1 { next } else { best };
        useful.reduce(better).map(|(pass, _)| pass)
    }

    /// A pass at random by its weight; none if no pass does anything.
    pub fn pick_for(&mut self, walk: &Walk) -> Option<PassId> {
        let weights = self.weights(walk);
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let mut at = self.rng.random_range(0.0..total);
        let mut last = None;
        for (pass, weight) in self.passes().iter().zip(weights) {
            if weight > 0.0 {
                last = Some(*pass);
                at -= weight;
                if at <= 0.0 {
                    break;
                }
            }
        }
        last
    }

    /// How good the state is where a walk stands.
    pub fn value(&self, walk: &Walk) -> Value {
        self.shared.goal.value(walk.state(), &self.shared.start)
    }

    /// Whether a policy says which passes look promising.
    pub fn is_guided(&self) -> bool {
        self.shared.policy.is_some()
    }

    /// The passes to choose from.
    pub fn passes(&self) -> &'a [PassId] {
        self.shared.world.actions()
    }

    /// A walk from the start, after the prefix of the search. The lane is over when walk after walk
    /// met nothing new: a small program has few states.
    pub fn begin(&mut self) -> Result<Walk, EnvError> {
        self.stale += 1;
        if self.stale > STALE {
            self.exhausted();
        }
        Walk::begin_after(&self.shared.world, self.shared.benchmark, &self.shared.prefix)
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
                    self.stale = 0;
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
        let begin = Instant::now();
        let stepped = walk.step(pass)?;
        if let Some(action) = self.action(pass) {
            if !stepped.remembered {
                self.shared.costs.saw(action, begin.elapsed());
            }
            let was = self.shared.goal.value(&before, &self.shared.start);
            let is = self.value(walk);
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
        let value = self.value(walk);
        // Bits of floats that are not negative are ordered like the floats.
        self.shared.lowest.fetch_min(value.share.max(0.0).to_bits(), Ordering::Relaxed);
        let rank = (value, walk.path().len());
        if self.best.len() >= KEPT && self.best.last().is_some_and(|last| rank >= last.rank()) {
            return;
        }
        match self.best.iter_mut().find(|other| other.state.id == walk.state().id) {
            Some(same) if same.rank() <= rank => return,
            Some(same) => same.passes = walk.path().collect(),
            None => {
                let (passes, state) = (walk.path().collect(), walk.state().clone());
                self.best.push(Candidate { passes, state, value });
            }
        }
        self.best.sort_by_key(Candidate::rank);
        self.best.truncate(KEPT);
    }

    /// Learns what another lane learnt that began where this one stands.
    pub(crate) fn absorb(&mut self, other: Lane<'a>) {
        self.charged.extend(other.charged);
        self.useless.extend(other.useless);
        self.seeds.extend(other.seeds);
        for (mine, theirs) in self.tried.iter_mut().zip(other.tried) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        self.best.extend(other.best);
        self.best.sort_by_key(Candidate::rank);
        let mut seen = HashSet::new();
        self.best.retain(|candidate| seen.insert(candidate.state.id));
        self.best.truncate(KEPT);
        self.over = self.over.max(other.over);
    }

    pub(crate) fn finish(self) -> (Vec<Candidate>, StopReason) {
        (self.best, self.over.unwrap_or(StopReason::Exhausted))
    }
}
