//! A training run: gather, learn, look, save, again.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{FlockOperation, flock};
use xla_gym_common::on_all_cores;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::EngineConfig;
use xla_gym_env::{CacheConfig, Env, EnvError, Profile, Walk, World, WorldConfig};
use xla_gym_events::Events;
use xla_gym_proof::{Options, Pipeline, Prover};
use xla_gym_report::results::Progress;

use crate::{
    config::{Config, Environment},
    episode::{Chooser, Episode, EpisodeRequest, Gatherer},
    error::AgentError,
    imitation::{examples, imitate, read_demonstrations},
    learner::{Learner, Widths, learner},
    observer::Observer,
    policy::{Card, Interface, TrainedPolicy},
    tensors::Tensors,
};

/// Files of a run, in its folder.
const CONFIGURATION: &str = "config.toml";
const CHECKPOINT: &str = "checkpoint.safetensors";
const PROGRESS: &str = "progress.jsonl";
/// The policy that did best on held-out programs; the last one, if none were.
pub const POLICY: &str = "policy.safetensors";
/// The policy after the last update.
pub const LAST: &str = "last.safetensors";
const LOCK: &str = "lock";

/// Streams of luck, apart from those of episodes, which are numbered from 0.
const FIRST_WEIGHTS: u64 = u64::MAX;
const IMITATION: u64 = u64::MAX - 1;
const UPDATES: u64 = 1 << 62;
const BENCHMARKS: u64 = 1 << 61;

/// How what comes of a validation is run: on few inputs, since it is run again and again.
const VALIDATION: Options = Options { trials: 1, ..Options::DEFAULT };

/// A ratio that cannot enter a geometric mean counts as this.
pub const LEAST_RATIO: f64 = 0.01;

/// Who watches a run.
pub trait Watch {
    /// What is being done, before the first update.
    fn doing(&mut self, _what: &str) {}
    /// What should be known also when it is over.
    fn warn(&mut self, _what: &str) {}
    /// An update is done.
    fn updated(&mut self, _progress: &Progress, _of: u64) {}
}

impl Watch for () {}

/// How a run is to be run: what does not change its result.
pub struct Setting<'a> {
    /// Where its files are.
    pub folder: &'a Path,
    /// What to know of the compiler.
    pub profile: Arc<dyn Profile>,
    /// How to start it.
    pub engine: EngineConfig,
    /// The command that made it, for the model card.
    pub command: String,
    /// The commit of the software, likewise.
    pub commit: Option<&'a str>,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Set by whoever wants it to end; it can go on later.
    pub stop: &'a AtomicBool,
}

/// What came of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Trained {
    /// The policy to use.
    pub policy: PathBuf,
    /// Steps in the environments.
    pub steps: u64,
    /// Whether it was ended before its time and can go on.
    pub interrupted: bool,
    /// Whether it ended early because it did not get better.
    pub plateau: bool,
    /// The best geometric mean of the order ratio on held-out programs.
    pub validation: Option<f64>,
    /// Seconds in all, over all parts of the run.
    pub seconds: f64,
    /// Of them, in the environments.
    pub environment_seconds: f64,
    /// Of them, in the learner.
    pub learner_seconds: f64,
}

/// Trains, or goes on with what is in the folder.
pub fn train(
    config: &Config,
    setting: &Setting<'_>,
    watch: &mut dyn Watch,
) -> Result<Trained, AgentError> {
    let mut run = Run::open(config, setting, watch)?;
    while !run.is_over() && !setting.stop.load(Ordering::Relaxed) {
        match run.update() {
            Ok(progress) => watch.updated(&progress, config.steps),
            // What the update had gathered is gathered anew next time.
            Err(AgentError::Env(EnvError::Engine(xla_gym_engine::EngineError::Interrupted))) => {
                break;
            }
            Err(error) => return Err(error),
        }
        if run.saved.elapsed().as_secs_f64() > setting.checkpoint_seconds {
            run.save()?;
        }
    }
    run.finish()
}

