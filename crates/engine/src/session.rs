//! One program on which passes are applied.

use std::{
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use xla_gym_protocol::{
    Fingerprint, Form, FunctionCounts, Graph, Observation, Observe, PassId, ProgramId, Reply,
    Request, Signature,
};

use crate::{
    engine::{ATTEMPTS, Engine, expect, unexpected},
    error::{Death, EngineError, PassError, PassFailure},
    scratch::Scratch,
    source::Source,
    worker::{Silence, Worker, alone},
};

/// A pass that took place.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Which pass.
    pub pass: PassId,
    /// Whether it changed the program.
    pub changed: bool,
    /// Time of the pass alone, as the worker measured it.
    pub nanos: u64,
    /// The state after it, as asked for.
    pub observation: Observation,
}

/// A worker that is only ever forked, so that its state stays what it is. Shared by all
/// sessions that descend from that state.
#[derive(Clone)]
struct Frozen {
    worker: Arc<Mutex<Worker>>,
    /// How many passes had been applied.
    steps: usize,
}

impl Frozen {
    fn new(worker: Worker, steps: usize) -> Frozen {
        Frozen { worker: Arc::new(Mutex::new(worker)), steps }
    }

    fn thaw(&self) -> Option<Worker> {
        self.worker.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).fork().ok()
    }
}

/// One program in one worker. Its state is its source plus the passes applied to it.
///
/// Whatever a pass does to the worker, the session stays in a defined state: after the pass, or
/// before it with an error that says why.
///
/// ```no_run
/// # use xla_gym_engine::{Engine, EngineConfig, Source, protocol::{Form, Observe}};
/// # let engine = Engine::start(EngineConfig::named("toy")?)?;
/// let source = Source::from_bytes("sum", b"toy\ninput 0\nconst 2\nadd 0 1\n".to_vec())?;
/// let mut session = engine.load(&source)?;
/// let mut other = session.fork()?;
/// session.apply(engine.pass("fold")?, Observe::NOTHING)?;
/// assert_ne!(session.steps(), other.steps());
/// session.undo(1)?;
/// assert_eq!(session.fingerprint()?, other.fingerprint()?);
/// println!("{}", String::from_utf8_lossy(&session.print(Form::TEXT)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    source: Source,
    /// None after a loss, until the next use.
    live: Option<Worker>,
    program: ProgramId,
    steps: Vec<PassId>,
    /// The freshly loaded program, and a later state.
    frozen: Vec<Frozen>,
    /// Time of the passes since the last frozen state.
    unsaved: Duration,
    /// Identity of the current state, once somebody asked.
    fingerprint: Option<Fingerprint>,
    /// A pass that the worker was told to run, and whose answer nobody has read.
    begun: Option<(PassId, Observe)>,
    /// Raised when nobody wants what its scratches do any more.
    unwanted: Option<Arc<AtomicBool>>,
    /// Last, so that the first of all workers outlives those of this session.
    engine: Engine,
}

impl Session {
    pub(crate) fn load(engine: &Engine, source: Source) -> Result<Session, EngineError> {
        let (mut worker, program) = engine.load_into_worker(&source)?;
        let frozen = worker.fork().ok().map(|copy| Frozen::new(copy, 0)).into_iter().collect();
        // The next one who needs a worker will hear of it.
        let _ = engine.refill();
        Ok(Session {
            engine: engine.clone(),
            unwanted: None,
            source,
            live: Some(worker),
            program,
            steps: Vec::new(),
            frozen,
            unsaved: Duration::ZERO,
            fingerprint: None,
            begun: None,
        })
    }

    /// The engine it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What it was loaded from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The passes that led from the source to the current state.
    pub fn steps(&self) -> &[PassId] {
        &self.steps
    }

    /// Applies one pass.
    pub fn apply(&mut self, pass: PassId, observe: Observe) -> Result<Applied, EngineError> {
        let mut applied = None;
        self.multistep(&[pass], observe, |step| applied = Some(step))?;
        applied.ok_or_else(|| EngineError::Internal("a pass ran without a result".to_owned()))
    }

