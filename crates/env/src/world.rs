//! What all environments of a process share.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use xla_gym_common::lock;
use xla_gym_data::{Benchmark, Benchmarks, Skipped};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, Source,
    protocol::{COUNTS_VERSION, Observation, Observe, PROTOCOL_VERSION, PassId},
};
use xla_gym_score::{
    Start, apply_all, default_passes, optional, own_option, run_default, start_session,
};
use xla_gym_transitions::{Config as CacheConfig, State, Transitions};

use crate::{
    benchmarks::{Program, hash},
    error::EnvError,
    reward::Defaults,
};

/// What to look at after each pass.
pub(crate) const LOOK: Observe = {
    let all = Observe::COUNTS.and(Observe::OPCODES);
    all.and(Observe::COST).and(Observe::EXACT).and(Observe::VERDICT)
};

/// Loaded start states that are kept ready; each is two sleeping processes.
const BASES: usize = 32;

/// How to make a [`World`].
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// How to run the compiler.
    pub engine: EngineConfig,
    /// Where passes begin: at the program as emitted, or normalised.
    pub start: Start,
    /// Names of the passes that are actions. Empty: all that keep what the program computes and
    /// belong before layout assignment.
    pub passes: Vec<String>,
    /// What is remembered, and where.
    pub cache: CacheConfig,
}

impl WorldConfig {
    /// XLA, from the program as emitted, with all passes, remembering in memory only.
    pub fn xla() -> Result<WorldConfig, EnvError> {
        Ok(WorldConfig {
            engine: EngineConfig::xla()?,
            start: Start::Emitted,
            passes: Vec::new(),
            cache: CacheConfig::default(),
        })
    }
}

/// The engine, the benchmarks, the actions, and everything that is known of them.
pub struct World {
    engine: Engine,
    start: Start,
    actions: Vec<PassId>,
    /// For each pass, which action it is.
    by_pass: Vec<Option<usize>>,
    programs: Vec<Program>,
    skipped: Vec<Skipped>,
    transitions: Transitions,
    bases: Mutex<VecDeque<(usize, Arc<Mutex<Session>>)>>,
}

impl World {
    /// Finds the benchmarks and starts the compiler. Benchmarks are loaded when an episode first
    /// begins there.
    pub fn new<S: AsRef<str>>(
        config: WorldConfig,
        benchmarks: impl IntoIterator<Item = S>,
    ) -> Result<World, EnvError> {
        World::with_programs(config, Benchmarks::find(benchmarks)?)
    }

    /// The same for programs that were found already.
    pub fn with_programs(config: WorldConfig, found: Benchmarks) -> Result<World, EnvError> {
        if found.programs.is_empty() {
            return Err(EnvError::Config("a world needs at least one benchmark".to_owned()));
        }
        let engine = Engine::start(config.engine)?;
        let actions: Vec<PassId> = if config.passes.is_empty() {
            let usable = |pass: &xla_gym_engine::protocol::Pass| {
                !pass.after_layout && !pass.lossy && pass.kind != "faulty"
            };
            let passes = engine.hello().passes.iter().enumerate();
            passes.filter(|(_, pass)| usable(pass)).map(|(id, _)| PassId(id as u16)).collect()
        } else {
            engine.passes(config.passes.iter().map(String::as_str))?
        };
        let mut by_pass = vec![None; engine.hello().passes.len()];
        for (action, pass) in actions.iter().enumerate() {
            by_pass[usize::from(pass.0)].get_or_insert(action);
        }
        let transitions = Transitions::open(&config.cache, &identity(&engine))?;
        Ok(World {
            start: config.start,
            actions,
            by_pass,
            programs: found.programs.into_iter().map(Program::new).collect(),
            skipped: found.skipped,
            transitions,
            bases: Mutex::default(),
            engine,
        })
    }

    /// The same compiler, actions and start for another program, remembered in memory only.
    pub fn beside(&self, source: Source) -> Result<World, EnvError> {
        Ok(World {
            engine: self.engine.clone(),
            start: self.start,
            actions: self.actions.clone(),
            by_pass: self.by_pass.clone(),
            programs: vec![Program::new(Benchmark::Memory(source))],
            skipped: Vec::new(),
            transitions: Transitions::open(&CacheConfig::default(), &identity(&self.engine))?,
            bases: Mutex::default(),
        })
    }

