//! Runs a method on a program.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use xla_gym_common::on_all_cores;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk, World};

use crate::{
    beam::Beam,
    budget::{Budget, StopReason},
    costs::Costs,
    evolve::Evolve,
    goal::Goal,
    lane::{Candidate, Lane, Shared},
    mcts::Mcts,
    policy::Policy,
    random::Random,
};

/// A way to look for better orders.
pub trait Optimizer: Sync {
    /// Into how many lanes the budget is divided. Not the number of cores: results must not
    /// depend on that.
    fn lanes(&self) -> u64 {
        4
    }

    /// Works until the lane is over.
    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError>;
}

/// The methods, by name.
///
/// ```
/// use xla_gym_search::Method;
///
/// let names = Method::ALL.map(Method::name);
/// assert_eq!(names, ["random", "greedy", "beam", "mcts", "evolve", "coreset"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Random orders.
    Random,
    /// The best next pass, again and again.
    Greedy,
    /// The best few states of each length.
    Beam,
    /// A tree of states, searched by Monte Carlo.
    Mcts,
    /// Orders that are mutated and crossed.
    Evolve,
    /// Only what is tried first.
    Coreset,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 6] = [
        Method::Random,
        Method::Greedy,
        Method::Beam,
        Method::Mcts,
        Method::Evolve,
        Method::Coreset,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Random => "random",
            Method::Greedy => "greedy",
            Method::Beam => "beam",
            Method::Mcts => "mcts",
            Method::Evolve => "evolve",
            Method::Coreset => "coreset",
        }
    }

    /// As it is used if nothing else is said.
    pub fn optimizer(self) -> Box<dyn Optimizer> {
        match self {
            Method::Random => Box::new(Random::default()),
            Method::Greedy => Box::new(Beam { width: 1, ..Beam::default() }),
            Method::Beam => Box::new(Beam::default()),
            Method::Mcts => Box::new(Mcts::default()),
            Method::Evolve => Box::new(Evolve::default()),
            Method::Coreset => Box::new(Nothing),
        }
    }
}

/// Tries nothing beyond what is tried first.
struct Nothing;

impl Optimizer for Nothing {
    fn lanes(&self) -> u64 {
        1
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        lane.exhausted();
        Ok(())
    }
}

/// What to search.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use xla_gym_env::{World, WorldConfig};
/// use xla_gym_search::{Budget, Goal, Method, Search, search};
/// use xla_gym_toy_profile::Toy;
///
/// let world = Arc::new(World::new(WorldConfig::new(Arc::new(Toy::default()))?, ["program.toy"])?);
/// let task = Search {
///     world: &world,
///     benchmark: 0,
///     budget: Budget::passes(500),
///     seed: 0,
///     goal: Goal::default(),
///     policy: None,
///     prefix: Vec::new(),
///     first: Vec::new(),
///     costs: Arc::default(),
///     stop: Arc::default(),
/// };
/// let found = search(&task, &*Method::Beam.optimizer(), &|passes, lowest| {
///     eprintln!("{passes} passes, {lowest:.3} of the start");
/// })?;
/// let best = &found.candidates[0];
/// println!("{} passes lead to {}", best.passes.len(), best.state.counts.primary());
/// # Ok::<(), xla_gym_env::EnvError>(())
/// ```
pub struct Search<'a> {
    /// Where.
    pub world: &'a Arc<World>,
    /// Which benchmark of it.
    pub benchmark: usize,
    /// How much it may take.
    pub budget: Budget,
    /// Its luck.
    pub seed: u64,
    /// What is to be made small.
    pub goal: Goal,
    /// Which passes look promising, if somebody knows.
    pub policy: Option<Arc<dyn Policy>>,
    /// Passes with which every order begins; not charged.
    pub prefix: Vec<PassId>,
    /// Orders that are tried first, such as the compiler's own. They are charged like any other.
    pub first: Vec<Vec<PassId>>,
    /// What passes cost on this program, as far as somebody knows: for searches with a time limit.
    pub costs: Arc<Costs>,
    /// Set by whoever wants it to end.
    pub stop: Arc<AtomicBool>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best states, the best first.
    pub candidates: Vec<Candidate>,
    /// The best of what was tried first, likewise.
    pub first: Vec<Candidate>,
    /// Passes that were charged.
    pub passes: u64,
    /// How long it took.
    pub time: Duration,
    /// Why it ended.
    pub stopped: StopReason,
}

