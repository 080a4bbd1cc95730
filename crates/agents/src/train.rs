//! A training run: gather, learn, look, save, again.

mod checkpoint;
mod programs;
mod validation;
mod written;

pub use programs::make_world;
pub use validation::LEAST_RATIO;

use std::{
    collections::BTreeMap,
    fs::{self, File},
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
use xla_gym_engine::EngineConfig;
use xla_gym_env::{Env, EnvError, Profile};
use xla_gym_events::Events;
use xla_gym_proof::Prover;
use xla_gym_records::Progress;

use self::{
    checkpoint::{Done, resume_step, same_configuration},
    programs::{divide, other_starts},
    validation::prover,
};
use crate::{
    config::Config,
    episode::{Episode, EpisodeRequest, Gatherer},
    error::AgentError,
    imitation::{examples, imitate, read_demonstrations},
    learner::{Learner, Widths, learner},
    observer::Observer,
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
        let prover = match config.validation.check {
            true => Some(prover(&world, &mut validation, watch)?),
            false => None,
        };
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

fn luck(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}
