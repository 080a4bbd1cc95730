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
use xla_gym_profile::{Figure, Figures, Finish, Finished, Profile, Ratio, Spec, Stage, finish};
use xla_gym_search::Costs;

use crate::error::OptimizeError;

/// A program on which the pipeline takes longer is large.
const LONG: Duration = Duration::from_secs(3);

/// Passes to run on a program, and how it goes through the compiler's own pipeline afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    /// To run, from the start state of the world.
    pub passes: Vec<PassId>,
    /// What follows.
    pub finish: Finish,
    /// Whether it is the compiler's own way: its pipeline on the program as emitted.
    pub is_default: bool,
}

impl Plan {
    /// The compiler's own way.
    pub fn default_way(spec: &Spec) -> Plan {
        Plan { passes: Vec::new(), finish: spec.usual.clone(), is_default: true }
    }

    /// These passes in the place of the compiler's own.
    pub fn instead(spec: &Spec, passes: Vec<PassId>) -> Plan {
        Plan { passes, finish: spec.instead.clone(), is_default: false }
    }

    /// These passes before the untouched pipeline.
    pub fn before(spec: &Spec, passes: Vec<PassId>) -> Plan {
        Plan { passes, finish: spec.usual.clone(), is_default: false }
    }

    /// Whether a recipe of it would say what that of the compiler's own way says, though it begins
    /// elsewhere: no passes and the untouched pipeline.
    pub(crate) fn says_nothing(&self, spec: &Spec) -> bool {
        self.passes.is_empty() && self.finish == spec.usual && !self.is_default
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

/// A state that goes through the pipeline, and how.
type Sent = (Fingerprint, Finish);

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
    pub default: Finished,
    /// What it does where passes of ours take the place of its own.
    pub bare: Finished,
    /// The compiler's own optimisation passes, as passes of ours.
    pub own_order: Vec<PassId>,
    /// What comes of the default.
    pub default_figures: Figures,
    /// What comes of the start without any passes, where ours take the place of the compiler's own.
    pub bare_figures: Figures,
    /// The primary metric at the start.
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
    known: Mutex<HashMap<Sent, Result<Finished, String>>>,
    pipelines: AtomicU64,
    reference: Mutex<Option<(Options, Arc<Reference>)>>,
    compared: Mutex<HashMap<(Options, Plan), Report>>,
}

impl Judge {
    /// Runs the compiler's own pipeline.
    pub fn new(world: &Arc<World>, benchmark: usize) -> Result<Judge, OptimizeError> {
        let (profile, spec) = (&**world.profile(), world.profile().spec());
        let mut emitted = world.session(benchmark)?;
        let mut second = emitted.fork()?;
        let begin = Instant::now();
        let (default, bare) = std::thread::scope(|scope| {
            let bare = scope.spawn(|| finish(&mut second, &spec.instead));
            let default = finish(&mut emitted, &spec.usual);
            (default, bare.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (default, bare) = (default?, bare?);
        let pipeline_time = begin.elapsed();
        drop(second);
        let cost = emitted.observe(Observe::COST)?.cost.and_then(Result::ok);
        let signature = emitted.signature().ok();
        let is_large = pipeline_time > LONG
            || signature.as_ref().is_some_and(|signature| {
                is_large(signature, world.engine().hello(), cost.as_ref())
            });
        let io_bytes = signature.as_ref().map_or(0, io_bytes);
        let own_order = default.own_order(profile, &emitted)?;
        let by_default = walk(world, benchmark, &own_order)?;
        let initial = Walk::begin(world, benchmark)?.state().counts.primary();
        Ok(Judge {
            default_figures: default.figures(spec, by_default.state().counts.primary()),
            bare_figures: bare.figures(spec, initial),
            initial,
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

    /// What is known of the compiler.
    pub fn spec(&self) -> &Spec {
        self.world.profile().spec()
    }

    fn profile(&self) -> &dyn Profile {
        &**self.world.profile()
    }

    /// A session of its own with the program as emitted.
    pub fn emitted(&self) -> Result<Session, OptimizeError> {
        Ok(self.emitted.lock().unwrap_or_else(PoisonError::into_inner).fork()?)
    }

    /// Instructions of the program as emitted.
    pub fn emitted_instructions(&self) -> Result<u64, OptimizeError> {
        let state = self.world.emitted_state(self.benchmark)?;
        Ok(self.world.places().size(&state))
    }

    /// Bytes that a run takes by default.
    pub fn needs(&self) -> u64 {
        let memory = self.spec().memory.and_then(|memory| self.default_figures.get(memory));
        self.io_bytes.saturating_add(memory.unwrap_or(0.0) as u64)
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
        let run = self.pipeline(&mut walk, &plan.finish)?;
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
        let figures = run.figures(self.spec(), walk.state().counts.primary());
        Ok(Ok(Judged { plan, figures, end: run.fingerprint }))
    }

    /// What the pipeline does with a state, remembered.
    pub fn pipeline(
        &self,
        walk: &mut Walk,
        how: &Finish,
    ) -> Result<Result<Finished, String>, OptimizeError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = known().get(&(walk.state().id, how.clone())) {
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
        let run = match finish(session, how) {
            Ok(run) => Ok(run),
            Err(error @ EngineError::Interrupted) => return Err(error.into()),
            Err(error) => Err(error.to_string()),
        };
        known().insert((walk.state().id, how.clone()), run.clone());
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
        let reference =
            Arc::new(xla_gym_profile::reference(self.profile(), &mut session, options)?);
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
            Ok(mut session) => reference.compare(&mut session, &plan.finish)?,
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

    /// What the pipeline does to a state in any case, as passes of the table.
    pub fn preparation(&self, run: &Finished) -> Result<Vec<PassId>, OptimizeError> {
        Ok(run.preparation(self.profile(), &self.emitted()?))
    }

    /// A figure at the start, by default, and in a result.
    pub fn ratio(&self, figure: Figure, figures: &Figures) -> Ratio {
        let value = |figures: &Figures| figures.get(figure).unwrap_or(0.0) as u64;
        Ratio {
            initial: value(&self.bare_figures),
            default: value(&self.default_figures),
            result: value(figures),
        }
    }

    /// What a result is worth at a stage; above 1 is better than the compiler's own.
    pub fn worth(&self, stage: &Stage, figures: &Figures) -> Option<f64> {
        self.ratio(stage.figure, figures).compared(stage.comparison)
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
