//! A position among the states of one benchmark: remembered where it can be, real where it must.

use std::sync::Arc;

use xla_gym_engine::{
    Death, EngineError, PassError, PassFailure, Session,
    protocol::{Form, Graph, Observe, PassId},
};
use xla_gym_transitions::{Failure, FailureKind, Outcome, State};

use crate::{
    error::EnvError,
    world::{LOOK, World, state_of},
};

/// How often the path to a state is walked again before giving up.
const ATTEMPTS: u32 = 3;

/// What a pass did.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepped {
    /// Whether the state is another one now.
    pub changed: bool,
    /// Why the pass did not take place.
    pub failure: Option<Failure>,
    /// Whether the answer was remembered, so that no compiler ran.
    pub remembered: bool,
    /// Time of the pass alone, if it ran.
    pub nanos: u64,
}

/// A position among the states of one benchmark.
///
/// The compiler holds the program of this state only if it has to: steps that are remembered move
/// the position alone, and the program follows when a pass is needed whose result nobody knows.
pub struct Walk {
    world: Arc<World>,
    benchmark: usize,
    state: Arc<State>,
    /// Which start of the profile.
    start: usize,
    /// The passes that changed something, each with the state before it.
    path: Vec<(PassId, Arc<State>)>,
    /// How many of them led to the start.
    started: usize,
    /// How many of them came before what counts.
    before: usize,
    /// The program, after the first `reached` passes of the path.
    session: Option<Session>,
    reached: usize,
}

impl Walk {
    /// Begins where the world's episodes begin.
    pub fn begin(world: &Arc<World>, benchmark: usize) -> Result<Walk, EnvError> {
        Walk::begin_at(world, benchmark, world.start())
    }

    /// Begins at a start of the profile. Its passes do not count as steps.
    pub fn begin_at(world: &Arc<World>, benchmark: usize, start: usize) -> Result<Walk, EnvError> {
        let mut walk = Walk {
            state: world.emitted_state(benchmark)?,
            world: world.clone(),
            benchmark,
            start,
            path: Vec::new(),
            started: 0,
            before: 0,
            session: None,
            reached: 0,
        };
        for &pass in &*world.start_passes(benchmark, start)? {
            walk.step(pass)?;
        }
        (walk.started, walk.before) = (walk.path.len(), walk.path.len());
        Ok(walk)
    }

    /// Begins where the world's episodes begin, after some passes, which do not count as steps.
    pub fn begin_after(
        world: &Arc<World>,
        benchmark: usize,
        passes: &[PassId],
    ) -> Result<Walk, EnvError> {
        let mut walk = Walk::begin(world, benchmark)?;
        for &pass in passes {
            walk.step(pass)?;
        }
        walk.before = walk.path.len();
        Ok(walk)
    }

    /// Where it takes place.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Which benchmark.
    pub fn benchmark(&self) -> usize {
        self.benchmark
    }

    /// Which start of the profile it began at.
    pub fn start(&self) -> usize {
        self.start
    }

    /// What is known of the current state.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The passes that led here from the start, without those that did nothing.
    pub fn path(&self) -> impl ExactSizeIterator<Item = PassId> {
        self.path[self.started.min(self.path.len())..].iter().map(|(pass, _)| *pass)
    }