    /// Has the worker begin a pass, without waiting, for the [`Session::apply`] of the same that
    /// comes next. So one thread keeps many workers busy. Does nothing where the worker has to be
    /// rebuilt first, or where the pass may be in quarantine.
    pub fn begin(&mut self, pass: PassId, observe: Observe) {
        if self.begun.is_some() || self.suspect(pass) {
            return;
        }
        let program = self.program;
        let Some(worker) = &mut self.live else { return };
        let request = Request::Apply { program, passes: vec![pass], observe, look_out: false };
        match worker.send(&request) {
            Ok(()) => self.begun = Some((pass, observe)),
            Err(_) => self.live = None,
        }
    }

    /// Applies several passes with one message to the worker, reporting each as it happens.
    /// Stops at the first that does not take place; those before it stay applied.
    pub fn multistep(
        &mut self,
        passes: &[PassId],
        observe: Observe,
        mut on_step: impl FnMut(Applied),
    ) -> Result<(), EngineError> {
        let mut rest = passes;
        let (mut losses, mut idle) = (0, false);
        while let Some(&next) = rest.first() {
            self.check_quarantine(next)?;
            // As far as no pass is suspect: a suspect one needs the fingerprint of its state.
            let length = 1 + rest[1..].iter().take_while(|pass| !self.suspect(**pass)).count();
            let (done, failure) = self.run(&rest[..length], observe, &mut on_step)?;
            rest = &rest[done..];
            if done > 0 {
                (losses, idle) = (0, false);
            }
            match failure {
                None => {}
                // Gone without a word: somebody killed it. The pass deserves another try.
                Some(PassFailure::Died(Death::Killed)) if losses < ATTEMPTS => losses += 1,
                // Out of time without having worked: whoever was stopped has gone on by now. If it
                // happens again, it is the pass.
                Some(PassFailure::Died(death)) if death.is_idle() && !idle => idle = true,
                Some(failure) => return Err(self.quarantine_pass(rest[0], failure)?.into()),
            }
        }
        Ok(())
    }

    /// Runs passes until one fails. After a failure the worker is given up.
    fn run(
        &mut self,
        passes: &[PassId],
        observe: Observe,
        on_step: &mut impl FnMut(Applied),
    ) -> Result<(usize, Option<PassFailure>), EngineError> {
        let begun = passes.len() == 1 && self.begun == Some((passes[0], observe));
        if begun {
            self.begun = None;
        }
        self.live().map_err(|silence| silence.into_error("rebuilding the program"))?;
        let program = self.program;
        let Some(mut worker) = self.live.take() else {
            return Err(EngineError::Internal("no worker".to_owned()));
        };
        let mut sent = Ok(());
        if !begun {
            let passes = passes.to_vec();
            sent = worker.send(&Request::Apply { program, passes, observe, look_out: alone() });
        }
        for (done, &pass) in passes.iter().enumerate() {
            let answer =
                std::mem::replace(&mut sent, Ok(())).and_then(|()| worker.receive_step(!begun));
            let failure = match answer {
                Ok(Reply::Step(step)) => match step.outcome {
                    Ok(changed) => {
                        self.advance(pass, changed, step.nanos, &step.observation);
                        on_step(Applied {
                            pass,
                            changed,
                            nanos: step.nanos,
                            observation: step.observation,
                        });
                        continue;
                    }
                    Err(message) => PassFailure::Refused(message),
                },
                Ok(other) => return Err(unexpected("a pass", &other)),
                Err(Silence::Died(death)) => PassFailure::Died(death),
                Err(silence) => return Err(silence.into_error("a pass")),
            };
            return Ok((done, Some(failure)));
        }
        self.live = Some(worker);
        self.freeze_if_due();
        Ok((passes.len(), None))
    }

    fn advance(&mut self, pass: PassId, changed: bool, nanos: u64, seen: &Observation) {
        self.steps.push(pass);
        self.unsaved += Duration::from_nanos(nanos);
        if changed || seen.fingerprint.is_some() {
            self.fingerprint = seen.fingerprint;
        }
    }

    fn suspect(&self, pass: PassId) -> bool {
        self.engine.quarantine().knows_pass(self.engine.pass_name(pass))
    }

