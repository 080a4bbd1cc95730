//! One environment.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_engine::protocol::{Cost, Counts, Finish, Form, Graph};
use xla_gym_profile::Figure;
use xla_gym_transitions::{Failure, Outcome, State};

use crate::{
    config::{EnvConfig, MaskKind},
    error::EnvError,
    mask::Useless,
    reward::Rules,
    sampler::Sampling,
    view::{Bounds, Seen, View},
    walk::Walk,
    world::World,
};

/// What a step gives, apart from the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it paid.
    pub reward: f64,
    /// The stop action was taken.
    pub terminated: bool,
    /// The limit of steps was reached.
    pub truncated: bool,
    /// What happened.
    pub info: Info,
}

/// What happened in a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Whether the pass changed the program.
    pub changed: bool,
    /// Why the pass did not take place; the state is then as it was.
    pub failure: Option<Failure>,
    /// Whether no compiler ran, because the result was known.
    pub remembered: bool,
    /// Time of the pass alone, if it ran.
    pub nanos: u64,
    /// What was measured at the end of the episode, if the configuration asks for it: the result
    /// and the compiler's own.
    pub at_end: Option<(f64, f64)>,
}

/// The state of an environment: a benchmark, and the actions since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvState {
    /// Compiler and version.
    pub engine: String,
    /// Id or path.
    pub benchmark: String,
    /// Where the episode began: a start of the compiler's profile, by name.
    pub start: String,
    /// Names of the passes, also of those that did nothing or failed.
    pub actions: Vec<String>,
}

/// The name of the action that ends an episode.
const STOP: &str = "stop";

struct Episode {
    walk: Walk,
    start: Arc<State>,
    actions: Vec<usize>,
    /// For each action, how long the path was before it.
    path_lengths: Vec<usize>,
    /// What each action paid.
    rewards: Vec<f64>,
    /// The primary metric at the start and after each action.
    sizes: Vec<u64>,
    over: bool,
}

/// One environment: `reset`, then `step` until it says that the episode is over.
///
/// ```no_run
/// use std::sync::Arc;
/// use xla_gym_env::{Env, EnvConfig, World, WorldConfig};
///
/// # fn run(profile: Arc<dyn xla_gym_profile::Profile>) -> Result<(), xla_gym_env::EnvError> {
/// let world = Arc::new(World::new(WorldConfig::new(profile)?, ["hlo-v1:gpt2/train"])?);
/// let mut env = Env::new(&world, EnvConfig::default())?;
/// env.reset(Some(7))?;
/// let step = env.step(0)?;
/// println!("{} are left, reward {}", env.state()?.counts.primary(), step.reward);
/// # Ok(())
/// # }
/// ```
pub struct Env {
    world: Arc<World>,
    config: EnvConfig,
    rules: Rules,
    index: usize,
    sampling: Sampling,
    rng: ChaCha8Rng,
    episodes: u64,
    useless: Useless,
    episode: Option<Episode>,
}

impl Env {
    /// Makes an environment.
    pub fn new(world: &Arc<World>, config: EnvConfig) -> Result<Env, EnvError> {
        Env::one_of(world, config, 0, 1)
    }

    /// Makes environment `index` of a vector of `of`.
    pub fn one_of(
        world: &Arc<World>,
        config: EnvConfig,
        index: usize,
        of: usize,
    ) -> Result<Env, EnvError> {
        if config.traj_limit == 0 {
            return Err(EnvError::Config("traj_limit must be at least 1".to_owned()));
        }
        Ok(Env {
            sampling: Sampling::new(&config.sampler, world, index, of)?,
            rules: Rules::new(&config.reward, &**world.profile(), world.engine().hello())?,
            world: world.clone(),
            config,
            index,
            rng: generator(0, index),
            episodes: 0,
            useless: Useless::default(),
            episode: None,
        })
    }

    /// What it shares with others.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// How it behaves.
    pub fn config(&self) -> &EnvConfig {
        &self.config
    }

    /// Number of actions, the one that stops included.
    pub fn actions(&self) -> usize {
        self.world.actions().len() + usize::from(self.config.stop_action)
    }

