//! One contestant, one graph.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use thiserror::Error;
use xla_gym_agents::{
    AgentError, Chooser, EpisodeRequest, Gatherer, Observation, Observer, TrainedPolicy,
};
use xla_gym_common::lock;
use xla_gym_data::{BenchmarkError, Benchmarks};
use xla_gym_engine::{
    Death, EngineConfig, EngineError,
    protocol::{Fingerprint, PassId},
};
use xla_gym_env::{CacheConfig, Env, EnvConfig, EnvError, Walk, World, WorldConfig};
use xla_gym_profile::{Comparison, Figure, Figures, Profile, Spec, StartPasses};
use xla_gym_proof::{Options, Outputs, Pipeline, Proof, Prover};
use xla_gym_report::results::{Header, Outcome, Stage};
use xla_gym_search::{Budget, Goal, Method, Search, search};

use crate::{
    contestant::{Contestant, Way},
    header::{END, header},
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
    #[error("the policy {name} does not fit: {why}")]
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
    /// The primary metric at the best state on the way.
    best: u64,
    /// The same at the end of the trajectory, and the way there.
    end: Option<(u64, Vec<PassId>)>,
    charged: u64,
}

/// The pass to blame is looked for only if that should take no longer than this.
const CHEAP_SECONDS: f64 = 30.0;

/// What comes of a state after the pipeline; why nothing, if that refuses.
type Through = Result<Figures, String>;

/// Graphs on which contestants meet. What one of them learns about passes saves time for the
/// others, and changes nothing else.
pub struct Contest {
    profile: Arc<dyn Profile>,
    engine: EngineConfig,
    programs: Benchmarks,
    cache: CacheConfig,
    /// A world for each set of passes.
    worlds: Mutex<HashMap<Vec<String>, Arc<World>>>,
    /// By graph and state.
    through: Mutex<HashMap<(usize, Fingerprint), Through>>,
    /// Who runs what is to count; nobody, if everything is taken at its word.
    prover: Option<Prover>,
}

impl Contest {
    /// Finds the graphs. `check` says how results are run beside the program as emitted; without it
    /// they are not.
    pub fn new(
        profile: Arc<dyn Profile>,
        engine: EngineConfig,
        programs: Benchmarks,
        cache: CacheConfig,
        check: Option<Options>,
    ) -> Contest {
        Contest {
            profile,
            engine,
            programs,
            cache,
            worlds: Mutex::default(),
            through: Mutex::default(),
            prover: check.map(Prover::new),
        }
    }

    /// Lets go of what is kept of a graph only to compare results on it.
    pub fn leave(&self, graph: usize) {
        if let Some(prover) = &self.prover {
            prover.forget(graph);
        }
    }

    /// What the figures of its outcomes are.
    pub fn header(&self) -> Header {
        header(self.profile.spec())
    }