    fn check_quarantine(&mut self, pass: PassId) -> Result<(), EngineError> {
        if !self.suspect(pass) {
            return Ok(());
        }
        let state = self.fingerprint()?;
        let name = self.engine.pass_name(pass);
        match self.engine.quarantine().find(state, name, &self.engine.config().limits) {
            Some(entry) => Err(PassError {
                pass: name.to_owned(),
                failure: PassFailure::Quarantined(Box::new(entry)),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Remembers the failure of a pass on the current state, to which the session returns.
    fn quarantine_pass(
        &mut self,
        pass: PassId,
        failure: PassFailure,
    ) -> Result<PassError, EngineError> {
        let state = self.fingerprint()?;
        let name = self.engine.pass_name(pass).to_owned();
        let limits = &self.engine.config().limits;
        self.engine.quarantine().remember(&self.engine.name(), state, &name, &failure, limits);
        Ok(PassError { pass: name, failure })
    }

    /// Identity of the current state.
    pub fn fingerprint(&mut self) -> Result<Fingerprint, EngineError> {
        if let Some(known) = self.fingerprint {
            return Ok(known);
        }
        let seen = self.observe(Observe::FINGERPRINT)?;
        self.fingerprint = seen.fingerprint;
        seen.fingerprint
            .ok_or_else(|| EngineError::Internal("the worker gave no fingerprint".to_owned()))
    }

    /// Looks at the current state.
    pub fn observe(&mut self, observe: Observe) -> Result<Observation, EngineError> {
        let program = self.program;
        match self.ask(&Request::Observe { program, observe }, "looking at the program")? {
            Reply::Observation(observation) => Ok(observation),
            other => Err(unexpected("looking at the program", &other)),
        }
    }

    /// Counts per function.
    pub fn breakdown(&mut self) -> Result<Vec<FunctionCounts>, EngineError> {
        let program = self.program;
        match self.ask(&Request::Breakdown { program }, "counting")? {
            Reply::Breakdown(rows) => Ok(rows),
            other => Err(unexpected("counting", &other)),
        }
    }

    /// The current state as a graph.
    pub fn graph(&mut self) -> Result<Graph, EngineError> {
        let program = self.program;
        match self.ask(&Request::Graph { program }, "drawing the graph")? {
            Reply::Graph(graph) => Ok(graph),
            other => Err(unexpected("drawing the graph", &other)),
        }
    }

    /// Writes the current state out.
    pub fn print(&mut self, form: Form) -> Result<Vec<u8>, EngineError> {
        let program = self.program;
        let request = Request::Print { program, form };
        let reply = match form {
            Form::TEXT | Form::BINARY => self.ask(&request, "printing")?,
            // Other forms go through machinery that may start threads or crash.
            Form(_) => self.scratch()?.ask(&request, "converting")?,
        };
        match reply {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected("printing", &other)),
        }
    }

    /// What the program takes and gives.
    pub fn signature(&mut self) -> Result<Signature, EngineError> {
        let program = self.program;
        match self.ask(&Request::Signature { program }, "reading the signature")? {
            Reply::Signature(signature) => Ok(signature),
            other => Err(unexpected("reading the signature", &other)),
        }
    }

    /// A second session in the same state, about a millisecond away.
    pub fn fork(&mut self) -> Result<Session, EngineError> {
        let worker = self.copy_worker()?;
        Ok(Session {
            engine: self.engine.clone(),
            source: self.source.clone(),
            live: Some(worker),
            program: self.program,
            steps: self.steps.clone(),
            frozen: self.frozen.clone(),
            unsaved: self.unsaved,
            fingerprint: self.fingerprint,
            begun: None,
            unwanted: self.unwanted.clone(),
        })
    }

    /// A throw-away copy for what may crash, start threads or take long: the compiler's own
    /// pipeline, compilation, execution.
    pub fn scratch(&mut self) -> Result<Scratch, EngineError> {
        let mut worker = self.copy_worker()?;
        if let Some(unwanted) = &self.unwanted {
            worker.give_up_if(unwanted.clone());
        }
        Ok(Scratch::new(worker, self.program))
    }

    /// Has whatever its scratches do end with [`EngineError::Interrupted`] once the flag is raised.
    pub fn give_up_if(&mut self, unwanted: Arc<AtomicBool>) {
        self.unwanted = Some(unwanted);
    }

    /// Takes the last `count` passes back.
    pub fn undo(&mut self, count: usize) -> Result<(), EngineError> {
        self.steps.truncate(self.steps.len().saturating_sub(count));
        self.go_back()
    }

    /// Back to the freshly loaded program.
    pub fn reset(&mut self) -> Result<(), EngineError> {
        self.steps.clear();
        self.go_back()
    }

    fn go_back(&mut self) -> Result<(), EngineError> {
        self.live = None;
        self.begun = None;
        self.fingerprint = None;
        self.frozen.retain(|frozen| frozen.steps <= self.steps.len());
        self.live().map(drop).map_err(|silence| silence.into_error("replaying"))
    }

    /// Ends the worker as an outside kill would. For tests of recovery.
    pub fn kill_worker(&mut self) {
        if let Some(worker) = &mut self.live {
            worker.kill();
        }
    }

    fn copy_worker(&mut self) -> Result<Worker, EngineError> {
        for _ in 0..ATTEMPTS {
            match self.live().and_then(Worker::fork) {
                Ok(worker) => return Ok(worker),
                // The same state can be had from an earlier one.
                Err(Silence::Unforkable) => {
                    return self.rebuild().map_err(|silence| silence.into_error("copying"));
                }
                Err(Silence::Died(_)) => self.live = None,
                Err(silence) => return Err(silence.into_error("copying the program")),
            }
        }
        Err(EngineError::Died { doing: "copying the program".to_owned(), death: Death::Killed })
    }

    /// A request that has no effect, so that it can be repeated on a rebuilt worker.
    fn ask(&mut self, request: &Request, doing: &str) -> Result<Reply, EngineError> {
        for _ in 0..ATTEMPTS {
            let answer = self.live().and_then(|worker| worker.call(request));
            match answer {
                Err(Silence::Died(Death::Killed)) => self.live = None,
                Err(silence) => {
                    self.live = None;
                    return Err(silence.into_error(doing));
                }
                answer => return expect(answer, doing),
            }
        }
        Err(EngineError::Died { doing: doing.to_owned(), death: Death::Killed })
    }

    fn freeze_if_due(&mut self) {
        if self.unsaved < self.engine.config().freeze_after {
            return;
        }
        // Without a copy, recovery takes longer; nothing else is lost.
        if let Some(Ok(copy)) = self.live.as_mut().map(Worker::fork) {
            self.frozen.retain(|frozen| frozen.steps == 0);
            self.frozen.push(Frozen::new(copy, self.steps.len()));
        }
        self.unsaved = Duration::ZERO;
    }

    /// The worker in the current state, rebuilt if it was lost.
    fn live(&mut self) -> Result<&mut Worker, Silence> {
        if self.begun.take().is_some() {
            // It is in the middle of a pass that nobody wants any more.
            self.live = None;
        }
        if self.live.is_none() {
            let worker = self.rebuild()?;
            self.live = Some(worker);
        }
        self.live.as_mut().ok_or_else(|| Silence::Confused("no worker".to_owned()))
    }

    /// From the latest frozen state that can still be thawed, else from the source.
    fn rebuild(&mut self) -> Result<Worker, Silence> {
        let lost = |error: EngineError| Silence::Lost(Box::new(error));
        for _ in 0..ATTEMPTS {
            let (mut worker, done) = loop {
                match self.frozen.last() {
                    Some(frozen) => match frozen.thaw() {
                        Some(worker) => break (worker, frozen.steps),
                        None => drop(self.frozen.pop()),
                    },
                    None => {
                        let (mut worker, program) =
                            self.engine.load_into_worker(&self.source).map_err(lost)?;
                        self.program = program;
                        if let Ok(copy) = worker.fork() {
                            self.frozen.push(Frozen::new(copy, 0));
                        }
                        break (worker, 0);
                    }
                }
            };
            match replay(&mut worker, self.program, &self.steps[done..]) {
                Ok(()) => return Ok(worker),
                Err(Silence::Died(Death::Killed)) => {}
                Err(silence) => {
                    let (steps, message) = (self.steps.len(), format!("{silence:?}"));
                    return Err(lost(EngineError::Replay { steps, message }));
                }
            }
        }
        Err(Silence::Died(Death::Killed))
    }
}

fn replay(worker: &mut Worker, program: ProgramId, passes: &[PassId]) -> Result<(), Silence> {
    if passes.is_empty() {
        return Ok(());
    }
    let request = Request::Apply {
        program,
        passes: passes.to_vec(),
        observe: Observe::NOTHING,
        look_out: alone(),
    };
    worker.send(&request)?;
    for _ in passes {
        match worker.receive_step(true)? {
            Reply::Step(step) if step.outcome.is_ok() => {}
            other => return Err(Silence::Confused(format!("{other:?}"))),
        }
    }
    Ok(())
}
