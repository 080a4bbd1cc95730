//! How a contestant comes to an order for a program.

use std::sync::Arc;

use xla_gym_agents::{
    AgentError, Chooser, EpisodeRequest, Gatherer, Observation, Observer, TrainedPolicy,
};
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{Env, EnvConfig, EnvError, Walk, World};
use xla_gym_search::{Budget, Goal, Method, Search, search};

use crate::{
    contest::ContestError,
    contestant::{Contestant, Way},
};

/// A contestant before a program.
pub struct Attempt<'a> {
    /// Where; it begins at the first start of the profile.
    pub world: &'a Arc<World>,
    /// Which program of it.
    pub program: usize,
    /// Who.
    pub contestant: &'a Contestant,
    /// How many runs of passes are allowed.
    pub budget: u64,
}

/// Passes that led somewhere, and how many runs that took.
pub struct Found {
    /// The passes.
    pub passes: Vec<PassId>,
    /// The primary metric at the best state on the way.
    pub lowest: u64,
    /// The same at the end of the trajectory, and the way there.
    pub end: Option<(u64, Vec<PassId>)>,
    /// How many runs were used.
    pub charged: u64,
}

impl Attempt<'_> {
    /// How the contestant fares from a start of the profile.
    pub fn from(&self, start: usize) -> Result<Found, ContestError> {
        match &self.contestant.way {
            Way::Walk(policy) => self.walk(policy, Chooser::Greedy(&policy.network), start),
            Way::Luck(policy) => self.walk(policy, Chooser::Random, start),
            Way::Guided(policy, method) => {
                let guide = policy.guide(self.world).map_err(|error| match error {
                    AgentError::Policy { why, .. } => self.refuse(why),
                    error => self.refuse(error),
                })?;
                let guide: Arc<dyn xla_gym_search::Policy> = Arc::new(guide);
                self.search(*method, self.world.first_orders(self.program)?, Some(guide), start)
            }
            Way::Plain(method) => self.search(*method, Vec::new(), None, start),
            Way::Coreset(method) => {
                self.search(*method, self.world.first_orders(self.program)?, None, start)
            }
            Way::Order(passes) => self.follow(passes, start),
            Way::Default => {
                let lowest = self.world.baseline(self.program)?.default.primary() as u64;
                Ok(Found { passes: Vec::new(), lowest, end: None, charged: 0 })
            }
        }
    }

    fn refuse(&self, why: impl ToString) -> ContestError {
        ContestError::Policy { name: self.contestant.name.clone(), why: why.to_string() }
    }

    /// A policy walks once.
    fn walk(
        &self,
        policy: &TrainedPolicy,
        chooser: Chooser<'_>,
        start: usize,
    ) -> Result<Found, ContestError> {
        let (world, interface) = (self.world, &policy.interface);
        let hello = world.engine().hello();
        if hello.opcodes != interface.opcodes {
            let why = "it was trained with another version, which has other opcodes";
            return Err(self.refuse(why));
        }
        if !hello.costs.iter().map(|cost| &cost.name).eq(&interface.costs) {
            let why = "it was trained with another version, which has other estimates";
            return Err(self.refuse(why));
        }
        if interface.start != world.start_name() {
            let (own, here) = (&interface.start, world.start_name());
            let why = format!("it was trained from the start {own:?}, and here is {here:?}");
            return Err(self.refuse(why));
        }
        let traj_limit = (self.budget as usize).max(1);
        let config = EnvConfig { traj_limit, ..EnvConfig::default() };
        let env = Env::new(world, config.clone())?;
        let seen = Observation { policy: interface.views.clone(), value: Vec::new() };
        let observer = Observer::new(&seen, &env);
        if observer.policy_width() != policy.network.shape().inputs {
            let why = "what it should see has another length with this budget";
            return Err(self.refuse(why));
        }
        let gatherer = Gatherer { world: world.clone(), config, observer, mask: true };
        let (benchmark, seed) = (self.program, self.contestant.seed);
        let episode =
            gatherer.play(EpisodeRequest { benchmark, start, seed, stream: 0 }, chooser)?;
        let pass = |action: &usize| world.actions()[*action];
        Ok(Found {
            passes: episode.best_path.iter().map(pass).collect(),
            lowest: episode.lowest(),
            end: Some((episode.last(), episode.path.iter().map(pass).collect())),
            charged: episode.len() as u64,
        })
    }

    /// An order that is the same for all programs.
    fn follow(&self, passes: &[String], start: usize) -> Result<Found, ContestError> {
        let names = passes.iter().map(String::as_str);
        let passes = self.world.engine().passes(names).map_err(EnvError::from)?;
        let mut walk = Walk::begin_at(self.world, self.program, start)?;
        let mut best = (walk.state().counts.primary(), 0);
        let within = passes.len().min(self.budget as usize);
        for &pass in &passes[..within] {
            walk.step(pass)?;
            best = best.min((walk.state().counts.primary(), walk.steps().len()));
        }
        let (lowest, length) = best;
        let end = Some((walk.state().counts.primary(), walk.steps().collect()));
        let passes = walk.steps().take(length).collect();
        Ok(Found { passes, lowest, end, charged: within as u64 })
    }

    /// A search.
    fn search(
        &self,
        method: Method,
        first: Vec<Vec<PassId>>,
        policy: Option<Arc<dyn xla_gym_search::Policy>>,
        start: usize,
    ) -> Result<Found, ContestError> {
        let (world, benchmark) = (self.world, self.program);
        let prefix = match start {
            0 => Vec::new(),
            start => world.start_passes(benchmark, start)?.to_vec(),
        };
        let start = Walk::begin_after(world, benchmark, &prefix)?;
        let task = Search {
            world,
            benchmark,
            budget: Budget::passes(self.budget),
            seed: self.contestant.seed,
            goal: Goal::default(),
            policy,
            prefix,
            first,
            costs: Arc::default(),
            stop: Arc::default(),
        };
        let found = search(&task, &*method.optimizer(), &|_, _| {})?;
        let lowest = start.state().counts.primary();
        let best = found.candidates.first();
        let best = best.filter(|best| best.state.counts.primary() < lowest);
        // The way that a search returns includes what it was told to begin with.
        let before = start.path().len();
        Ok(Found {
            passes: best.map(|best| best.passes[before..].to_vec()).unwrap_or_default(),
            lowest: best.map_or(lowest, |best| best.state.counts.primary()),
            end: None,
            charged: found.passes,
        })
    }
}