    /// Whether an outcome says what comes of it after the pipeline.
    pub fn went_through(&self, outcome: &Outcome) -> bool {
        let later = self.profile.spec().stages.get(1);
        later.is_none_or(|stage| outcome.stage(stage.name).is_some())
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

    /// Lets a contestant loose on a graph. `pipeline`: whether its result also goes through the
    /// compiler's real pipeline.
    pub fn compete(
        &self,
        graph: usize,
        contestant: &Contestant,
        budget: u64,
        pipeline: bool,
    ) -> Result<Outcome, ContestError> {
        let passes = match &contestant.way {
            Way::Walk(policy) | Way::Luck(policy) => policy.interface.passes.clone(),
            _ => Vec::new(),
        };
        let world = self.world(passes)?;
        let baseline = world.baseline(graph)?;
        let begin = Instant::now();
        let found = self.find(&world, graph, contestant, budget, world.start())?;
        let seconds = begin.elapsed().as_secs_f64();
        let (initial, default) = (baseline.initial.primary(), baseline.default.primary());
        let stage = |name: &str, result| Stage::new(name, initial, default, result);
        let passes = Some(names(&world, &found.passes));
        let outputs = Some(Outputs::Unchecked);
        let mut stages = vec![Stage { outputs, passes, ..stage(self.first(), found.best as f64) }];
        stages.extend(found.end.as_ref().map(|(end, _)| stage(END, *end as f64)));
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
            // What the compiler itself makes of a program is what all others are compared with.
            outcome.stages[0].outputs = Some(Outputs::Equal);
        }
        if pipeline {
            self.send_through(&world, graph, contestant, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// The name of the stage at the end of an order.
    fn first(&self) -> &'static str {
        self.profile.spec().stages[0].name
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
        let mut best = along(world, graph, world.start(), &found.passes)?;
        let proof = prover.prove(&mut best, Pipeline::Whole)?;
        if let Some(order) = outcome.stage_mut(self.first()) {
            order.outputs = Some(proof.outputs.clone());
            if !proof.outputs.count() {
                forfeit(order);
            }
        }
        if !proof.outputs.count() {
            let from = Walk::begin(world, graph)?;
            self.blame(&from, &found.passes, Pipeline::Whole, &proof, outcome)?;
        }
        let mut end_proof = proof;
        if let (Some((_, path)), Some(end)) = (&found.end, outcome.stage_mut(END)) {
            let mut last = along(world, graph, world.start(), path)?;
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
    fn blame(
        &self,
        from: &Walk,
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
            let guilty = prover.guilty(from, passes, pipeline)?;
            outcome.guilty = guilty.map(|guilty| guilty.pass);
        }
        Ok(())
    }

    /// How a contestant fares from a start of the profile.
    fn find(
        &self,
        world: &Arc<World>,
        graph: usize,
        contestant: &Contestant,
        budget: u64,
        start: usize,
    ) -> Result<Found, ContestError> {
        let search = |method, first, policy| {
            look(world, graph, method, first, policy, contestant.seed, budget, start)
        };
        match &contestant.way {
            Way::Walk(policy) | Way::Luck(policy) => {
                walk(world, graph, contestant, policy, budget, start)
            }
            Way::Guided(policy, method) => {
                let guide = policy.guide(world).map_err(|error| refuse(contestant, &error))?;
                let guide: Arc<dyn xla_gym_search::Policy> = Arc::new(guide);
                search(*method, world.first_orders(graph)?, Some(guide))
            }
            Way::Plain(method) => search(*method, Vec::new(), None),
            Way::Coreset(method) => search(*method, world.first_orders(graph)?, None),
            Way::Order(passes) => follow(world, graph, passes, budget, start),
            Way::Default => {
                let best = world.baseline(graph)?.default.primary() as u64;
                Ok(Found { passes: Vec::new(), best, end: None, charged: 0 })
            }
        }
    }

    /// What the contestant makes of the program after what the pipeline does to it in any case, with the
    /// same budget, once that is through the compiler's real pipeline. Where the pipeline refuses, or
    /// outputs are not found equal, the result counts as if nothing had been done.
    fn send_through(
        &self,
        world: &Arc<World>,
        graph: usize,
        contestant: &Contestant,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        let spec = self.profile.spec();
        let baseline = world.baseline(graph)?;
        let later = || spec.stages.iter().filter(|stage| !spec.is_of_order(stage.figure));
        let stage = |stage: &xla_gym_profile::Stage, result: f64| {
            let value = |figures: &Figures, figure: Figure| figures.get(figure).unwrap_or_default();
            let default = value(&baseline.default, stage.figure);
            match stage.comparison {
                Comparison::Reduction => {
                    Stage::new(stage.name, value(&baseline.initial, stage.figure), default, result)
                }
                Comparison::Quotient => Stage::left(stage.name, default, result),
            }
        };
        let of = |figures: &Figures, figure| figures.get(figure).unwrap_or_default();
        if matches!(contestant.way, Way::Default) {
            let outputs = self.prover.is_some().then_some(Outputs::Equal);
            outcome.stages.extend(later().map(|one| stage(one, of(&baseline.default, one.figure))));
            if let Some(first) = later().next()
                && let Some(first) = outcome.stage_mut(first.name)
            {
                first.outputs = outputs;
            }
            return Ok(());
        }
        let start = prepared(spec);
        let found = self.find(world, graph, contestant, outcome.budget, start)?;
        let mut walk = along(world, graph, start, &found.passes)?;
        let through = self.through(world, graph, &mut walk)?;
        let mut outputs = None;
        let figures = match &through {
            Err(reason) => {
                outcome.refused = Some(reason.clone());
                outputs = self.prover.is_some().then_some(Outputs::Rejected);
                &baseline.initial
            }
            Ok(figures) => figures,
        };
        let mut stages: Vec<Stage> =
            later().map(|one| stage(one, of(figures, one.figure))).collect();
        if let (Some(prover), None) = (&self.prover, &outcome.refused) {
            let proof = prover.prove(&mut walk, Pipeline::Replaced)?;
            if !proof.outputs.count() {
                for (stage, one) in stages.iter_mut().zip(later()) {
                    stage.claimed = Some(stage.result);
                    stage.result = stage.result.max(of(&baseline.initial, one.figure));
                }
                let from = Walk::begin_at(world, graph, start)?;
                self.blame(&from, &found.passes, Pipeline::Replaced, &proof, outcome)?;
            }
            outputs = Some(proof.outputs);
        }
        if let Some(first) = stages.first_mut() {
            first.passes = Some(names(world, &found.passes));
            first.outputs = outputs;
        }
        outcome.stages.extend(stages);
        Ok(())
    }

    /// What comes of a state after the pipeline, remembered.
    fn through(
        &self,
        world: &Arc<World>,
        graph: usize,
        walk: &mut Walk,
    ) -> Result<Through, ContestError> {
        let key = (graph, walk.state().id);
        if let Some(known) = lock(&self.through).get(&key) {
            return Ok(known.clone());
        }
        let primary = walk.state().counts.primary();
        let finished = match walk.session() {
            Ok(session) => world.finish_instead(session, primary),
            Err(EnvError::Engine(error)) => Err(error),
            Err(error) => return Err(error.into()),
        };
        let through = match finished {
            Ok(figures) => Ok(figures),
            Err(
                error @ (EngineError::Refused { .. }
                | EngineError::Pass(_)
                | EngineError::Died { death: Death::Signal { .. }, .. }),
            ) => Err(error.to_string()),
            // No word of the compiler's about this program.
            Err(error) => return Err(EnvError::from(error).into()),
        };
        lock(&self.through).insert(key, through.clone());
        Ok(through)
    }

    /// The world in which some passes are the actions; all of them, if none are named.
    fn world(&self, passes: Vec<String>) -> Result<Arc<World>, ContestError> {
        let mut worlds = lock(&self.worlds);
        if let Some(world) = worlds.get(&passes) {
            return Ok(world.clone());
        }
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..self.engine.clone() },
            profile: self.profile.clone(),
            start: self.profile.spec().starts[0].name.to_owned(),
            passes: passes.clone(),
            cache: self.cache.clone(),
        };
        let world = Arc::new(World::with_programs(config, self.programs.clone())?);
        worlds.insert(passes, world.clone());
        Ok(world)
    }
}

/// The start from which results go on through the pipeline: after what that does in any case, so that
/// orders can tidy up after it.
fn prepared(spec: &Spec) -> usize {
    spec.starts.iter().position(|start| start.passes == StartPasses::AsPipeline).unwrap_or(0)
}

/// Where passes lead from a start.
fn along(
    world: &Arc<World>,
    graph: usize,
    start: usize,
    passes: &[PassId],
) -> Result<Walk, ContestError> {
    let mut walk = Walk::begin_at(world, graph, start)?;
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}

fn refuse(contestant: &Contestant, why: &AgentError) -> ContestError {
    ContestError::Policy { name: contestant.name.clone(), why: why.to_string() }
}

/// A policy walks once.
fn walk(
    world: &Arc<World>,
    graph: usize,
    contestant: &Contestant,
    policy: &TrainedPolicy,
    budget: u64,
    start: usize,
) -> Result<Found, ContestError> {
    let refuse =
        |why: &str| ContestError::Policy { name: contestant.name.clone(), why: why.to_owned() };
    policy.fits(world.engine().hello()).map_err(|error| refuse(&error.to_string()))?;
    if world.engine().hello().opcodes != policy.interface.opcodes {
        return Err(refuse("it was trained with another version, which has other opcodes"));
    }
    if policy.interface.start != world.start_name() {
        return Err(refuse(&format!("it was trained from the start {}", policy.interface.start)));
    }
    let config = EnvConfig { traj_limit: (budget as usize).max(1), ..EnvConfig::default() };
    let env = Env::new(world, config.clone())?;
    let seen = Observation { policy: policy.interface.views.clone(), value: Vec::new() };
    let observer = Observer::new(&seen, &env);
    if observer.policy_width() != policy.network.shape().inputs {
        return Err(refuse("what it should see has another length with this budget"));
    }
    let gatherer = Gatherer { world: world.clone(), config, observer, mask: true };
    let request = EpisodeRequest { benchmark: graph, start, seed: contestant.seed, stream: 0 };
    let chooser = match contestant.way {
        Way::Luck(_) => Chooser::Random,
        _ => Chooser::Greedy(&policy.network),
    };
    let episode = gatherer.play(request, chooser)?;
    let pass = |action: &usize| world.actions()[*action];
    Ok(Found {
        passes: episode.best_path.iter().map(pass).collect(),
        best: episode.lowest(),
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
    start: usize,
) -> Result<Found, ContestError> {
    let passes =
        world.engine().passes(passes.iter().map(String::as_str)).map_err(EnvError::from)?;
    let mut walk = Walk::begin_at(world, graph, start)?;
    let mut best = (walk.state().counts.primary(), 0);
    let within = passes.len().min(budget as usize);
    for &pass in &passes[..within] {
        walk.step(pass)?;
        best = best.min((walk.state().counts.primary(), walk.steps().len()));
    }
    let (best, length) = best;
    let end = Some((walk.state().counts.primary(), walk.steps().collect()));
    let passes = walk.steps().take(length).collect();
    Ok(Found { passes, best, end, charged: within as u64 })
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
    start: usize,
) -> Result<Found, ContestError> {
    // The world begins at the program as it came, and a search after what leads to the start.
    let prefix = world.start_passes(graph, start)?.to_vec();
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
    let initial = start.state().counts.primary();
    let best = found.candidates.first().filter(|best| best.state.counts.primary() < initial);
    // The way that a search returns includes what it was told to begin with.
    let before = start.path().len();
    Ok(Found {
        passes: best.map(|best| best.passes[before..].to_vec()).unwrap_or_default(),
        best: best.map_or(initial, |best| best.state.counts.primary()),
        end: None,
        charged: found.passes,
    })
}

/// What was not found equal counts as if nothing had been done.
fn forfeit(stage: &mut Stage) {
    stage.claimed = Some(stage.result);
    stage.result = stage.result.max(stage.initial.unwrap_or(stage.result));
}

fn names(world: &World, passes: &[PassId]) -> Vec<String> {
    passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect()
}
