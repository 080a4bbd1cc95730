//! One contestant, one graph.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use thiserror::Error;
use xla_gym_agents::{Chooser, Gatherer, Observation, Observer, Order, TrainedPolicy};
use xla_gym_common::lock;
use xla_gym_data::{BenchmarkError, Benchmarks};
use xla_gym_engine::{
    Death, EngineConfig, EngineError,
    protocol::{Fingerprint, PassId},
};
use xla_gym_env::{CacheConfig, Env, EnvConfig, EnvError, Start, Walk, World, WorldConfig};
use xla_gym_optimize::coreset;
use xla_gym_proof::{Options, Outputs, Pipeline, Proof, Prover};
use xla_gym_report::results::{Outcome, Stage};
use xla_gym_search::{Budget, Goal, Method, Search, search};

use crate::{
    contestant::{Contestant, Way},
    header::{END, KERNELS, LEGAL, ORDER},
};

/// What can go wrong in a contest.
#[derive(Debug, Error)]
pub enum ContestError {
    /// The environment gave up.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A program cannot be had.
    #[error(transparent)]
    Benchmark(#[from] BenchmarkError),
    /// A policy knows passes that this compiler does not have.
    #[error("the policy {name} does not fit this compiler: {why}")]
    Policy {
        /// Which one.
        name: String,
        /// Why.
        why: String,
    },
}

/// Passes that led somewhere, and how many runs that took.
struct Found {
    passes: Vec<PassId>,
    /// Operations at the best state on the way.
    operations: u64,
    /// Operations at the end of the trajectory, and the way there.
    end: Option<(u64, Vec<PassId>)>,
    charged: u64,
}

/// The pass to blame is looked for only if that should take no longer than this.
const CHEAP_SECONDS: f64 = 30.0;

/// Operations before layout assignment, and kernels; why not, if the pipeline refuses.
type Legal = Result<(u64, u64), String>;

/// Graphs on which contestants meet. What one of them learns about passes saves time for the
/// others, and changes nothing else.
pub struct Contest {
    engine: EngineConfig,
    programs: Benchmarks,
    cache: CacheConfig,
    /// A world for each set of passes.
    worlds: Mutex<HashMap<Vec<String>, Arc<World>>>,
    /// By graph and state.
    legal: Mutex<HashMap<(usize, Fingerprint), Legal>>,
    /// Who runs what is to count; nobody, if everything is taken at its word.
    prover: Option<Prover>,
}

impl Contest {
    /// Finds the graphs. `check` says how results are run beside the program as emitted; without it
    /// they are not.
    pub fn new(
        engine: EngineConfig,
        programs: Benchmarks,
        cache: CacheConfig,
        check: Option<Options>,
    ) -> Contest {
        Contest {
            engine,
            programs,
            cache,
            worlds: Mutex::default(),
            legal: Mutex::default(),
            prover: check.map(Prover::new),
        }
    }

    /// Lets go of what is kept of a graph only to compare results on it.
    pub fn leave(&self, graph: usize) {
        if let Some(prover) = &self.prover {
            prover.forget(graph);
        }
    }

    /// How many graphs there are.
    pub fn len(&self) -> usize {
        self.programs.programs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.programs.programs.is_empty()
    }

    /// The name of a graph.
    pub fn name(&self, graph: usize) -> String {
        self.programs.programs[graph].name()
    }