/// Searches. `watch` is told now and then how many passes were charged and the lowest value of the
/// goal so far, where the start has 1 if the weights add up to that.
pub fn search(
    search: &Search<'_>,
    optimizer: &dyn Optimizer,
    watch: &(dyn Fn(u64, f64) + Sync),
) -> Result<Found, EnvError> {
    let begin = Instant::now();
    let shared = Shared {
        world: search.world.clone(),
        benchmark: search.benchmark,
        start: Walk::begin(search.world, search.benchmark)?.state().clone(),
        goal: search.goal.clone(),
        policy: search.policy.clone(),
        prefix: search.prefix.clone(),
        deadline: search.budget.deadline(begin),
        costs: search.costs.clone(),
        stop: search.stop.clone(),
        charged: AtomicU64::new(0),
        lowest: AtomicU64::new(f64::INFINITY.to_bits()),
    };
    let ended = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                watch(now(&shared.charged), f64::from_bits(now(&shared.lowest)));
            }
        });
        let results = run_lanes(search, optimizer, &shared);
        ended.store(true, Ordering::Relaxed);
        results
    })?;
    let (first, results) = results;
    let mut candidates: Vec<Candidate> = first.clone();
    let mut stopped = StopReason::Exhausted;
    for (best, reason) in results {
        stopped = stopped.max(reason);
        candidates.extend(best);
    }
    candidates.sort_by_key(Candidate::rank);
    let mut seen = std::collections::HashSet::new();
    candidates.retain(|candidate| seen.insert(candidate.state.id));
    let passes = shared.charged.into_inner();
    Ok(Found { candidates, first, passes, time: begin.elapsed(), stopped })
}

/// What was tried first, and what each lane found.
type Results = (Vec<Candidate>, Vec<(Vec<Candidate>, StopReason)>);

/// First what is to be tried first, then the lanes, which all know what came of it.
fn run_lanes(
    search: &Search<'_>,
    optimizer: &dyn Optimizer,
    shared: &Shared,
) -> Result<Results, EnvError> {
    let mut first = Lane::new(shared, &search.budget, search.seed, 0, 1);
    let start = first.begin()?;
    first.offer(&start);
    let given = start.path().len();
    drop(start);
    if search.budget.passes.is_some() {
        try_first(&mut first, &search.first, given)?;
    } else {
        // Nobody counts, so each can have a lane of its own.
        let parts: Vec<&[Vec<PassId>]> =
            std::iter::once(&[][..]).chain(search.first.chunks(1)).collect();
        let tried = on_all_cores(parts.len(), |part| {
            let mut lane = Lane::after(&first, None, search.seed, 0);
            if part == 0 {
                try_first(&mut lane, &[], given)?;
            } else {
                walk_all(&mut lane, parts[part], given)?;
            }
            Ok::<_, EnvError>(lane)
        })?;
        tried.into_iter().for_each(|lane| first.absorb(lane));
    }
    let lanes = optimizer.lanes();
    let rest = Budget { passes: first.left(), time: None };
    let results = on_all_cores(lanes as usize, |index| {
        let share = rest.share(index as u64, lanes);
        let mut lane = Lane::after(&first, share, search.seed, index as u64 + 1);
        if lane.over().is_none() {
            optimizer.run(&mut lane)?;
        }
        Ok::<_, EnvError>(lane.finish())
    })?;
    Ok((first.finish().0, results))
}

/// First where the policy leads, if there is one, then the orders.
fn try_first(lane: &mut Lane<'_>, orders: &[Vec<PassId>], given: usize) -> Result<(), EnvError> {
    if lane.is_guided() {
        let walk = follow_policy(lane)?;
        lane.add_seed(walk.path().skip(given).collect());
    }
    walk_all(lane, orders, given)
}

fn walk_all(lane: &mut Lane<'_>, orders: &[Vec<PassId>], given: usize) -> Result<(), EnvError> {
    for order in orders {
        let walk = walk_order(lane, order)?;
        lane.add_seed(walk.path().skip(given).collect());
    }
    Ok(())
}

/// Walks an order to its end, or to that of the budget. Begins with the prefix.
pub(crate) fn walk_order(lane: &mut Lane<'_>, order: &[PassId]) -> Result<Walk, EnvError> {
    let mut walk = lane.begin()?;
    for &pass in order {
        if lane.is_useless(&walk, pass) || lane.is_too_slow(pass) {
            continue;
        }
        if lane.step(&mut walk, pass)?.is_none() {
            break;
        }
    }
    Ok(walk)
}

/// The most steps of a policy's own walk.
const FOLLOWED: u64 = 64;

/// Walks once as the policy says, always to the pass that it puts first, for at most half of what is
/// left of the budget.
fn follow_policy(lane: &mut Lane<'_>) -> Result<Walk, EnvError> {
    let steps = lane.left().map_or(FOLLOWED, |left| FOLLOWED.min(left / 2));
    let mut walk = lane.begin()?;
    for _ in 0..steps {
        let Some(pass) = lane.first_choice(&walk) else { break };
        if lane.step(&mut walk, pass)?.is_none() {
            break;
        }
    }
    Ok(walk)
}
