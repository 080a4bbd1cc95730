//! One contestant, one program.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use thiserror::Error;
use xla_gym_common::lock;
use xla_gym_data::{BenchmarkError, Benchmarks};
use xla_gym_engine::{
    Death, EngineConfig, EngineError,
    protocol::{Fingerprint, PassId},
};
use xla_gym_env::{CacheConfig, EnvError, Profile, Walk, World, WorldConfig};
use xla_gym_profile::{self as profile, Baseline, Comparison, Figures, Spec, Start, StartPasses};
use xla_gym_proof::{Options, Outputs, Pipeline, Proof, Prover};
use xla_gym_report::results::{Header, Outcome, Stage};

use crate::{
    attempt::{Attempt, Found},
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

/// The pass to blame is looked for only if that should take no longer than this.
const CHEAP_SECONDS: f64 = 30.0;

/// What comes of a state after the pipeline; why nothing, if that refuses.
type Finished = Result<Figures, String>;

/// Programs on which contestants meet. What one of them learns about passes saves time for the
/// others, and changes nothing else.
pub struct Contest {
    profile: Arc<dyn Profile>,
    engine: EngineConfig,
    programs: Benchmarks,
    cache: CacheConfig,
    /// A world for each set of passes. All begin at the first start of the profile.
    worlds: Mutex<HashMap<Vec<String>, Arc<World>>>,
    /// By program and state.
    finished: Mutex<HashMap<(usize, Fingerprint), Finished>>,
    /// Who runs what is to count; nobody, if everything is taken at its word.
    prover: Option<Prover>,
}

impl Contest {
    /// Makes a contest on programs of a compiler. `check` says how results are run beside the program
    /// as it came; without it they are not.
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
            finished: Mutex::default(),
            prover: check.map(Prover::new),
        }
    }

    /// What the figures of its outcomes are.
    pub fn header(&self) -> Header {
        header(self.profile.spec())
    }

    /// Whether an outcome says what comes of it after the pipeline.
    pub fn went_through(&self, outcome: &Outcome) -> bool {
        let later = further(self.profile.spec()).next();
        later.is_none_or(|stage| outcome.stage(stage.name).is_some())
    }

    /// Lets go of what is kept of a program only to compare results on it.
    pub fn leave(&self, program: usize) {
        if let Some(prover) = &self.prover {
            prover.forget(program);
        }
    }

    /// How many programs there are.
    pub fn len(&self) -> usize {
        self.programs.programs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.programs.programs.is_empty()
    }

    /// The name of a program.
    pub fn name(&self, program: usize) -> String {
        self.programs.programs[program].name()
    }

    /// Lets a contestant loose on a program. `pipeline`: whether its result also goes through the
    /// compiler's real pipeline, so that there is something to say at all stages and not only at the
    /// first.
    pub fn compete(
        &self,
        program: usize,
        contestant: &Contestant,
        budget: u64,
        pipeline: bool,
    ) -> Result<Outcome, ContestError> {
        if let Some(policy) = contestant.policy() {
            let refuse = |why| ContestError::Policy { name: contestant.name.clone(), why };
            policy.interface.is_for(self.profile.spec().engine).map_err(refuse)?;
        }
        let passes = match &contestant.way {
            Way::Walk(policy) | Way::Luck(policy) => policy.interface.passes.clone(),
            _ => Vec::new(),
        };
        let world = self.world(passes)?;
        let attempt = Attempt { world: &world, program, contestant, budget };
        let begin = Instant::now();
        let found = attempt.from(0)?;
        let seconds = begin.elapsed().as_secs_f64();
        let mut outcome = Outcome {
            graph: self.name(program),
            splits: self.programs.programs[program].test_splits(),
            contestant: contestant.name.clone(),
            kind: contestant.kind(),
            seed: contestant.seed,
            weights: contestant.weights(),
            budget,
            charged: found.charged,
            seconds,
            ..Outcome::default()
        };
        self.add_first(&attempt, &found, &mut outcome)?;
        if pipeline {
            self.add_further(&attempt, &found, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// What counts at the end of the order, and at the end of the trajectory.
    fn add_first(
        &self,
        attempt: &Attempt<'_>,
        found: &Found,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        let Attempt { world, program, contestant, .. } = *attempt;
        let baseline = world.baseline(program)?;
        let Some(stage) = world.profile().spec().stages.first() else { return Ok(()) };
        let Some(order) = measured(stage, &baseline, Some(found.lowest as f64)) else {
            return Ok(());
        };
        let outputs = Some(Outputs::Unchecked);
        let mut order = Stage { outputs, passes: Some(names(world, &found.passes)), ..order };
        let end = found.end.as_ref().and_then(|(end, path)| {
            let end = measured(stage, &baseline, Some(*end as f64))?;
            Some((Stage { name: END.to_owned(), ..end }, path))
        });
        let Some(prover) = &self.prover else {
            outcome.stages.extend([Some(order), end.map(|(end, _)| end)].into_iter().flatten());
            return Ok(());
        };
        if matches!(contestant.way, Way::Default) {
            // What the compiler itself makes of a program is what all others are compared with.
            outcome.stages.push(Stage { outputs: Some(Outputs::Equal), ..order });
            return Ok(());
        }
        let initial = baseline.initial.get(stage.figure);
        let from = Walk::begin_at(world, program, 0)?;
        let mut best = along(&from, &found.passes)?;
        let proof = prover.prove(&mut best, Pipeline::Whole)?;
        order.outputs = Some(proof.outputs.clone());
        if !proof.outputs.count() {
            forfeit(&mut order, initial);
            self.blame(&from, &found.passes, Pipeline::Whole, &proof, outcome)?;
        }
        outcome.stages.push(order);
        if let Some((mut end, path)) = end {
            let mut last = along(&from, path)?;
            let mut end_proof = proof;
            if last.state().id != best.state().id {
                end_proof = prover.prove(&mut last, Pipeline::Whole)?;
                end.outputs = Some(end_proof.outputs.clone());
            }
            if !end_proof.outputs.count() {
                forfeit(&mut end, initial);
            }
            outcome.stages.push(end);
        }
        Ok(())
    }

    /// What counts at the other stages, after the pipeline. The contestant tries again for them, with
    /// the same budget, after what the pipeline does in any case, if the profile has such a start;
    /// otherwise its first order goes on. Where the compiler refuses, or outputs are not found equal,
    /// the result counts as if nothing had been done.
    fn add_further(
        &self,
        attempt: &Attempt<'_>,
        first: &Found,
        outcome: &mut Outcome,
    ) -> Result<(), ContestError> {
        let Attempt { world, program, contestant, .. } = *attempt;
        let baseline = world.baseline(program)?;
        let spec = world.profile().spec();
        let further: Vec<&profile::Stage> = further(spec).collect();
        if further.is_empty() {
            return Ok(());
        }
        let stages = |result: &Figures| -> Vec<Stage> {
            let each =
                |stage: &&profile::Stage| measured(stage, &baseline, result.get(stage.figure));
            further.iter().filter_map(each).collect()
        };
        if matches!(contestant.way, Way::Default) {
            let mut stages = stages(&baseline.default);
            if let (Some(stage), Some(_)) = (stages.first_mut(), &self.prover) {
                stage.outputs = Some(Outputs::Equal);
            }
            outcome.stages.extend(stages);
            return Ok(());
        }
        let prepared = |start: &Start| start.passes == StartPasses::AsPipeline;
        let start = spec.starts.iter().position(prepared);
        let again = start.map(|start| attempt.from(start)).transpose()?;
        let found = again.as_ref().unwrap_or(first);
        let from = Walk::begin_at(world, program, start.unwrap_or(0))?;
        let mut walk = along(&from, &found.passes)?;
        let mut outputs = None;
        let mut stages = match self.finish(&mut walk)? {
            Ok(result) => stages(&result),
            Err(reason) => {
                outcome.refused = Some(reason);
                outputs = self.prover.is_some().then_some(Outputs::Rejected);
                stages(&baseline.initial)
            }
        };
        if let (Some(prover), None) = (&self.prover, &outcome.refused) {
            let proof = prover.prove(&mut walk, Pipeline::Replaced)?;
            if !proof.outputs.count() {
                for stage in &mut stages {
                    let figure = spec.stage(&stage.name).map(|stage| stage.figure);
                    forfeit(stage, figure.and_then(|figure| baseline.initial.get(figure)));
                }
                self.blame(&from, &found.passes, Pipeline::Replaced, &proof, outcome)?;
            }
            outputs = Some(proof.outputs);
        }
        if let Some(stage) = stages.first_mut() {
            stage.outputs = outputs;
            stage.passes = again.map(|found| names(world, &found.passes));
        }
        outcome.stages.extend(stages);
        Ok(())
    }

    /// Sends the program where a walk stands through the pipeline, unless it is known what comes of it.
    fn finish(&self, walk: &mut Walk) -> Result<Finished, ContestError> {
        let key = (walk.benchmark(), walk.state().id);
        if let Some(known) = lock(&self.finished).get(&key) {
            return Ok(known.clone());
        }
        let (world, primary) = (walk.world().clone(), walk.state().counts.primary());
        let finished = match walk.session() {
            Ok(session) => world.finish_instead(session, primary),
            Err(EnvError::Engine(error)) => Err(error),
            Err(error) => return Err(error.into()),
        };
        let finished = match finished {
            Ok(figures) => Ok(figures),
            Err(
                error @ (EngineError::Refused { .. }
                | EngineError::Pass(_)
                | EngineError::Died { death: Death::Signal { .. }, .. }),
            ) => Err(error.to_string()),
            // No word of the compiler's about this program.
            Err(error) => return Err(EnvError::from(error).into()),
        };
        lock(&self.finished).insert(key, finished.clone());
        Ok(finished)
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

    /// The world in which some passes are the actions; all of them, if none are named.
    fn world(&self, passes: Vec<String>) -> Result<Arc<World>, ContestError> {
        let mut worlds = lock(&self.worlds);
        if let Some(world) = worlds.get(&passes) {
            return Ok(world.clone());
        }
        let config = WorldConfig {
            profile: self.profile.clone(),
            engine: EngineConfig { quarantine: None, ..self.engine.clone() },
            start: self.profile.spec().starts[0].name.to_owned(),
            passes: passes.clone(),
            cache: self.cache.clone(),
        };
        let world = Arc::new(World::with_programs(config, self.programs.clone())?);
        worlds.insert(passes, world.clone());
        Ok(world)
    }
}

/// The stages that lie after the end of an order.
fn further(spec: &Spec) -> impl Iterator<Item = &profile::Stage> {
    spec.stages.iter().filter(|stage| !spec.is_of_order(stage.figure))
}

/// A result at a stage, if that is known there, and of the compiler itself too.
fn measured(stage: &profile::Stage, baseline: &Baseline, result: Option<f64>) -> Option<Stage> {
    let (default, result) = (baseline.default.get(stage.figure)?, result?);
    Some(match stage.comparison {
        Comparison::Reduction => {
            Stage::new(stage.name, baseline.initial.get(stage.figure)?, default, result)
        }
        Comparison::Quotient => Stage::left(stage.name, default, result),
    })
}

/// What was not found equal counts as if nothing had been done.
fn forfeit(stage: &mut Stage, initial: Option<f64>) {
    stage.claimed = Some(stage.result);
    stage.result = stage.result.max(initial.unwrap_or(stage.result));
}

/// Where passes lead from a walk.
fn along(from: &Walk, passes: &[PassId]) -> Result<Walk, ContestError> {
    let mut walk = from.fork();
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}

fn names(world: &World, passes: &[PassId]) -> Vec<String> {
    passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect()
}