    /// The name of an action.
    pub fn action_name(&self, action: usize) -> &str {
        if action < self.world.actions().len() { self.world.action_name(action) } else { STOP }
    }

    /// Between which values a view lies.
    pub fn bounds(&self, view: View) -> Bounds {
        view.bounds(self.world.shape(self.config.stop_action.into(), self.config.traj_limit))
    }

    /// Begins an episode on the next benchmark. A seed starts everything over that depends on
    /// chance or on what came before: the order of benchmarks, and what the mask knows.
    pub fn reset(&mut self, seed: Option<u64>) -> Result<(), EnvError> {
        self.seed(seed);
        let benchmark = self.sampling.next(&self.world, self.episodes, &mut self.rng);
        self.begin(benchmark, self.world.start())
    }

    /// Begins an episode on the given benchmark.
    pub fn reset_to(&mut self, benchmark: usize, seed: Option<u64>) -> Result<(), EnvError> {
        self.seed(seed);
        self.check_benchmark(benchmark)?;
        self.begin(benchmark, self.world.start())
    }

    /// Begins an episode on the given benchmark at the given start, by its position in the profile.
    pub fn reset_to_start(
        &mut self,
        benchmark: usize,
        start: usize,
        seed: Option<u64>,
    ) -> Result<(), EnvError> {
        self.seed(seed);
        self.check_benchmark(benchmark)?;
        self.begin(benchmark, start)
    }

    fn check_benchmark(&self, benchmark: usize) -> Result<(), EnvError> {
        let count = self.world.len();
        if benchmark < count {
            return Ok(());
        }
        Err(EnvError::Config(format!(
            "there is no benchmark {benchmark}; there are {count}, counted from 0"
        )))
    }