    /// Those of them that count.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = PassId> {
        self.path[self.before.min(self.path.len())..].iter().map(|(pass, _)| *pass)
    }

    /// The same as actions. Passes that are no actions of this world are left out.
    pub fn applied(&self) -> Vec<usize> {
        self.steps().filter_map(|pass| self.world.action_of(pass)).collect()
    }

    /// The state before the first pass that counts.
    pub fn first_state(&self) -> &Arc<State> {
        self.path.get(self.before).map_or(&self.state, |(_, before)| before)
    }

    /// The lowest of the primary metric since then.
    pub fn lowest(&self) -> u64 {
        let counted = self.path[self.before.min(self.path.len())..].iter();
        let earlier = counted.map(|(_, before)| before.counts.primary());
        earlier.fold(self.state.counts.primary(), u64::min)
    }

    /// Has the compiler begin a pass, without waiting, for the [`Walk::step`] of the same that comes
    /// next. False if that step would have to bring the program into the compiler first.
    pub fn begin_step(&mut self, pass: PassId) -> bool {
        if self.knows(pass) {
            return true;
        }
        match &mut self.session {
            Some(session) if self.reached == self.path.len() => {
                session.begin(pass, LOOK);
                true
            }
            _ => false,
        }
    }

    /// Runs a pass, or remembers what it does.
    pub fn step(&mut self, pass: PassId) -> Result<Stepped, EnvError> {
        if let Some(stepped) = self.remembered(pass) {
            return Ok(stepped);
        }
        let mut attempts = ATTEMPTS;
        let applied = loop {
            attempts -= 1;
            let session = match self.session() {
                Ok(session) => session,
                Err(EnvError::Engine(EngineError::Pass(error))) => {
                    let Failure { kind, message } = failure(&error);
                    let message = format!("has no program to run on: {} {message}", error.pass);
                    let failure = Some(Failure { kind, message });
                    return Ok(Stepped { changed: false, failure, remembered: false, nanos: 0 });
                }
                Err(error) => return Err(error),
            };
            match session.apply(pass, LOOK) {
                Ok(applied) => break applied,
                Err(EngineError::Pass(error)) => return Ok(self.failed(pass, failure(&error))),
                Err(error @ EngineError::Interrupted) => return Err(error.into()),
                // Perhaps the program was lost on the way, for no fault of this pass.
                Err(_) if attempts > 0 => self.session = None,
                // Not by an accident, then: this pass makes the compiler talk nonsense.
                Err(error) => {
                    self.session = None;
                    let failure = Failure { kind: FailureKind::Died, message: error.to_string() };
                    return Ok(self.failed(pass, failure));
                }
            }
        };
        if let Some(Err(message)) = &applied.observation.verdict {
            self.session = None;
            let message = format!("left a program that the verifier rejects: {message}");
            return Ok(self.failed(pass, Failure { kind: FailureKind::Invalid, message }));
        }
        let next = state_of(&applied.observation)?;
        self.world.transitions().add(self.state.id, pass, Outcome::Leads(next.id));
        let changed = next.id != self.state.id;
        if changed {
            let next = Arc::new(next);
            self.world.transitions().add_state(next.clone());
            self.go(pass, next);
            self.reached = self.path.len();
        }
        Ok(Stepped { changed, failure: None, remembered: false, nanos: applied.nanos })
    }

    /// Whether the effect of a pass here is remembered.
    pub fn knows(&self, pass: PassId) -> bool {
        self.world.transitions().outcome(self.state.id, pass).is_some()
    }

    fn remembered(&mut self, pass: PassId) -> Option<Stepped> {
        let (changed, failure) = match self.world.transitions().outcome(self.state.id, pass)? {
            Outcome::Fails(failure) => (false, Some(failure)),
            Outcome::Leads(next) if next == self.state.id => (false, None),
            Outcome::Leads(next) => {
                let next = self.world.transitions().state(next)?;
                self.go(pass, next);
                (true, None)
            }
        };
        Some(Stepped { changed, failure, remembered: true, nanos: 0 })
    }

    fn go(&mut self, pass: PassId, next: Arc<State>) {
        let before = std::mem::replace(&mut self.state, next);
        self.path.push((pass, before));
    }

    fn failed(&self, pass: PassId, failure: Failure) -> Stepped {
        self.world.transitions().add(self.state.id, pass, Outcome::Fails(failure.clone()));
        Stepped { changed: false, failure: Some(failure), remembered: false, nanos: 0 }
    }

    /// The program of the current state, in the compiler. It cannot be had if a pass of the path
    /// does not take place any more, such as one that only just kept its time limit before: then
    /// the error is that of the pass, and the walk stays where it is.
    pub fn session(&mut self) -> Result<&mut Session, EnvError> {
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            match self.materialise() {
                Ok(()) => break,
                Err(error @ EnvError::Engine(EngineError::Interrupted | EngineError::Pass(_))) => {
                    return Err(error);
                }
                Err(error) if attempts == 0 => return Err(error),
                Err(EnvError::Engine(EngineError::Replay { .. })) => self.walk_again()?,
                Err(_) => self.session = None,
            }
        }
        let missing = || EngineError::Internal("the program is not there".to_owned());
        Ok(self.session.as_mut().ok_or_else(missing)?)
    }

    /// The same, to keep.
    pub fn into_session(mut self) -> Result<Session, EnvError> {
        self.session()?;
        let missing = || EngineError::Internal("the program is not there".to_owned());
        Ok(self.session.ok_or_else(missing)?)
    }

    /// Finds out anew where the path leads, after what was remembered of it proved wrong.
    fn walk_again(&mut self) -> Result<(), EnvError> {
        let passes: Vec<PassId> = self.path().collect();
        let (first, rest) = passes.split_at((self.before - self.started).min(passes.len()));
        let mut walk = Walk::begin_at(&self.world, self.benchmark, self.start)?;
        for &pass in first {
            walk.step(pass)?;
        }
        walk.before = walk.path.len();
        for &pass in rest {
            walk.step(pass)?;
        }
        *self = walk;
        Ok(())
    }

    fn materialise(&mut self) -> Result<(), EnvError> {
        if self.session.is_none() {
            self.session = Some(self.world.session(self.benchmark)?);
            self.reached = 0;
        }
        if self.reached == self.path.len() {
            return Ok(());
        }
        let Some(session) = &mut self.session else { return Ok(()) };
        let missing: Vec<PassId> =
            self.path[self.reached..].iter().map(|(pass, _)| *pass).collect();
        let mut done = 0;
        match session.multistep(&missing, Observe::NOTHING, |_| done += 1) {
            Ok(()) => {}
            Err(EngineError::Pass(error)) => {
                // It did take place once, perhaps just within its time limit, and now it does not.
                let (pass, before) = &self.path[self.reached + done];
                let outcome = Outcome::Fails(failure(&error));
                self.world.transitions().add(before.id, *pass, outcome);
                self.session = None;
                return Err(EngineError::Pass(error).into());
            }
            Err(error) => return Err(error.into()),
        }
        let seen = session.observe(Observe::EXACT)?;
        if seen.exact != Some(self.state.id) {
            // What is remembered of this path is not so. Nothing that rests on it may be used.
            for (pass, before) in &self.path {
                self.world.transitions().forget(before.id, *pass);
            }
            return Err(EngineError::Replay {
                steps: self.path.len(),
                message: "the remembered states are others".to_owned(),
            }
            .into());
        }
        self.reached = self.path.len();
        Ok(())
    }

    /// A second walk in the same state.
    pub fn fork(&self) -> Walk {
        Walk {
            world: self.world.clone(),
            benchmark: self.benchmark,
            state: self.state.clone(),
            start: self.start,
            path: self.path.clone(),
            started: self.started,
            before: self.before,
            session: None,
            reached: 0,
        }
    }

    /// A second walk in the same state, with the program at hand if it is at hand here.
    pub fn fork_with_program(&mut self) -> Result<Walk, EnvError> {
        let mut walk = self.fork();
        if let Some(session) = &mut self.session {
            walk.session = Some(session.fork()?);
            walk.reached = self.reached;
        }
        Ok(walk)
    }

    /// Goes back to where the path from the start had `length` passes.
    pub fn go_back(&mut self, length: usize) {
        let length = self.started + length;
        if length >= self.path.len() {
            return;
        }
        self.state = self.path[length].1.clone();
        self.path.truncate(length);
        if self.reached > length {
            self.session = None;
        }
    }

    /// The program as a graph.
    pub fn graph(&mut self) -> Result<Graph, EnvError> {
        Ok(self.session()?.graph()?)
    }

    /// The program as text.
    pub fn text(&mut self) -> Result<Vec<u8>, EnvError> {
        Ok(self.session()?.print(Form::TEXT)?)
    }
}

fn failure(error: &PassError) -> Failure {
    let kind = match &error.failure {
        PassFailure::Refused(_) => FailureKind::Refused,
        PassFailure::Died(Death::OutOfMemory) => FailureKind::OutOfMemory,
        PassFailure::Died(Death::TimeLimit { .. }) => FailureKind::TimeLimit,
        PassFailure::Died(Death::Killed) => FailureKind::Killed,
        PassFailure::Died(_) => FailureKind::Died,
        // The quarantine remembers the same failures in words.
        PassFailure::Quarantined(entry) => match entry.kind.as_str() {
            "refused" => FailureKind::Refused,
            "out of memory" => FailureKind::OutOfMemory,
            "timed out" => FailureKind::TimeLimit,
            "killed" => FailureKind::Killed,
            _ => FailureKind::Died,
        },
    };
    let message = match &error.failure {
        PassFailure::Quarantined(entry) => entry.what.clone(),
        failure => failure.to_string(),
    };
    Failure { kind, message }
}