    /// The compiler.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The passes that are actions, in order.
    pub fn actions(&self) -> &[PassId] {
        &self.actions
    }

    /// The action that is a pass, if it is one.
    pub fn action_of(&self, pass: PassId) -> Option<usize> {
        self.by_pass.get(usize::from(pass.0)).copied().flatten()
    }

    /// The name of the pass behind an action.
    pub fn action_name(&self, action: usize) -> &str {
        self.engine.pass_name(self.actions[action])
    }

    /// Whether the pass behind an action keeps what programs compute. Passes that do not are actions
    /// only where they were asked for by name.
    pub fn keeps_results(&self, action: usize) -> bool {
        let passes = &self.engine.hello().passes;
        self.actions.get(action).is_none_or(|pass| !passes[usize::from(pass.0)].lossy)
    }

    /// Where episodes begin.
    pub fn start(&self) -> Start {
        self.start
    }

    /// How many benchmarks there are.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there is none, which `new` refuses.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// The name of a benchmark.
    pub fn benchmark_name(&self, benchmark: usize) -> &str {
        &self.programs[benchmark].name
    }

    /// Finds a benchmark by name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.programs.iter().position(|program| program.name == name)
    }

    /// Files that were passed over, with the reason.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// What is remembered of passes.
    pub fn transitions(&self) -> &Transitions {
        &self.transitions
    }

    /// Instructions at the start, without loading the program where its manifest says so.
    pub fn size(&self, benchmark: usize) -> Result<u64, EnvError> {
        match &self.programs[benchmark].benchmark {
            Benchmark::Graph(graph) => Ok(graph.counts.instructions),
            _ => Ok(self.start_state(benchmark)?.counts.instructions),
        }
    }

    /// The state in which episodes on a benchmark begin.
    pub fn start_state(&self, benchmark: usize) -> Result<Arc<State>, EnvError> {
        let program = &self.programs[benchmark];
        if let Some(state) = program.start.get() {
            return Ok(state.clone());
        }
        let text = program.text_identity()?;
        let known = self.transitions.start(text, self.start_name());
        let state = match known.and_then(|id| self.transitions.state(id)) {
            Some(state) => state,
            None => {
                let base = self.base(benchmark)?;
                let seen = lock(&base).observe(LOOK)?;
                let state = Arc::new(state_of(&seen)?);
                self.transitions.add_state(state.clone());
                self.transitions.add_start(text, self.start_name(), state.id);
                state
            }
        };
        Ok(program.start.get_or_init(|| state).clone())
    }

    /// A session of its own in the start state.
    pub fn session(&self, benchmark: usize) -> Result<Session, EnvError> {
        let base = self.base(benchmark)?;
        let session = lock(&base).fork()?;
        Ok(session)
    }

    /// A benchmark as it was emitted.
    pub fn source(&self, benchmark: usize) -> Result<Source, EnvError> {
        Ok(self.programs[benchmark].benchmark.source()?)
    }

    /// What XLA itself makes of a benchmark.
    pub fn defaults(&self, benchmark: usize) -> Result<Defaults, EnvError> {
        let program = &self.programs[benchmark];
        if let Some(known) = program.defaults.get() {
            return Ok(*known);
        }
        let defaults = match (program.benchmark.baseline(), self.start) {
            (Some(baseline), Start::Emitted) => Defaults {
                initial: baseline.initial,
                optimised: baseline.optimised,
                legal_initial: baseline.legal_initial,
                kernels_initial: baseline.kernels_without_optional,
                legal: baseline.legal_default,
                kernels: baseline.kernels,
            },
            _ => self.measure_defaults(benchmark)?,
        };
        Ok(*program.defaults.get_or_init(|| defaults))
    }

    fn measure_defaults(&self, benchmark: usize) -> Result<Defaults, EnvError> {
        // XLA's own run is always that on the program as emitted.
        let mut emitted = self.engine.load(&self.programs[benchmark].benchmark.source()?)?;
        let default = run_default(&mut emitted, &[])?;
        let passes = default_passes(&emitted, &default)?;
        let mut session = self.session(benchmark)?;
        apply_all(&mut session, &passes)?;
        let seen = session.observe(Observe::COUNTS)?;
        let bare = run_default(&mut emitted, &optional())?;
        Ok(Defaults {
            legal_initial: bare.middle.operations,
            kernels_initial: bare.end.operations,
            initial: self.start_state(benchmark)?.counts.operations,
            optimised: seen.counts.unwrap_or_default().operations,
            legal: default.middle.operations,
            kernels: default.end.operations,
        })
    }

    /// What XLA's pipeline without its optional passes makes of a state: operations before layout
    /// assignment, and kernels.
    pub fn replaced(&self, session: &mut Session) -> Result<(u64, u64), EngineError> {
        let run = run_default(session, &optional())?;
        Ok((run.middle.operations, run.end.operations))
    }

    /// The passes by which XLA's pipeline, without its optional passes, makes the start state of a
    /// benchmark legal. What they add can be tidied up only by passes that come after them.
    pub fn legalising(&self, benchmark: usize) -> Result<Arc<[PassId]>, EnvError> {
        let program = &self.programs[benchmark];
        if let Some(known) = program.legalising.get() {
            return Ok(known.clone());
        }
        let run = run_default(&mut self.session(benchmark)?, &optional())?;
        let changed = run.passes[..run.passes_before_layout].iter().filter(|pass| pass.changed);
        let passes =
            changed.filter_map(|pass| self.engine.pass(own_option(&pass.pass)).ok()).collect();
        Ok(program.legalising.get_or_init(|| passes).clone())
    }

    fn start_name(&self) -> &'static str {
        match self.start {
            Start::Emitted => "emitted",
            Start::Normalised => "normalised",
        }
    }

    /// The loaded start state, which is only ever forked and looked at.
    fn base(&self, benchmark: usize) -> Result<Arc<Mutex<Session>>, EnvError> {
        let find = |bases: &mut VecDeque<(usize, Arc<Mutex<Session>>)>| {
            let position = bases.iter().position(|(other, _)| *other == benchmark)?;
            let entry = bases.remove(position)?;
            let base = entry.1.clone();
            bases.push_back(entry);
            Some(base)
        };
        if let Some(base) = find(&mut lock(&self.bases)) {
            return Ok(base);
        }
        // Not under the lock: loading may take a second. Two may load the same; one is kept.
        let mut loaded = self.engine.load(&self.programs[benchmark].benchmark.source()?)?;
        let session = match self.start {
            Start::Emitted => loaded,
            Start::Normalised => start_session(&mut loaded, Start::Normalised)?,
        };
        let mut bases = lock(&self.bases);
        if let Some(base) = find(&mut bases) {
            return Ok(base);
        }
        let base = Arc::new(Mutex::new(session));
        bases.push_back((benchmark, base.clone()));
        let dropped = if bases.len() > BASES { bases.pop_front() } else { None };
        drop(bases);
        drop(dropped);
        Ok(base)
    }
}

/// What must be the same for a remembered transition to hold.
fn identity(engine: &Engine) -> String {
    let passes: Vec<&str> = engine.hello().passes.iter().map(|pass| &*pass.name).collect();
    let opcodes = engine.hello().opcodes.join(",");
    let table = hash(format!("{}\n{opcodes}", passes.join(",")).as_bytes());
    format!("{} protocol {PROTOCOL_VERSION} counts {COUNTS_VERSION} passes {table}", engine.name())
}

pub(crate) fn state_of(seen: &Observation) -> Result<State, EngineError> {
    let missing = || EngineError::Internal("the worker left out what was asked for".to_owned());
    Ok(State {
        id: seen.exact.ok_or_else(missing)?,
        counts: seen.counts.ok_or_else(missing)?,
        opcodes: seen.opcodes.clone().ok_or_else(missing)?,
        cost: seen.cost.as_ref().and_then(|cost| cost.as_ref().ok()).copied(),
    })
}