struct Run<'a> {
    config: &'a Config,
    setting: &'a Setting<'a>,
    gatherer: Gatherer,
    learner: Box<dyn Learner>,
    /// Starts at which episodes begin besides that of the world, with their shares.
    other_starts: Vec<(usize, f64)>,
    training: Vec<usize>,
    validation: Vec<usize>,
    /// Who runs what comes of a validation; nobody, if it is taken at its word.
    prover: Option<Prover>,
    events: Events,
    log: File,
    /// Held as long as the run goes on.
    _lock: File,
    done: Done,
    saved: Instant,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq)]
struct Done {
    updates: u64,
    steps: u64,
    episodes: u64,
    seconds: f64,
    environment_seconds: f64,
    learner_seconds: f64,
    best: Option<f64>,
    /// The last validation, if it was of the policy as it is now.
    latest: Option<f64>,
    /// What has to be exceeded by the gain of the configuration, or the run stands still.
    reference: Option<f64>,
    /// Validations since that was exceeded.
    since: usize,
    plateau: bool,
}

impl<'a> Run<'a> {
    fn open(
        config: &'a Config,
        setting: &'a Setting<'a>,
        watch: &mut dyn Watch,
    ) -> Result<Run<'a>, AgentError> {
        let folder = setting.folder;
        let cannot = |error| AgentError::Write { path: folder.to_owned(), error };
        fs::create_dir_all(folder).map_err(cannot)?;
        let lock = File::create(folder.join(LOCK)).map_err(cannot)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(AgentError::Busy(folder.to_owned()));
        }
        same_configuration(config, folder)?;
        watch.doing("starting the compiler");
        let world = make_world(config, setting.profile.clone(), setting.engine.clone())?;
        let world = Arc::new(world);
        let other_starts = other_starts(&config.environment, &world)?;
        let env = Env::new(&world, config.environment.env())?;
        let observer = Observer::new(&config.observation, &env);
        let widths = Widths {
            policy: observer.policy_width(),
            value: observer.value_width(),
            actions: env.actions(),
        };
        let (training, mut validation) = divide(config, &world)?;
        let prover = config.validation.check.then(|| Prover::new(VALIDATION));
        if let (Some(prover), false) = (&prover, validation.is_empty()) {
            watch.doing("running the held-out programs");
            let all = validation.len();
            let comparable =
                on_all_cores(all, |index| prover.comparable(&world, validation[index]))?;
            let mut comparable = comparable.into_iter();
            validation.retain(|_| comparable.next().unwrap_or_default());
            if validation.len() < all {
                let lost = all - validation.len();
                watch.warn(&format!(
                    "{lost} of {all} held-out programs cannot be compared and are left out"
                ));
            }
        }
        let gatherer = Gatherer {
            config: config.environment.env(),
            world,
            observer,
            mask: config.environment.mask,
        };
        watch.doing("making the networks");
        let learner = learner(config, widths, &mut luck(config.seed, FIRST_WEIGHTS));
        let checkpoint = folder.join(CHECKPOINT);
        let resumes = checkpoint.exists();
        let mut run = Run {
            config,
            setting,
            gatherer,
            learner,
            other_starts,
            training,
            validation,
            prover,
            events: if resumes {
                Events::resume(folder, resume_step(&checkpoint)?).map_err(cannot)?
            } else {
                Events::create(folder).map_err(cannot)?
            },
            log: File::options()
                .create(true)
                .append(true)
                .open(folder.join(PROGRESS))
                .map_err(cannot)?,
            _lock: lock,
            done: Done::default(),
            saved: Instant::now(),
        };
        if resumes {
            run.resume(&checkpoint)?;
        } else {
            run.log.set_len(0).map_err(cannot)?;
            let text = config.to_toml()?.replace('\n', "  \n");
            run.events.text("configuration", 0, &text).map_err(cannot)?;
            run.imitate(watch)?;
            if config.imitation.is_some() {
                watch.doing("trying what was cloned");
                let validation = run.validate()?;
                run.write_down(&run.progress(0.0, 1.0, validation, BTreeMap::new()))?;
            }
            run.save()?;
        }
        Ok(run)
    }

    /// Behaviour cloning of what a search found, if the configuration says so.
    fn imitate(&mut self, watch: &mut dyn Watch) -> Result<(), AgentError> {
        let Some(how) = &self.config.imitation else { return Ok(()) };
        let begin = Instant::now();
        watch.doing("walking along known orders");
        let orders = read_demonstrations(&self.config.folder.join(&how.orders))?;
        let others: Vec<usize> = self.other_starts.iter().map(|(start, _)| *start).collect();
        let examples = examples(&self.gatherer, &self.training, &others, &orders)?;
        if examples.actions.is_empty() {
            watch.warn(&format!(
                "{} has no order for these programs: learning by trial alone; `xla-gym teach` finds \
                 orders for them and learns those",
                how.orders.display()
            ));
            return Ok(());
        }
        let mut luck = luck(self.config.seed, IMITATION);
        let policy = self.learner.policy_mut();
        let finished = imitate(policy, &examples, how, &mut luck, &mut |epoch, right| {
            watch.doing(&format!(
                "behaviour cloning of {} steps, epoch {epoch} of {}: {:.0}% right",
                examples.actions.len(),
                how.epochs,
                100.0 * right
            ));
            !self.setting.stop.load(Ordering::Relaxed)
        });
        // A second time it would come to the same, and it takes minutes at most.
        if !finished {
            return Err(AgentError::Interrupted);
        }
        self.done.seconds += begin.elapsed().as_secs_f64();
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done.steps >= self.config.steps || self.done.plateau
    }

    /// One update: gathers episodes, learns from them, writes down what came of it.
    fn update(&mut self) -> Result<Progress, AgentError> {
        let begin = Instant::now();
        let share = self.done.steps as f64 / self.config.steps.max(1) as f64;
        let requests = self.requests(share);
        let episodes = self.gatherer.gather(&requests, self.learner.chooser(share))?;
        let gathered = begin.elapsed().as_secs_f64();
        let steps: u64 = episodes.iter().map(|episode| episode.len() as u64).sum();
        let count = episodes.len().max(1) as f64;
        let total = |episode: &Episode| episode.rewards.iter().map(|r| f64::from(*r)).sum::<f64>();
        let episode_return = episodes.iter().map(total).sum::<f64>() / count;
        let ratio = self.ratio(&episodes, &[]);
        let learning = Instant::now();
        let mut luck = luck(self.config.seed, UPDATES + self.done.updates);
        let mut figures = self.learner.learn(episodes, &mut luck);
        let learnt = learning.elapsed().as_secs_f64();
        if !self.learner.policy().parameters().iter().all(|parameter| parameter.is_finite()) {
            return Err(AgentError::Diverged { update: self.done.updates + 1 });
        }
        self.done.updates += 1;
        self.done.latest = None;
        self.done.steps += steps;
        self.done.episodes += requests.len() as u64;
        let over = self.done.steps >= self.config.steps;
        let due = self.done.updates.is_multiple_of(self.config.validation.updates) || over;
        let validation = if due { self.validate()? } else { None };
        self.done.seconds += begin.elapsed().as_secs_f64();
        self.done.environment_seconds += gathered;
        self.done.learner_seconds += learnt;
        figures.retain(|_, figure| figure.is_finite());
        let progress = self.progress(episode_return, ratio, validation, figures);
        self.write_down(&progress)?;
        Ok(progress)
    }

    fn progress(
        &self,
        episode_return: f64,
        ratio: f64,
        validation: Option<f64>,
        figures: BTreeMap<String, f64>,
    ) -> Progress {
        Progress {
            run: self.setting.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            algorithm: self.config.name.clone(),
            seed: self.config.seed,
            step: self.done.steps,
            seconds: self.done.seconds,
            environment_seconds: self.done.environment_seconds,
            learner_seconds: self.done.learner_seconds,
            episode_return,
            ratio,
            validation,
            figures,
        }
    }

    /// Which episodes to gather next. Depends on the seed and the number of the update alone.
    fn requests(&self, share: f64) -> Vec<EpisodeRequest> {
        let mut luck = luck(self.config.seed, BENCHMARKS + self.done.updates);
        let curriculum = self.config.environment.curriculum;
        let open = if curriculum > 0.0 { 0.2 + 0.8 * (share / curriculum) } else { 1.0 };
        let open = (self.training.len() as f64 * open.min(1.0)).ceil() as usize;
        let open = open.clamp(1, self.training.len());
        let mut requests: Vec<EpisodeRequest> = Vec::with_capacity(self.learner.episodes());
        while requests.len() < self.learner.episodes() {
            let benchmark = self.training[luck.random_range(0..open)];
            let start = self.draw_start(&mut luck);
            for _ in 0..self.learner.rivals() {
                let stream = self.done.episodes + requests.len() as u64;
                let seed = self.config.seed;
                requests.push(EpisodeRequest { benchmark, start, seed, stream });
            }
        }
        requests.truncate(self.learner.episodes());
        // The largest first, so that all cores are busy to the end. They stand at the end of the list.
        let size = |benchmark: usize| self.training.iter().position(|other| *other == benchmark);
        requests.sort_by_key(|request| std::cmp::Reverse(size(request.benchmark)));
        requests
    }

    /// Where an episode begins. Luck is drawn at least once, also where there is no choice: so that
    /// runs are the same as before there could be several.
    fn draw_start(&self, luck: &mut ChaCha8Rng) -> usize {
        if self.other_starts.is_empty() {
            luck.random_bool(0.0);
        }
        let mut left = 1.0;
        for (start, share) in &self.other_starts {
            if luck.random_bool((share / left).min(1.0)) {
                return *start;
            }
            left -= share;
        }
        self.gatherer.world.start()
    }

    /// Geometric mean of the order ratio over episodes; 1 where the compiler has no order of its own.
    /// Those whose numbers are in `wrong` have gained nothing.
    fn ratio(&self, episodes: &[Episode], wrong: &[usize]) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        let world = &self.gatherer.world;
        for (number, episode) in episodes.iter().enumerate() {
            let Ok(baseline) = world.baseline(episode.benchmark) else { continue };
            let figure = world.profile().spec().starts[episode.start].counts_as;
            let (initial, default) = (baseline.initial.get(figure), baseline.default.get(figure));
            let (Some(initial), Some(default)) = (initial, default) else { continue };
            if initial > default {
                let gain = match wrong.contains(&number) {
                    true => 0.0,
                    false => initial - episode.lowest() as f64,
                };
                sum += (gain / (initial - default)).max(LEAST_RATIO).ln();
                count += 1.0;
            }
        }
        if count > 0.0 { f64::exp(sum / count) } else { 1.0 }
    }

    /// Episodes whose best states do not compute what they should, by their numbers. States that were
    /// met by an earlier policy are not run again.
    fn wrong(&self, episodes: &[Episode]) -> Result<Vec<usize>, AgentError> {
        let Some(prover) = &self.prover else { return Ok(Vec::new()) };
        let world = &self.gatherer.world;
        let count = on_all_cores(episodes.len(), |index| {
            let episode = &episodes[index];
            let pipeline = Pipeline::from_start(world.profile().spec(), episode.start);
            let mut walk = Walk::begin_at(world, episode.benchmark, episode.start)?;
            for action in &episode.best_path {
                walk.step(world.actions()[*action])?;
            }
            Ok::<bool, EnvError>(prover.prove(&mut walk, pipeline)?.outputs.count())
        })?;
        Ok((0..episodes.len()).filter(|number| !count[*number]).collect())
    }

    /// Tries the policy on held-out programs, and keeps it if it is the best so far.
    fn validate(&mut self) -> Result<Option<f64>, AgentError> {
        if self.validation.is_empty() {
            return Ok(None);
        }
        // All starts count alike that are learnt.
        let others = self.other_starts.iter().map(|(start, _)| *start);
        let elsewhere: f64 = self.other_starts.iter().map(|(_, share)| share).sum();
        let starts = Some(self.gatherer.world.start()).filter(|_| elsewhere < 1.0);
        let mut requests = Vec::new();
        for start in starts.into_iter().chain(others) {
            let request = |benchmark| EpisodeRequest { benchmark, start, seed: 0, stream: 0 };
            requests.extend(self.validation.iter().copied().map(request));
        }
        let episodes = self.gatherer.gather(&requests, Chooser::Greedy(self.learner.policy()))?;
        let ratio = self.ratio(&episodes, &self.wrong(&episodes)?);
        let gain = self.config.plateau.as_ref().map_or(0.0, |plateau| plateau.gain);
        if self.done.reference.is_none_or(|reference| ratio > reference + gain) {
            (self.done.reference, self.done.since) = (Some(ratio), 0);
        } else {
            self.done.since += 1;
        }
        self.done.latest = Some(ratio);
        if self.done.best.is_none_or(|best| ratio > best) {
            self.done.best = Some(ratio);
            self.policy(Some(ratio)).write(&self.setting.folder.join(POLICY))?;
        }
        self.done.plateau =
            self.config.plateau.as_ref().is_some_and(|p| self.done.since >= p.validations);
        Ok(Some(ratio))
    }

    fn write_down(&mut self, progress: &Progress) -> Result<(), AgentError> {
        let folder = self.setting.folder;
        let step = progress.step;
        let mut write = || -> std::io::Result<()> {
            let line = serde_json::to_string(progress)? + "\n";
            self.log.write_all(line.as_bytes())?;
            let mut scalar = |tag: &str, value: f64| self.events.scalar(tag, step, value);
            scalar("episode/return", progress.episode_return)?;
            scalar("episode/order-ratio", progress.ratio)?;
            if let Some(ratio) = progress.validation {
                scalar("validation/order-ratio", ratio)?;
            }
            for (name, value) in &progress.figures {
                scalar(&format!("learner/{name}"), *value)?;
            }
            scalar("time/steps-per-second", step as f64 / progress.seconds.max(1e-9))?;
            scalar("time/environment", progress.environment_seconds)?;
            scalar("time/learner", progress.learner_seconds)?;
            self.events.flush()
        };
        write().map_err(|error| AgentError::Write { path: folder.to_owned(), error })
    }

    /// The policy as it is now, with its card.
    fn policy(&self, validation: Option<f64>) -> TrainedPolicy {
        let world = &self.gatherer.world;
        let hello = world.engine().hello();
        let actions = 0..world.actions().len();
        TrainedPolicy {
            network: self.learner.policy().clone(),
            interface: Interface {
                engine: hello.engine.clone(),
                views: self.config.observation.policy.clone(),
                opcodes: hello.opcodes.clone(),
                costs: hello.costs.iter().map(|cost| cost.name.clone()).collect(),
                passes: actions.map(|action| world.action_name(action).to_owned()).collect(),
                traj_limit: self.config.environment.traj_limit,
                start: world.start_name().to_owned(),
            },
            card: Card {
                name: self.setting.folder.file_name().unwrap_or_default().to_string_lossy().into(),
                algorithm: self.config.algorithm.name().to_owned(),
                engine: world.engine().name(),
                benchmarks: self.config.benchmarks.clone(),
                programs: self.training.len(),
                seed: self.config.seed,
                steps: self.done.steps,
                seconds: self.done.seconds,
                validation,
                commit: self.setting.commit.map(str::to_owned),
                command: self.setting.command.clone(),
                configuration: self.config.to_toml().unwrap_or_default(),
                members: Vec::new(),
            },
        }
    }

    /// Saves everything that is needed to go on from here.
    fn save(&mut self) -> Result<(), AgentError> {
        let mut tensors = Tensors::default();
        self.learner.save(&mut tensors);
        tensors.words.extend(self.done.words());
        tensors.write(&self.setting.folder.join(CHECKPOINT))?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Goes on from a checkpoint. What was written down after it is written anew.
    fn resume(&mut self, path: &Path) -> Result<(), AgentError> {
        let wrong = |message| AgentError::Format { path: path.to_owned(), message };
        let tensors = Tensors::read(path)?;
        self.learner.load(&tensors).map_err(wrong)?;
        self.done = Done::from_words(&tensors).map_err(wrong)?;
        let folder = self.setting.folder;
        let log = folder.join(PROGRESS);
        let cannot = |error| AgentError::Write { path: log.clone(), error };
        let text = fs::read_to_string(&log).map_err(cannot)?;
        let kept: String = text
            .split_inclusive('\n')
            .take_while(|line| {
                let progress = serde_json::from_str::<Progress>(line);
                line.ends_with('\n')
                    && progress.is_ok_and(|progress| progress.step <= self.done.steps)
            })
            .collect();
        self.log.set_len(kept.len() as u64).map_err(cannot)?;
        Ok(())
    }

    fn finish(mut self) -> Result<Trained, AgentError> {
        self.save()?;
        let last = self.policy(self.done.latest);
        let folder = self.setting.folder;
        last.write(&folder.join(LAST))?;
        let policy = folder.join(POLICY);
        if self.done.best.is_none() {
            last.write(&policy)?;
        }
        Ok(Trained {
            policy,
            steps: self.done.steps,
            interrupted: !self.is_over(),
            plateau: self.done.plateau,
            validation: self.done.best,
            seconds: self.done.seconds,
            environment_seconds: self.done.environment_seconds,
            learner_seconds: self.done.learner_seconds,
        })
    }
}

