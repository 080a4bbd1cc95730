//! What all environments of a process share.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex},
};

use xla_gym_common::lock;
use xla_gym_data::{Benchmark, Benchmarks, Skipped};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, Source,
    protocol::{Observation, Observe, PROTOCOL_VERSION, PassId},
};
use xla_gym_profile::{Baseline, Figures, Profile, StartPasses, finish, start_session};
use xla_gym_transitions::{Config as CacheConfig, State, Transitions};

use crate::{
    benchmarks::{Program, hash},
    error::EnvError,
    view::{Places, Shape},
};

/// What to look at after each pass.
pub(crate) const LOOK: Observe = {
    let all = Observe::COUNTS.and(Observe::OPCODES);
    all.and(Observe::COST).and(Observe::EXACT).and(Observe::VERDICT)
};

/// Loaded programs that are kept ready; each is two sleeping processes.
const BASES: usize = 32;

/// How a program as it came is called among remembered starts.
const EMITTED: &str = "emitted";

/// How to make a [`World`].
#[derive(Clone)]
pub struct WorldConfig {
    /// What to know of the compiler.
    pub profile: Arc<dyn Profile>,
    /// How to run the compiler.
    pub engine: EngineConfig,
    /// Where passes begin if nobody says otherwise: a start of the profile, by name.
    pub start: String,
    /// Names of the passes that are actions. Empty: those that the compiler's worker proposes.
    pub passes: Vec<String>,
    /// What is remembered, and where.
    pub cache: CacheConfig,
}

impl WorldConfig {
    /// A compiler, from the program as it came, with all passes, remembering in memory only.
    pub fn new(profile: Arc<dyn Profile>) -> Result<WorldConfig, EnvError> {
        Ok(WorldConfig {
            engine: profile.engine_config()?,
            start: profile.spec().starts[0].name.to_owned(),
            profile,
            passes: Vec::new(),
            cache: CacheConfig::default(),
        })
    }
}