    /// Lets a contestant loose on a graph. `legal`: whether its result also goes through XLA's real
    /// pipeline.
    pub fn compete(
        &self,
        graph: usize,
        contestant: &Contestant,
        budget: u64,
        legal: bool,
    ) -> Result<Outcome, ContestError> {
        let passes = match &contestant.way {
            Way::Walk(policy) | Way::Luck(policy) => policy.interface.passes.clone(),
            _ => Vec::new(),
        };
        let world = self.world(passes)?;
        let defaults = world.defaults(graph)?;
        let begin = Instant::now();
        let found = self.find(&world, graph, contestant, budget, false)?;
        let seconds = begin.elapsed().as_secs_f64();
        let stage = |name: &str, result| stage(name, defaults.initial, defaults.optimised, result);
        let passes = Some(names(&world, &found.passes));
        let outputs = Some(Outputs::Unchecked);
        let mut stages = vec![Stage { outputs, passes, ..stage(ORDER, found.operations) }];
        stages.extend(found.end.as_ref().map(|(end, _)| stage(END, *end)));
        let mut outcome = Outcome {
            graph: self.name(graph),
            splits: self.programs.programs[graph].test_splits(),
            contestant: contestant.name.clone(),
            kind: contestant.kind(),
            seed: contestant.seed,
            weights: contestant.weights(),
            budget,
            charged: found.charged,
            stages,
            seconds,
            ..Outcome::default()
        };
        if !matches!(contestant.way, Way::Default) {
            self.prove(&world, graph, &found, &mut outcome)?;
        } else if self.prover.is_some() {
            // What XLA itself makes of a program is what all others are compared with.
            outcome.stages[0].outputs = Some(Outputs::Equal);
        }
        if legal {
            self.add_legal(&world, graph, contestant, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// Runs what a contestant found beside the program as emitted. What is not found equal counts as
    /// if nothing had been done.
    fn prove(
        &self,
        world: &Arc<World>,
        graph: usize,
        found: &Found,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        let Some(prover) = &self.prover else { return Ok(()) };
        let mut best = along(world, graph, &[], &found.passes)?;
        let proof = prover.prove(&mut best, Pipeline::Whole)?;
        if let Some(order) = outcome.stage_mut(ORDER) {
            order.outputs = Some(proof.outputs.clone());
            if !proof.outputs.count() {
                forfeit(order);
            }
        }
        if !proof.outputs.count() {
            self.blame(world, graph, &[], &found.passes, Pipeline::Whole, &proof, outcome)?;
        }
        let mut end_proof = proof;
        if let (Some((_, path)), Some(end)) = (&found.end, outcome.stage_mut(END)) {
            let mut last = along(world, graph, &[], path)?;
            if last.state().id != best.state().id {
                end_proof = prover.prove(&mut last, Pipeline::Whole)?;
                end.outputs = Some(end_proof.outputs.clone());
            }
            if !end_proof.outputs.count() {
                forfeit(end);
            }
        }
        Ok(())
    }

    /// Says why something does not count, and by which pass, where that is cheap to find out.
    #[allow(clippy::too_many_arguments, reason = "each is a part of what was run")]
    fn blame(
        &self,
        world: &Arc<World>,
        graph: usize,
        prefix: &[PassId],
        passes: &[PassId],
        pipeline: Pipeline,
        proof: &Proof,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        outcome.why.get_or_insert_with(|| proof.words.clone());
        let questions = f64::from(passes.len().max(1).ilog2() + 1);
        let unknown = matches!(proof.outputs, Outputs::NotComparable(_) | Outputs::Unchecked);
        if outcome.guilty.is_some() || unknown || questions * proof.seconds > CHEAP_SECONDS {
            return Ok(());
        }
        if let Some(prover) = &self.prover {
            let guilty = prover.guilty(world, graph, prefix, passes, pipeline)?;
            outcome.guilty = guilty.map(|guilty| guilty.pass);
        }
        Ok(())
    }

    /// How a contestant fares from the program as emitted, or from the program made legal.
    fn find(
        &self,
        world: &Arc<World>,
        graph: usize,
        contestant: &Contestant,
        budget: u64,
        legal: bool,
    ) -> Result<Found, ContestError> {
        let search = |method, first, policy| {
            look(world, graph, method, first, policy, contestant.seed, budget, legal)
        };
        match &contestant.way {
            Way::Walk(policy) | Way::Luck(policy) => {
                walk(world, graph, contestant, policy, budget, legal)
            }
            Way::Guided(policy, method) => {
                let guide: Arc<dyn xla_gym_search::Policy> = Arc::new(policy.guide(world));
                search(*method, coreset(world.engine()), Some(guide))
            }
            Way::Plain(method) => search(*method, Vec::new(), None),
            Way::Coreset(method) => search(*method, coreset(world.engine()), None),
            Way::Order(passes) => follow(world, graph, passes, budget, legal),
            Way::Default => {
                let operations = world.defaults(graph)?.optimised;
                Ok(Found { passes: Vec::new(), operations, end: None, charged: 0 })
            }
        }
    }

    /// What the contestant makes of the program made legal, with the same budget, after XLA's real
    /// pipeline. Where that refuses, or outputs are not found equal, the result counts as one that
    /// removed nothing.
    fn add_legal(
        &self,
        world: &Arc<World>,
        graph: usize,
        contestant: &Contestant,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        let defaults = world.defaults(graph)?;
        let (initial, default) = (defaults.legal_initial, defaults.legal);
        let own = defaults.kernels as f64;
        if matches!(contestant.way, Way::Default) {
            let outputs = self.prover.is_some().then_some(Outputs::Equal);
            outcome.stages.extend([
                Stage { outputs, ..stage(LEGAL, initial, default, default) },
                Stage::left(KERNELS, own, own),
            ]);
            return Ok(());
        }
        let found = self.find(world, graph, contestant, outcome.budget, true)?;
        let legalising = world.legalising(graph)?;
        let mut walk = along(world, graph, &legalising, &found.passes)?;
        let passes = Some(names(world, &found.passes));
        let key = (graph, walk.state().id);
        let known = lock(&self.legal).get(&key).cloned();
        let through = match known {
            Some(through) => through,
            None => {
                let replaced = match walk.session() {
                    Ok(session) => world.replaced(session),
                    Err(EnvError::Engine(error)) => Err(error),
                    Err(error) => return Err(error.into()),
                };
                let through = match replaced {
                    Ok(through) => Ok(through),
                    Err(
                        error @ (EngineError::Refused { .. }
                        | EngineError::Pass(_)
                        | EngineError::Died { death: Death::Signal { .. }, .. }),
                    ) => Err(error.to_string()),
                    // No word of the compiler's about this program.
                    Err(error) => return Err(EnvError::from(error).into()),
                };
                lock(&self.legal).insert(key, through.clone());
                through
            }
        };
        let mut outputs = None;
        let (result, left) = match through {
            Err(reason) => {
                outcome.refused = Some(reason);
                outputs = self.prover.is_some().then_some(Outputs::Rejected);
                (initial, defaults.kernels_initial)
            }
            Ok(through) => through,
        };
        let mut legal = Stage { passes, ..stage(LEGAL, initial, default, result) };
        let mut kernels = Stage::left(KERNELS, own, left as f64);
        if let (Some(prover), None) = (&self.prover, &outcome.refused) {
            let proof = prover.prove(&mut walk, Pipeline::Replaced)?;
            if !proof.outputs.count() {
                forfeit(&mut legal);
                kernels.claimed = Some(kernels.result);
                kernels.result = kernels.result.max(defaults.kernels_initial as f64);
                let pipeline = Pipeline::Replaced;
                self.blame(world, graph, &legalising, &found.passes, pipeline, &proof, outcome)?;
            }
            outputs = Some(proof.outputs);
        }
        outcome.stages.extend([Stage { outputs, ..legal }, kernels]);
        Ok(())
    }

    /// The world in which some passes are the actions; all of them, if none are named.
    fn world(&self, passes: Vec<String>) -> Result<Arc<World>, ContestError> {
        let mut worlds = lock(&self.worlds);
        if let Some(world) = worlds.get(&passes) {
            return Ok(world.clone());
        }
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..self.engine.clone() },
            start: Start::Emitted,
            passes: passes.clone(),
            cache: self.cache.clone(),
        };
        let world = Arc::new(World::with_programs(config, self.programs.clone())?);
        worlds.insert(passes, world.clone());
        Ok(world)
    }
}

/// Where passes lead after others.
fn along(
    world: &Arc<World>,
    graph: usize,
    prefix: &[PassId],
    passes: &[PassId],
) -> Result<Walk, ContestError> {
    let mut walk = Walk::begin_after(world, graph, prefix)?;
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}

/// A policy walks once.
fn walk(
    world: &Arc<World>,
    graph: usize,
    contestant: &Contestant,
    policy: &TrainedPolicy,
    budget: u64,
    legal: bool,
) -> Result<Found, ContestError> {
    let refuse =
        |why: &str| ContestError::Policy { name: contestant.name.clone(), why: why.to_owned() };
    if world.engine().hello().opcodes != policy.interface.opcodes {
        return Err(refuse("it was trained with another version, which has other opcodes"));
    }
    if policy.interface.normalised {
        return Err(refuse("it was trained on programs in a normal form"));
    }
    let config = EnvConfig { traj_limit: (budget as usize).max(1), ..EnvConfig::default() };
    let env = Env::new(world, config.clone())?;
    let seen = Observation { policy: policy.interface.views.clone(), value: Vec::new() };
    let observer = Observer::new(&seen, &env);
    if observer.policy_width() != policy.network.shape().inputs {
        return Err(refuse("what it should see has another length with this budget"));
    }
    let gatherer = Gatherer { world: world.clone(), config, observer, mask: true };
    let order = Order { benchmark: graph, legal, seed: contestant.seed, stream: 0 };
    let chooser = match contestant.way {
        Way::Luck(_) => Chooser::Random,
        _ => Chooser::Greedy(&policy.network),
    };
    let episode = gatherer.play(order, chooser)?;
    let pass = |action: &usize| world.actions()[*action];
    Ok(Found {
        passes: episode.best_path.iter().map(pass).collect(),
        operations: episode.fewest(),
        end: Some((episode.last(), episode.path.iter().map(pass).collect())),
        charged: episode.len() as u64,
    })
}

/// An order that is the same for all graphs.
fn follow(
    world: &Arc<World>,
    graph: usize,
    passes: &[String],
    budget: u64,
    legal: bool,
) -> Result<Found, ContestError> {
    let passes =
        world.engine().passes(passes.iter().map(String::as_str)).map_err(EnvError::from)?;
    let prefix = if legal { world.legalising(graph)?.to_vec() } else { Vec::new() };
    let mut walk = Walk::begin_after(world, graph, &prefix)?;
    let mut best = (walk.state().counts.operations, 0);
    let within = passes.len().min(budget as usize);
    for &pass in &passes[..within] {
        walk.step(pass)?;
        best = best.min((walk.state().counts.operations, walk.steps().len()));
    }
    let (operations, length) = best;
    let end = Some((walk.state().counts.operations, walk.steps().collect()));
    let passes = walk.steps().take(length).collect();
    Ok(Found { passes, operations, end, charged: within as u64 })
}

/// A search.
#[allow(clippy::too_many_arguments, reason = "each is a part of what is searched")]
fn look(
    world: &Arc<World>,
    graph: usize,
    method: Method,
    first: Vec<Vec<PassId>>,
    policy: Option<Arc<dyn xla_gym_search::Policy>>,
    seed: u64,
    budget: u64,
    legal: bool,
) -> Result<Found, ContestError> {
    let prefix = if legal { world.legalising(graph)?.to_vec() } else { Vec::new() };
    let start = Walk::begin_after(world, graph, &prefix)?;
    let task = Search {
        world,
        benchmark: graph,
        budget: Budget::passes(budget),
        seed,
        goal: Goal::default(),
        policy,
        prefix,
        first,
        costs: Arc::default(),
        stop: Arc::default(),
    };
    let found = search(&task, &*method.optimizer(), &|_, _| {})?;
    let operations = start.state().counts.operations;
    let best = found.candidates.first().filter(|best| best.state.counts.operations < operations);
    // The way that a search returns includes what it was told to begin with.
    let before = start.path().len();
    Ok(Found {
        passes: best.map(|best| best.passes[before..].to_vec()).unwrap_or_default(),
        operations: best.map_or(operations, |best| best.state.counts.operations),
        end: None,
        charged: found.passes,
    })
}

/// Operations at a stage.
fn stage(name: &str, initial: u64, default: u64, result: u64) -> Stage {
    Stage::new(name, initial as f64, default as f64, result as f64)
}

/// What was not found equal counts as if nothing had been done.
fn forfeit(stage: &mut Stage) {
    stage.claimed = Some(stage.result);
    stage.result = stage.result.max(stage.initial.unwrap_or(stage.result));
}

fn names(world: &World, passes: &[PassId]) -> Vec<String> {
    passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect()
}
