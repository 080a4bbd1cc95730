//! Runs states beside the program that they come from.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use xla_gym_common::lock;
use xla_gym_engine::{
    EngineError,
    protocol::{FailureKind, Fingerprint, Observe, PassId},
};
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_oracle::{Options, Reference, Report, Verdict};
use xla_gym_profile::{Spec, reference};
use xla_gym_report::results::Outputs;

use crate::bisection::first_wrong;

/// How a state is compiled when it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pipeline {
    /// As the compiler does by default.
    Whole,
    /// Without the passes that the order takes the place of: [`Spec::instead`].
    Replaced,
}

impl Pipeline {
    /// How results of orders are compiled that begin at a start of a profile: as they are counted
    /// there.
    pub fn from_start(spec: &Spec, start: usize) -> Pipeline {
        match spec.is_of_order(spec.starts[start].counts_as) {
            true => Pipeline::Whole,
            false => Pipeline::Replaced,
        }
    }
}

/// What running a state beside the program as emitted came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// In one word.
    pub outputs: Outputs,
    /// In a few.
    pub words: String,
    /// How long the comparison took when it was made, without making the reference.
    pub seconds: f64,
}

impl Proof {
    fn new(outputs: Outputs, words: impl Into<String>) -> Proof {
        Proof { outputs, words: words.into(), seconds: 0.0 }
    }

    fn not_comparable(reason: String) -> Proof {
        Proof::new(Outputs::NotComparable(reason.clone()), format!("not comparable: {reason}"))
    }

    fn of(report: &Report) -> Proof {
        let outputs = match &report.verdict {
            Verdict::Equal => Outputs::Equal,
            Verdict::Different { .. } => Outputs::Different,
            Verdict::OtherSignature { .. } => Outputs::OtherSignature,
            Verdict::Rejected { .. } => Outputs::Rejected,
            Verdict::NotComparable { reason } => Outputs::NotComparable(reason.clone()),
        };
        Proof::new(outputs, report.summary())
    }
}

/// The pass after which outputs are no longer found equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guilty {
    /// Its name.
    pub pass: String,
    /// How many of the passes come before it.
    pub before: usize,
}

/// What a program is compared by, if that can be had; otherwise what everything comes to.
type Made = Arc<Result<Reference, Proof>>;

/// One program, which one thread at a time may make the reference of.
type Slot = Arc<Mutex<Option<Made>>>;

/// Runs states beside the program that they come from, each once. Programs are told apart by their
/// numbers, so worlds that share a prover must have the same programs in the same order.
pub struct Prover {
    options: Options,
    references: Mutex<HashMap<usize, Slot>>,
    known: Mutex<HashMap<(usize, Fingerprint, Pipeline), Proof>>,
}

impl Prover {
    /// Compares as the options say.
    pub fn new(options: Options) -> Prover {
        Prover { options, references: Mutex::default(), known: Mutex::default() }
    }

    /// Runs the program where a walk stands beside the program as emitted, unless it is known how
    /// that ends. An error is no word about the program.
    pub fn prove(&self, walk: &mut Walk, pipeline: Pipeline) -> Result<Proof, EnvError> {
        let (world, program) = (walk.world().clone(), walk.benchmark());
        let unchanged = walk.state().id == world.emitted_state(program)?.id;
        if unchanged && pipeline == Pipeline::Whole {
            return Ok(Proof::new(Outputs::Equal, "nothing changed"));
        }
        let exact = (program, walk.state().id, pipeline);
        if let Some(known) = self.known(&exact) {
            return Ok(known);
        }
        let proof = self.prove_unknown(&world, walk, pipeline)?;
        lock(&self.known).insert(exact, proof.clone());
        Ok(proof)
    }

    fn known(&self, key: &(usize, Fingerprint, Pipeline)) -> Option<Proof> {
        lock(&self.known).get(key).cloned()
    }