/// The engine, the benchmarks, the actions, and everything that is known of them.
pub struct World {
    engine: Engine,
    profile: Arc<dyn Profile>,
    places: Places,
    start: usize,
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
        let files = config.profile.spec().files;
        World::with_programs(config, Benchmarks::find_files(benchmarks, &files)?)
    }

    /// The same for programs that were found already.
    pub fn with_programs(config: WorldConfig, found: Benchmarks) -> Result<World, EnvError> {
        if found.programs.is_empty() {
            return Err(EnvError::Config("a world needs at least one benchmark".to_owned()));
        }
        let spec = config.profile.spec();
        let start = spec.start(&config.start).ok_or_else(|| {
            let known = spec.start_names().join(", ");
            EnvError::Config(format!("{:?} is no start; there are {known}", config.start))
        })?;
        let starts = spec.starts.len();
        let engine = Engine::start(config.engine)?;
        let actions: Vec<PassId> = if config.passes.is_empty() {
            let passes = engine.hello().passes.iter().enumerate();
            let proposed = passes.filter(|(_, pass)| pass.is_default_action);
            proposed.map(|(id, _)| PassId(id as u16)).collect()
        } else {
            engine.passes(config.passes.iter().map(String::as_str))?
        };
        let mut by_pass = vec![None; engine.hello().passes.len()];
        for (action, pass) in actions.iter().enumerate() {
            by_pass[usize::from(pass.0)].get_or_insert(action);
        }
        let transitions = Transitions::open(&config.cache, &identity(&engine))?;
        let new = |benchmark| Program::new(benchmark, starts);
        Ok(World {
            profile: config.profile,
            places: Places::new(engine.hello()),
            start,
            actions,
            by_pass,
            programs: found.programs.into_iter().map(new).collect(),
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
            profile: self.profile.clone(),
            places: self.places,
            start: self.start,
            actions: self.actions.clone(),
            by_pass: self.by_pass.clone(),
            programs: vec![Program::new(
                Benchmark::Memory(source),
                self.profile.spec().starts.len(),
            )],
            skipped: Vec::new(),
            transitions: Transitions::open(&CacheConfig::default(), &identity(&self.engine))?,
            bases: Mutex::default(),
        })
    }

    /// The compiler.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What is known of the compiler.
    pub fn profile(&self) -> &Arc<dyn Profile> {
        &self.profile
    }

    /// Where views find what they show.
    pub fn places(&self) -> Places {
        self.places
    }

    /// What the lengths of views depend on, for episodes of so many steps; `others` are actions that
    /// are no passes.
    pub fn shape(&self, others: usize, traj_limit: usize) -> Shape {
        let hello = self.engine.hello();
        Shape {
            opcodes: hello.opcodes.len(),
            costs: hello.costs.len(),
            actions: self.actions.len() + others,
            traj_limit,
        }
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

    /// Where episodes begin if nobody says otherwise: a position among the profile's starts.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The name of that.
    pub fn start_name(&self) -> &'static str {
        self.profile.spec().starts[self.start].name
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
            Benchmark::Graph(graph) => Ok(graph.size()),
            _ => Ok(self.places.size(&*self.emitted_state(benchmark)?)),
        }
    }

    /// A benchmark as it came, before the passes of any start.
    pub fn emitted_state(&self, benchmark: usize) -> Result<Arc<State>, EnvError> {
        let program = &self.programs[benchmark];
        if let Some(state) = program.emitted.get() {
            return Ok(state.clone());
        }
        let text = program.text_identity()?;
        let known = self.transitions.start(text, EMITTED);
        let state = match known.and_then(|id| self.transitions.state(id)) {
            Some(state) => state,
            None => {
                let base = self.base(benchmark)?;
                let seen = lock(&base).observe(LOOK)?;
                let state = Arc::new(state_of(&seen)?);
                self.transitions.add_state(state.clone());
                self.transitions.add_start(text, EMITTED, state.id);
                state
            }
        };
        Ok(program.emitted.get_or_init(|| state).clone())
    }

    /// A session of its own with a benchmark as it came.
    pub fn session(&self, benchmark: usize) -> Result<Session, EnvError> {
        let base = self.base(benchmark)?;
        let session = lock(&base).fork()?;
        Ok(session)
    }

    /// A benchmark as it was emitted.
    pub fn source(&self, benchmark: usize) -> Result<Source, EnvError> {
        Ok(self.programs[benchmark].benchmark.source()?)
    }

    /// What the compiler itself makes of a benchmark.
    pub fn baseline(&self, benchmark: usize) -> Result<Baseline, EnvError> {
        let program = &self.programs[benchmark];
        if let Some(known) = program.baseline.get() {
            return Ok(*known);
        }
        // A manifest speaks of the program as it came.
        let told = program.benchmark.baseline().filter(|_| self.start == 0);
        let baseline = match told.and_then(|told| self.profile.known_baseline(&told.0)) {
            Some(baseline) => baseline,
            None => {
                let mut emitted = self.session(benchmark)?;
                let mut start = start_session(&*self.profile, &mut emitted, self.start)?;
                Baseline::measure(&*self.profile, &mut emitted, &mut start)?
            }
        };
        Ok(*program.baseline.get_or_init(|| baseline))
    }

    /// What comes of a state by what follows passes that take the place of the compiler's own. Its
    /// primary metric at the end of the order is given, since the state knows it.
    pub fn finish_instead(
        &self,
        session: &mut Session,
        primary: u64,
    ) -> Result<Figures, EngineError> {
        let spec = self.profile.spec();
        Ok(finish(session, &spec.instead)?.figures(spec, primary))
    }

    /// Orders that did well on other programs, the best first. Those that this version of the compiler
    /// does not know are left out.
    pub fn first_orders(&self, benchmark: usize) -> Result<Vec<Vec<PassId>>, EnvError> {
        let state = self.emitted_state(benchmark)?;
        let named = self.engine.name_opcodes(state.opcodes.clone());
        let opcodes: HashSet<String> = named.map(|(name, _)| name).collect();
        let orders = self.profile.first_orders(&|name| opcodes.contains(name));
        let known = |order: &Vec<String>| self.engine.passes(order.iter().map(String::as_str)).ok();
        Ok(orders.iter().filter_map(known).collect())
    }

    /// The passes that lead from a benchmark as it came to a start of the profile.
    pub fn start_passes(&self, benchmark: usize, start: usize) -> Result<Arc<[PassId]>, EnvError> {
        let known = &self.programs[benchmark].starts[start];
        if let Some(passes) = known.get() {
            return Ok(passes.clone());
        }
        let spec = self.profile.spec();
        let passes: Arc<[PassId]> = match &spec.starts[start].passes {
            StartPasses::Fixed(names) => self.engine.passes(names.iter().copied())?.into(),
            StartPasses::AsPipeline => {
                let mut emitted = self.session(benchmark)?;
                finish(&mut emitted, &spec.instead)?.preparation(&*self.profile, &emitted).into()
            }
        };
        Ok(known.get_or_init(|| passes).clone())
    }

    /// The loaded program, which is only ever forked and looked at.
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
        let session = self.engine.load(&self.programs[benchmark].benchmark.source()?)?;
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
    let counting = engine.hello().counting;
    format!("{} protocol {PROTOCOL_VERSION} counts {counting} passes {table}", engine.name())
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