    fn seed(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = generator(seed, self.index);
            self.episodes = 0;
            self.useless.clear();
            self.sampling.restart(self.index, &self.world);
        }
    }

    fn begin(&mut self, benchmark: usize, start: usize) -> Result<(), EnvError> {
        self.episode = None;
        let walk = Walk::begin_at(&self.world, benchmark, start)?;
        self.episodes += 1;
        self.episode = Some(Episode {
            start: walk.state().clone(),
            sizes: vec![walk.state().counts.primary()],
            walk,
            actions: Vec::new(),
            path_lengths: Vec::new(),
            rewards: Vec::new(),
            over: false,
        });
        Ok(())
    }

    /// Has the compiler begin an action, without waiting, for the [`Env::step`] of the same that
    /// comes next. False if that step has more to do than to wait for one pass.
    pub fn begin_step(&mut self, action: usize) -> bool {
        match (&mut self.episode, self.world.actions().get(action)) {
            (Some(episode), Some(&pass)) if !episode.over => episode.walk.begin_step(pass),
            _ => false,
        }
    }

    /// Takes an action.
    pub fn step(&mut self, action: usize) -> Result<Step, EnvError> {
        let count = self.actions();
        if action >= count {
            return Err(EnvError::NoSuchAction { action, count });
        }
        let episode = self.episode.as_mut().ok_or(EnvError::NotRunning("no episode has begun"))?;
        if episode.over {
            return Err(EnvError::NotRunning("the episode is over"));
        }
        let terminated = action == self.world.actions().len();
        let default_reduction = if self.rules.needs_default() && !terminated {
            let figure = self.world.profile().spec().starts[episode.walk.start()].counts_as;
            Some(self.world.baseline(episode.walk.benchmark())?.reduction(figure))
        } else {
            None
        };
        let before = episode.walk.state().clone();
        let path_length = episode.walk.path().len();
        let mut info = Info::default();
        if !terminated {
            let stepped = episode.walk.step(self.world.actions()[action])?;
            if !stepped.changed {
                self.useless.add(before.id, action, count);
            }
            info.changed = stepped.changed;
            info.failure = stepped.failure;
            info.remembered = stepped.remembered;
            info.nanos = stepped.nanos;
        }
        episode.actions.push(action);
        episode.path_lengths.push(path_length);
        let truncated = !terminated && episode.actions.len() >= self.config.traj_limit;
        let after = episode.walk.state().clone();
        let failed = info.failure.is_some();
        let rules = &self.rules;
        let lowest = episode.sizes.iter().copied().min().unwrap_or(u64::MAX);
        let mut reward =
            rules.step(&episode.start, &before, &after, lowest, default_reduction, failed);
        if let (Some(figure), true) = (rules.at_end, terminated || truncated) {
            let (paid, measured) = pay_at_end(&self.world, &mut episode.walk, figure)?;
            reward += paid;
            info.at_end = measured;
        }
        episode.over = terminated || truncated;
        episode.sizes.push(after.counts.primary());
        episode.rewards.push(reward);
        Ok(Step { reward, terminated, truncated, info })
    }

    /// Takes several actions; stops where the episode ends.
    pub fn multistep(&mut self, actions: &[usize]) -> Result<Vec<Step>, EnvError> {
        let mut steps = Vec::with_capacity(actions.len());
        for &action in actions {
            let step = self.step(action)?;
            let over = step.terminated || step.truncated;
            steps.push(step);
            if over {
                break;
            }
        }
        Ok(steps)
    }

    /// Starts the current benchmark over and takes these actions.
    pub fn replay(&mut self, actions: &[usize]) -> Result<Vec<Step>, EnvError> {
        let episode = self.running()?;
        let (benchmark, start) = (episode.walk.benchmark(), episode.walk.start());
        self.begin(benchmark, start)?;
        self.multistep(actions)
    }

    /// Takes the last `count` actions back. The episode goes on, also if it was over.
    pub fn undo(&mut self, count: usize) -> Result<(), EnvError> {
        let episode = self.episode.as_mut().ok_or(EnvError::NotRunning("no episode has begun"))?;
        let keep = episode.actions.len().saturating_sub(count);
        if let Some(&length) = episode.path_lengths.get(keep) {
            episode.walk.go_back(length);
            episode.actions.truncate(keep);
            episode.path_lengths.truncate(keep);
            episode.rewards.truncate(keep);
            episode.sizes.truncate(keep + 1);
            episode.over = false;
        }
        Ok(())
    }

    /// A second environment in the same state, with its own luck from here on the same.
    pub fn fork(&mut self) -> Result<Env, EnvError> {
        let mut other = Env::new(&self.world, self.config.clone())?;
        other.rng = self.rng.clone();
        other.index = self.index;
        other.episodes = self.episodes;
        other.sampling = self.sampling.clone();
        other.useless = self.useless.clone();
        if let Some(episode) = &mut self.episode {
            other.episode = Some(Episode {
                walk: episode.walk.fork_with_program()?,
                start: episode.start.clone(),
                actions: episode.actions.clone(),
                path_lengths: episode.path_lengths.clone(),
                rewards: episode.rewards.clone(),
                sizes: episode.sizes.clone(),
                over: episode.over,
            });
        }
        Ok(other)
    }

    /// Benchmark and actions: everything that is needed to come back here.
    pub fn save(&self) -> Result<EnvState, EnvError> {
        let episode = self.running()?;
        Ok(EnvState {
            engine: self.world.engine().name(),
            benchmark: self.world.benchmark_name(episode.walk.benchmark()).to_owned(),
            start: self.world.profile().spec().starts[episode.walk.start()].name.to_owned(),
            actions: episode.actions.iter().map(|&a| self.action_name(a).to_owned()).collect(),
        })
    }

    /// Comes back to a state that was saved, perhaps by another process.
    pub fn restore(&mut self, state: &EnvState) -> Result<Vec<Step>, EnvError> {
        let refuse = |message: String| Err(EnvError::State(message));
        let engine = self.world.engine().name();
        if state.engine != engine {
            return refuse(format!("it is of {}, this is {engine}", state.engine));
        }
        let Some(start) = self.world.profile().spec().start(&state.start) else {
            return refuse(format!("{:?} is no start of this compiler", state.start));
        };
        let Some(benchmark) = self.world.find(&state.benchmark) else {
            return refuse(format!("{} is not among the benchmarks", state.benchmark));
        };
        let mut actions = Vec::with_capacity(state.actions.len());
        for name in &state.actions {
            match (0..self.actions()).find(|&action| self.action_name(action) == name) {
                Some(action) => actions.push(action),
                None => return refuse(format!("{name} is not among the actions")),
            }
        }
        self.begin(benchmark, start)?;
        self.multistep(&actions)
    }

    fn running(&self) -> Result<&Episode, EnvError> {
        self.episode.as_ref().ok_or(EnvError::NotRunning("no episode has begun"))
    }

    fn running_mut(&mut self) -> Result<&mut Episode, EnvError> {
        self.episode.as_mut().ok_or(EnvError::NotRunning("no episode has begun"))
    }

    /// What is known of the current state.
    pub fn state(&self) -> Result<&State, EnvError> {
        Ok(self.running()?.walk.state())
    }

    /// What is known of the state in which the episode began.
    pub fn start_state(&self) -> Result<&State, EnvError> {
        Ok(&self.running()?.start)
    }

    /// Sizes of the current program.
    pub fn counts(&self) -> Result<Counts, EnvError> {
        Ok(self.state()?.counts)
    }

    /// The compiler's estimate of the current program's work, if it gives one.
    pub fn cost(&self) -> Result<Option<Cost>, EnvError> {
        Ok(self.state()?.cost)
    }

    /// Whether the next thing must be a reset.
    pub fn is_over(&self) -> bool {
        self.episode.as_ref().is_none_or(|episode| episode.over)
    }

    /// The benchmark of this episode.
    pub fn benchmark(&self) -> Result<usize, EnvError> {
        Ok(self.running()?.walk.benchmark())
    }

    /// The actions of this episode.
    pub fn taken(&self) -> Result<&[usize], EnvError> {
        Ok(&self.running()?.actions)
    }

    /// The primary metric at the start and after each action.
    pub fn sizes(&self) -> Result<&[u64], EnvError> {
        Ok(&self.running()?.sizes)
    }

    /// The actions that led to the current state, without those that changed nothing.
    pub fn path(&self) -> Result<Vec<usize>, EnvError> {
        Ok(self.running()?.walk.applied())
    }

    /// The actions that led to the lowest of the primary metric in this episode, without those that changed
    /// nothing.
    pub fn best_path(&self) -> Result<Vec<usize>, EnvError> {
        let episode = self.running()?;
        let lowest = episode.sizes.iter().min();
        let best = episode.sizes.iter().position(|size| Some(size) == lowest).unwrap_or(0);
        let mut applied = episode.walk.applied();
        if let Some(&length) = episode.path_lengths.get(best) {
            let before = episode.walk.path().len() - episode.walk.steps().len();
            applied.truncate(length - before);
        }
        Ok(applied)
    }

    /// Sum of the rewards of this episode.
    pub fn total(&self) -> Result<f64, EnvError> {
        Ok(self.running()?.rewards.iter().sum())
    }

    /// Writes a view of the current state into a slice of the length that [`Env::bounds`] says.
    pub fn write(&self, view: View, out: &mut [f32]) -> Result<(), EnvError> {
        let episode = self.running()?;
        let seen = Seen {
            start: &episode.start,
            state: episode.walk.state(),
            lowest: episode.walk.lowest(),
            taken: &episode.actions,
            applied: &episode.walk.applied(),
            places: self.world.places(),
        };
        view.write(&seen, out);
        Ok(())
    }

    /// The current program as a graph. Brings the program into the compiler if it is not there.
    pub fn graph(&mut self) -> Result<Graph, EnvError> {
        self.running_mut()?.walk.graph()
    }

    /// The current program in one of the compiler's forms.
    pub fn print(&mut self, form: Form) -> Result<Vec<u8>, EnvError> {
        Ok(self.running_mut()?.walk.session()?.print(form)?)
    }

    /// Identity of the current program by content: the same however it was reached.
    pub fn fingerprint(&mut self) -> Result<xla_gym_engine::protocol::Fingerprint, EnvError> {
        Ok(self.running_mut()?.walk.session()?.fingerprint()?)
    }

    /// Ends the compiler process behind this environment, as an outside kill would. For tests.
    pub fn kill_worker(&mut self) {
        if let Some(Ok(session)) = self.episode.as_mut().map(|episode| episode.walk.session()) {
            session.kill_worker();
        }
    }

    /// Whether each action may be of use in the current state; see [`MaskKind`]. All may where
    /// none would be left.
    pub fn write_mask(&mut self, out: &mut [bool]) -> Result<(), EnvError> {
        let world = self.world.clone();
        let kind = self.config.mask;
        let useless = &self.useless;
        let episode = self.episode.as_mut().ok_or(EnvError::NotRunning("no episode has begun"))?;
        let state = episode.walk.state().id;
        if kind == MaskKind::Own {
            useless.write(state, out);
        } else {
            out.fill(true);
            for (useful, &pass) in out.iter_mut().zip(world.actions()) {
                if kind == MaskKind::Exact {
                    *useful = episode.walk.fork_with_program()?.step(pass)?.changed;
                } else if let Some(known) = world.transitions().outcome(state, pass) {
                    *useful = matches!(known, Outcome::Leads(next) if next != state);
                }
            }
        }
        if !out.contains(&true) {
            out.fill(true);
        }
        Ok(())
    }

    /// One line about the current state, for people.
    pub fn describe(&self) -> Result<String, EnvError> {
        let episode = self.running()?;
        let now = episode.walk.state().counts.primary();
        let start = episode.start.counts.primary();
        let metric = self.world.engine().hello().primary();
        let last = match episode.actions.last() {
            Some(&action) => self.action_name(action),
            None => "start",
        };
        Ok(format!(
            "{} step {}/{} {last}: {now} {metric} of {start} ({:+.1}%), return {:.3}",
            self.world.benchmark_name(episode.walk.benchmark()),
            episode.actions.len(),
            self.config.traj_limit,
            (now as f64 / (start as f64).max(1.0) - 1.0) * 100.0,
            episode.rewards.iter().sum::<f64>(),
        ))
    }
}