impl Done {
    fn words(&self) -> BTreeMap<String, String> {
        let mut words = BTreeMap::from([
            ("run.updates".to_owned(), self.updates.to_string()),
            ("run.steps".to_owned(), self.steps.to_string()),
            ("run.episodes".to_owned(), self.episodes.to_string()),
            ("run.seconds".to_owned(), self.seconds.to_string()),
            ("run.environment-seconds".to_owned(), self.environment_seconds.to_string()),
            ("run.learner-seconds".to_owned(), self.learner_seconds.to_string()),
            ("run.since".to_owned(), self.since.to_string()),
            ("run.plateau".to_owned(), self.plateau.to_string()),
        ]);
        for (name, figure) in [
            ("run.best", self.best),
            ("run.latest", self.latest),
            ("run.reference", self.reference),
        ] {
            words.extend(figure.map(|figure| (name.to_owned(), figure.to_string())));
        }
        words
    }

    fn from_words(tensors: &Tensors) -> Result<Done, String> {
        let float = |name: &str| {
            let word = tensors.words.get(name).ok_or_else(|| format!("{name} is missing"))?;
            word.parse::<f64>().map_err(|_| format!("{name} is not a number: {word:?}"))
        };
        Ok(Done {
            updates: tensors.number("run.updates")?,
            steps: tensors.number("run.steps")?,
            episodes: tensors.number("run.episodes")?,
            seconds: float("run.seconds")?,
            environment_seconds: float("run.environment-seconds")?,
            learner_seconds: float("run.learner-seconds")?,
            best: float("run.best").ok(),
            latest: float("run.latest").ok(),
            reference: float("run.reference").ok(),
            since: tensors.number("run.since")? as usize,
            plateau: tensors.words.get("run.plateau").is_some_and(|word| word == "true"),
        })
    }
}

