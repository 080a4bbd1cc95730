//! Passes to run, and passes to leave out: what a recipe comes down to.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use xla_gym_engine::{
    EngineError, Session,
    protocol::{Fingerprint, Observe, PassId},
};
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_oracle::{Options, Reference, Report, io_bytes, is_large};
use xla_gym_score::{DefaultRun, Ratio, default_passes, optional, run_default};
use xla_gym_search::Costs;

use crate::{error::OptimizeError, objective::Figures};

/// A program on which the pipeline takes longer is large.
const LONG: Duration = Duration::from_secs(3);

/// Passes to run on a program, and passes of the compiler's own pipeline to leave out afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    /// To run, from the start state of the world.
    pub passes: Vec<PassId>,
    /// To leave out.
    pub disabled: Vec<String>,
    /// Whether it is the compiler's own way: its pipeline on the program as emitted.
    pub is_default: bool,
}

impl Plan {
    /// The compiler's own way.
    pub fn default_way() -> Plan {
        Plan { is_default: true, ..Plan::default() }
    }

    /// These passes instead of the pipeline's optional ones.
    pub fn instead(passes: Vec<PassId>) -> Plan {
        Plan { passes, disabled: optional(), is_default: false }
    }

    /// These passes before the untouched pipeline.
    pub fn before(passes: Vec<PassId>) -> Plan {
        Plan { passes, ..Plan::default() }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.passes.len() {
            1 => f.write_str("an order of 1 pass"),
            count => write!(f, "an order of {count} passes"),
        }
    }
}

/// A plan, and what the pipeline makes of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The plan, without passes that do nothing.
    pub plan: Plan,
    /// What comes out.
    pub figures: Figures,
    /// The final program.
    pub end: Option<Fingerprint>,
}

/// A state that goes through the pipeline, and what is left out there.
type Sent = (Fingerprint, Vec<String>);

/// A program as emitted, what the compiler itself makes of it, and a memory of what it makes of
/// other states of it.
pub struct Judge {
    /// Where it is walked.
    pub world: Arc<World>,
    /// Which of the programs there.
    pub benchmark: usize,
    /// The program as emitted.
    emitted: Mutex<Session>,
    /// What the compiler does with it.
    pub default: DefaultRun,
    /// What it does without its optional passes.
    pub bare: DefaultRun,
    /// The compiler's own optimisation passes, as passes of ours.
    pub own_order: Vec<PassId>,
    /// What comes of the default.
    pub default_figures: Figures,
    /// Operations at the start.
    pub initial: u64,
    /// How long a run of the compiler's own pipeline takes, with all that belongs to it.
    pub pipeline_time: Duration,
    /// Whether a run of the program, or of the pipeline on it, takes so long that the time has to be
    /// shared out.
    pub is_large: bool,
    /// Bytes of inputs and outputs.
    io_bytes: u64,
    /// What passes cost on it.
    pub costs: Arc<Costs>,
    /// How long it took to judge a plan, lately.
    judging: Mutex<Duration>,
    known: Mutex<HashMap<Sent, Result<DefaultRun, String>>>,
    pipelines: AtomicU64,
    reference: Mutex<Option<(Options, Arc<Reference>)>>,
    compared: Mutex<HashMap<(Options, Plan), Report>>,
}