    fn prove_unknown(
        &self,
        world: &World,
        walk: &mut Walk,
        pipeline: Pipeline,
    ) -> Result<Proof, EnvError> {
        let program = walk.benchmark();
        let session = match walk.session() {
            Ok(session) => session,
            Err(EnvError::Engine(error)) => return about_the_program(error),
            Err(error) => return Err(error),
        };
        // The same program may lie in memory in several ways.
        let seen = match session.observe(Observe::FINGERPRINT) {
            Ok(seen) => seen,
            Err(error) => return about_the_program(error),
        };
        let content = seen.fingerprint.map(|content| (program, content, pipeline));
        if let Some(known) = content.as_ref().and_then(|content| self.known(content)) {
            return Ok(known);
        }
        let made = self.reference(world, program)?;
        let reference = match &*made {
            Ok(reference) => reference,
            Err(proof) => return Ok(proof.clone()),
        };
        let begin = Instant::now();
        let spec = world.profile().spec();
        let finish = match pipeline {
            Pipeline::Whole => &spec.usual,
            Pipeline::Replaced => &spec.instead,
        };
        let proof = match reference.compare(session, finish) {
            Ok(report) => Proof { seconds: begin.elapsed().as_secs_f64(), ..Proof::of(&report) },
            Err(error) => return about_the_program(error),
        };
        if let Some(content) = content {
            lock(&self.known).insert(content, proof.clone());
        }
        Ok(proof)
    }

    /// Whether anything that is made of a program can be found equal to it: whether the program itself
    /// is. True also where the compiler runs no programs, so that nothing can be found wrong.
    pub fn comparable(&self, world: &Arc<World>, program: usize) -> Result<bool, EnvError> {
        let mut start = Walk::begin(world, program)?;
        let key = (program, start.state().id, Pipeline::Whole);
        let proof = match self.known(&key) {
            Some(known) => known,
            None => {
                let proof = self.prove_unknown(world, &mut start, Pipeline::Whole)?;
                lock(&self.known).insert(key, proof.clone());
                proof
            }
        };
        Ok(proof.outputs.count())
    }

    /// The first pass of some after which outputs are no longer found equal, if they are not after
    /// all of them. They begin where a walk stands, and nobody doubts what led there.
    pub fn guilty(
        &self,
        from: &Walk,
        passes: &[PassId],
        pipeline: Pipeline,
    ) -> Result<Option<Guilty>, EnvError> {
        let is_wrong = |length: usize| {
            let mut walk = from.fork();
            for &pass in &passes[..length] {
                walk.step(pass)?;
            }
            Ok::<bool, EnvError>(self.prove(&mut walk, pipeline)?.outputs != Outputs::Equal)
        };
        if passes.is_empty() {
            return Ok(None);
        }
        let wrong = first_wrong(passes.len(), is_wrong)?;
        let pass = from.world().engine().pass_name(passes[wrong - 1]).to_owned();
        Ok(Some(Guilty { pass, before: wrong - 1 }))
    }

    /// Lets go of what a program is compared by, which may be large. How comparisons ended is still
    /// known.
    pub fn forget(&self, program: usize) {
        lock(&self.references).remove(&program);
    }

    /// How many comparisons are known.
    pub fn compared(&self) -> usize {
        lock(&self.known).len()
    }

    fn reference(&self, world: &World, program: usize) -> Result<Made, EnvError> {
        let slot = lock(&self.references).entry(program).or_default().clone();
        let mut slot = lock(&slot);
        if let Some(made) = &*slot {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make(world, program)?);
        *slot = Some(made.clone());
        Ok(made)
    }

    fn make(&self, world: &World, program: usize) -> Result<Result<Reference, Proof>, EnvError> {
        let mut session = world.session(program)?;
        let unsupported = FailureKind::Unsupported;
        if matches!(session.signature(), Err(EngineError::Refused { kind, .. }) if kind == unsupported)
        {
            let words = "this compiler does not run programs";
            return Ok(Err(Proof::new(Outputs::Unchecked, words)));
        }
        match reference(&**world.profile(), &mut session, self.options) {
            Ok(reference) => Ok(Ok(reference)),
            Err(error) => about_the_program(error).map(Err),
        }
    }
}

/// A program with which the compiler cannot cope is one that cannot be compared; anything else that
/// goes wrong is not the program's fault.
fn about_the_program(error: EngineError) -> Result<Proof, EnvError> {
    match error {
        EngineError::Refused { .. } | EngineError::Died { .. } | EngineError::Pass(_) => {
            Ok(Proof::not_comparable(error.to_string()))
        }
        error => Err(error.into()),
    }
}