/// How far the run is that a checkpoint is of.
fn resume_step(path: &Path) -> Result<u64, AgentError> {
    let wrong = |message| AgentError::Format { path: path.to_owned(), message };
    Tensors::read(path)?.number("run.steps").map_err(wrong)
}

fn luck(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A run goes on only with the configuration with which it began. One that never came to its first
/// checkpoint has not begun.
fn same_configuration(config: &Config, folder: &Path) -> Result<(), AgentError> {
    let path = folder.join(CONFIGURATION);
    let text = config.to_toml()?;
    let begun = folder.join(CHECKPOINT).exists();
    match fs::read_to_string(&path) {
        Ok(before) if before == text => Ok(()),
        // Written by an earlier version, in other words.
        Ok(before)
            if Config::parse(&before, &[])
                .is_ok_and(|before| before.to_toml().ok() == Some(text.clone())) =>
        {
            Ok(())
        }
        Ok(_) if begun => Err(AgentError::Config(format!(
            "{} was begun with another configuration (see {CONFIGURATION} there); choose another \
             folder, or remove it",
            folder.display()
        ))),
        _ => fs::write(&path, text).map_err(|error| AgentError::Write { path, error }),
    }
}

/// The world in which a configuration trains.
pub fn make_world(
    config: &Config,
    profile: Arc<dyn Profile>,
    engine: EngineConfig,
) -> Result<World, AgentError> {
    let mut found = Benchmarks::find(&config.benchmarks).map_err(EnvError::from)?;
    // One that is named twice must not be both trained on and held out.
    let mut seen = HashSet::new();
    found.programs.retain(|program| seen.insert(program.name()));
    found.programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= config.largest,
        _ => true,
    });
    if found.programs.is_empty() && !seen.is_empty() {
        let largest = config.largest;
        let message = format!("largest = {largest}: all {} programs are larger", seen.len());
        return Err(AgentError::Config(message));
    }
    let usual = profile.spec().starts[0].name;
    let world = WorldConfig {
        profile,
        // What other runs met must not change this one.
        engine: EngineConfig { quarantine: None, ..engine },
        start: config.environment.start.clone().unwrap_or_else(|| usual.to_owned()),
        passes: config.environment.passes.clone(),
        cache: CacheConfig { disk: config.environment.cache.clone(), ..CacheConfig::default() },
    };
    Ok(World::with_programs(world, found)?)
}