fn generator(seed: u64, index: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index as u64);
    rng
}

/// What is paid at the end, and what it rests on. A result that the pipeline refuses is worth
/// minus one.
fn pay_at_end(
    world: &World,
    walk: &mut Walk,
    figure: Figure,
) -> Result<(f64, Option<(f64, f64)>), EnvError> {
    if figure.is_time() {
        let spec = world.profile().spec();
        let default = time(world.session(walk.benchmark())?, &spec.usual, figure);
        let result = time(walk.session()?.fork()?, &spec.instead, figure);
        return Ok(match (default, result) {
            (Ok(default), Ok(result)) => ((default / result).ln(), Some((result, default))),
            _ => (-1.0, None),
        });
    }
    let default = world.baseline(walk.benchmark())?.default.get(figure);
    let primary = walk.state().counts.primary();
    let result = world.finish_instead(walk.session()?, primary).ok();
    Ok(match (result.and_then(|figures| figures.get(figure)), default) {
        (Some(result), Some(default)) => (1.0 - result / default.max(1.0), Some((result, default))),
        _ => (-1.0, None),
    })
}

/// Median run time in nanoseconds, or the time to compile.
fn time(
    mut session: xla_gym_engine::Session,
    finish: &Finish,
    figure: Figure,
) -> Result<f64, xla_gym_engine::EngineError> {
    const RUNS: u32 = 9;
    let signature = session.signature()?;
    let mut scratch = session.scratch()?;
    let compiled = scratch.compile(finish)?;
    if figure == Figure::CompileTime {
        return Ok(compiled.nanos.max(1) as f64);
    }
    if let Some(call) = signature.unknown_calls.first() {
        return Err(xla_gym_engine::EngineError::Internal(format!("{call} is not here")));
    }
    scratch.make_inputs(&compiled, &xla_gym_oracle::typical_inputs(&signature, 0))?;
    let (mut nanos, _) = scratch.execute(&compiled, RUNS, false)?;
    nanos.sort_unstable();
    Ok(nanos.get(nanos.len() / 2).copied().unwrap_or(1).max(1) as f64)
}