impl Judge {
    /// Runs the compiler's own pipeline.
    pub fn new(world: &Arc<World>, benchmark: usize) -> Result<Judge, OptimizeError> {
        let mut emitted = world.engine().load(&world.source(benchmark)?)?;
        let mut second = emitted.fork()?;
        let begin = Instant::now();
        let (default, bare) = std::thread::scope(|scope| {
            let bare = scope.spawn(|| run_default(&mut second, &optional()));
            let default = run_default(&mut emitted, &[]);
            (default, bare.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (default, bare) = (default?, bare?);
        let pipeline_time = begin.elapsed();
        drop(second);
        let cost = emitted.observe(Observe::COST)?.cost.and_then(Result::ok);
        let signature = emitted.signature().ok();
        let is_large = pipeline_time > LONG
            || signature.as_ref().is_some_and(|signature| is_large(signature, cost.as_ref()));
        let io_bytes = signature.as_ref().map_or(0, io_bytes);
        let own_order = default_passes(&emitted, &default)?;
        let by_default = walk(world, benchmark, &own_order)?;
        let operations = by_default.state().counts.operations;
        Ok(Judge {
            default_figures: figures(operations, &default),
            initial: world.start_state(benchmark)?.counts.operations,
            world: world.clone(),
            benchmark,
            emitted: Mutex::new(emitted),
            default,
            bare,
            own_order,
            pipeline_time,
            is_large,
            io_bytes,
            costs: Arc::default(),
            judging: Mutex::new(pipeline_time),
            known: Mutex::default(),
            pipelines: AtomicU64::new(2),
            reference: Mutex::default(),
            compared: Mutex::default(),
        })
    }

    /// A session of its own with the program as emitted.
    pub fn emitted(&self) -> Result<Session, OptimizeError> {
        Ok(self.emitted.lock().unwrap_or_else(PoisonError::into_inner).fork()?)
    }

    /// Instructions of the program as emitted.
    pub fn emitted_instructions(&self) -> Result<u64, OptimizeError> {
        let seen = self.emitted()?.observe(Observe::COUNTS)?;
        Ok(seen.counts.map_or(0, |counts| counts.instructions))
    }

    /// Whether the program has instructions of an opcode.
    pub fn has(&self, opcode: &str) -> Result<bool, OptimizeError> {
        let start = self.world.start_state(self.benchmark)?;
        let mut named = self.world.engine().name_opcodes(start.opcodes.clone());
        Ok(named.any(|(name, count)| name == opcode && count > 0))
    }

    /// Bytes that a run takes by default.
    pub fn needs(&self) -> u64 {
        self.io_bytes.saturating_add(self.default_figures.memory.unwrap_or(0.0) as u64)
    }

    /// How many programs of this size can be run side by side, at least one.
    pub fn at_a_time(&self) -> usize {
        let limit = self.world.engine().config().limits.memory_bytes;
        // The compiler and code beside it.
        let each = self.needs().saturating_add(1 << 28);
        usize::try_from(limit / each).unwrap_or(usize::MAX).max(1)
    }

    /// About how long it takes to judge a plan: its passes, and the pipeline.
    pub fn judging(&self) -> Duration {
        *self.judging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs of the whole pipeline so far.
    pub fn pipelines(&self) -> u64 {
        self.pipelines.load(Ordering::Relaxed)
    }

    /// What the pipeline makes of a plan. None if the compiler refuses it, with the reason.
    pub fn judge(&self, plan: &Plan) -> Result<Result<Judged, String>, OptimizeError> {
        if plan.is_default {
            let (plan, figures, end) = (plan.clone(), self.default_figures, None);
            return Ok(Ok(Judged { plan, figures, end }));
        }
        let (begin, pipelines) = (Instant::now(), self.pipelines());
        let mut walk = walk(&self.world, self.benchmark, &plan.passes)?;
        let run = self.pipeline(&mut walk, &plan.disabled)?;
        // Not if it was remembered.
        if self.pipelines() > pipelines {
            let mut judging = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
            // It is better to end early than late.
            *judging = begin.elapsed().max((*judging + begin.elapsed()) / 2);
        }
        let run = match run {
            Ok(run) => run,
            Err(reason) => return Ok(Err(reason)),
        };
        let plan = Plan { passes: walk.path().collect(), ..plan.clone() };
        let operations = walk.state().counts.operations;
        Ok(Ok(Judged { plan, figures: figures(operations, &run), end: run.end_fingerprint }))
    }

    /// What the pipeline does with a state, remembered.
    pub fn pipeline(
        &self,
        walk: &mut Walk,
        disabled: &[String],
    ) -> Result<Result<DefaultRun, String>, OptimizeError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = known().get(&(walk.state().id, disabled.to_vec())) {
            return Ok(run.clone());
        }
        self.pipelines.fetch_add(1, Ordering::Relaxed);
        let session = match walk.session() {
            Ok(session) => session,
            Err(EnvError::Engine(error @ EngineError::Pass(_))) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let run = match run_default(session, disabled) {
            Ok(run) => Ok(run),
            Err(error @ EngineError::Interrupted) => return Err(error.into()),
            Err(error) => Err(error.to_string()),
        };
        known().insert((walk.state().id, disabled.to_vec()), run.clone());
        Ok(run)
    }

    /// What the program as emitted computes, remembered.
    pub fn reference(&self, options: Options) -> Result<Arc<Reference>, OptimizeError> {
        self.reference_unless(options, Arc::default())
    }

    /// The same, given up with [`EngineError::Interrupted`] once the flag is raised.
    pub fn reference_unless(
        &self,
        options: Options,
        unwanted: Arc<AtomicBool>,
    ) -> Result<Arc<Reference>, OptimizeError> {
        let mut known = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reference)) = known.as_ref().filter(|(other, _)| *other == options) {
            return Ok(reference.clone());
        }
        let mut session = self.emitted()?;
        session.give_up_if(unwanted);
        let reference = Arc::new(xla_gym_score::reference(&mut session, options)?);
        *known = Some((options, reference.clone()));
        Ok(reference)
    }

    /// Whether a plan computes the same as the program as emitted, remembered.
    pub fn compare(&self, plan: &Plan, options: Options) -> Result<Report, OptimizeError> {
        let key = (options, plan.clone());
        let known = || self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = known().get(&key) {
            return Ok(report.clone());
        }
        let reference = self.reference(options)?;
        let report = match self.session(plan) {
            Ok(mut session) => reference.compare(&mut session, &plan.disabled)?,
            Err(error @ OptimizeError::Lost(_)) => Report::rejected(error.to_string()),
            Err(error) => return Err(error),
        };
        known().insert(key, report.clone());
        Ok(report)
    }

    /// A session with the program after a plan's passes. A plan one of whose passes has become too
    /// slow since it was judged is lost, and so is one with passes that do nothing.
    pub fn session(&self, plan: &Plan) -> Result<Session, OptimizeError> {
        if plan.is_default {
            return self.emitted();
        }
        let walk = walk(&self.world, self.benchmark, &plan.passes)?;
        if !walk.path().eq(plan.passes.iter().copied()) {
            return Err(OptimizeError::Lost(plan.to_string()));
        }
        match walk.into_session() {
            Err(EnvError::Engine(EngineError::Pass(_))) => {
                Err(OptimizeError::Lost(plan.to_string()))
            }
            session => Ok(session?),
        }
    }

    /// What the pipeline does in order to make a state legal, as passes of ours.
    pub fn legalising(&self, run: &DefaultRun) -> Vec<PassId> {
        run.passes[..run.passes_before_layout]
            .iter()
            .filter(|pass| pass.changed)
            .filter_map(|pass| self.world.engine().pass(&pass.pass).ok())
            .collect()
    }

    /// Operations at the end of the order.
    pub fn order(&self, figures: &Figures) -> Ratio {
        Ratio {
            initial: self.initial,
            default: self.default_figures.operations,
            result: figures.operations,
        }
    }

    /// Operations just before layout assignment.
    pub fn legal(&self, figures: &Figures) -> Ratio {
        Ratio {
            initial: self.bare.middle.operations,
            default: self.default_figures.legal,
            result: figures.legal,
        }
    }
}

/// What comes of a run of the pipeline on a state with so many operations.
pub fn figures(operations: u64, run: &DefaultRun) -> Figures {
    Figures {
        operations,
        legal: run.middle.operations,
        kernels: run.end.operations,
        flops: run.end_cost.map(|cost| cost.flops + cost.transcendentals),
        bytes: run.end_cost.map(|cost| cost.bytes_accessed),
        memory: run.memory.map(|needs| (needs.temporaries + needs.constants) as f64),
        run_nanos: None,
        compile_nanos: None,
    }
}

/// Walks an order; passes that fail are left out.
pub fn walk(
    world: &Arc<World>,
    benchmark: usize,
    passes: &[PassId],
) -> Result<Walk, OptimizeError> {
    let mut walk = Walk::begin(world, benchmark)?;
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}