/// Starts at which episodes begin besides that of the world, with their shares.
fn other_starts(environment: &Environment, world: &World) -> Result<Vec<(usize, f64)>, AgentError> {
    let spec = world.profile().spec();
    let find = |(name, share): (&String, &f64)| {
        let refuse = |why: String| {
            AgentError::Config(format!("environment.other-starts: {name:?} is {why}"))
        };
        let names = || format!("no start of {}: {}", spec.engine, spec.start_names().join(", "));
        let start = spec.start(name).ok_or_else(|| refuse(names()))?;
        if start == world.start() {
            return Err(refuse("where all others begin anyway".to_owned()));
        }
        Ok((start, *share))
    };
    let shares = environment.other_starts.iter().filter(|(_, share)| **share > 0.0);
    shares.map(find).collect()
}

/// Programs to train on, by size, and held-out programs.
fn divide(config: &Config, world: &World) -> Result<(Vec<usize>, Vec<usize>), AgentError> {
    let mut programs = (0..world.len())
        .map(|benchmark| Ok((world.size(benchmark)?, benchmark)))
        .collect::<Result<Vec<_>, EnvError>>()?;
    programs.sort();
    let programs: Vec<usize> = programs.into_iter().map(|(_, benchmark)| benchmark).collect();
    let every = config.validation.every;
    if every == 0 || programs.len() < 2 {
        return Ok((programs, Vec::new()));
    }
    let kept = |position: usize| position % every == every / 2;
    let mut apart: Vec<usize> =
        programs.iter().enumerate().filter(|(p, _)| kept(*p)).map(|(_, b)| *b).collect();
    // If there are too many, the ones that are taken are of all sizes.
    let most = config.validation.most.max(1);
    if apart.len() > most {
        apart = (0..most).map(|index| apart[index * apart.len() / most]).collect();
    }
    let training: Vec<usize> =
        programs.into_iter().filter(|benchmark| !apart.contains(benchmark)).collect();
    if training.is_empty() {
        let message = "validation.every: no program is left to train on";
        return Err(AgentError::Config(message.to_owned()));
    }
    Ok((training, apart))
}
