//! Episodes: how they are gathered, on all cores.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_common::on_all_cores;
use xla_gym_env::{Env, EnvConfig, EnvError, World};
use xla_gym_nn::{Mlp, Space};

use crate::{choice, observer::Observer};

/// What happened in one episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// Which benchmark.
    pub benchmark: usize,
    /// Where it began: a position among the starts of the compiler's profile.
    pub start: usize,
    /// What was seen before each action and at the end, in rows of the value function's width.
    pub seen: Vec<f32>,
    /// For each action, which ones were allowed; and at the end.
    pub masks: Vec<bool>,
    /// What was done.
    pub actions: Vec<usize>,
    /// Logarithm of the probability with which it was done.
    pub log_probabilities: Vec<f32>,
    /// What was paid for it.
    pub rewards: Vec<f32>,
    /// Whether it ended by itself, not by the limit of steps.
    pub terminated: bool,
    /// The primary metric at the start and after each action.
    pub sizes: Vec<u64>,
    /// The actions up to the best state, without those that did nothing.
    pub best_path: Vec<usize>,
    /// The actions up to the end, likewise.
    pub path: Vec<usize>,
}

impl Episode {
    /// How many actions.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The primary metric at the start.
    pub fn initial(&self) -> u64 {
        self.sizes.first().copied().unwrap_or_default()
    }

    /// The lowest on the way.
    pub fn lowest(&self) -> u64 {
        self.sizes.iter().copied().min().unwrap_or_default()
    }

    /// What it is at the end.
    pub fn last(&self) -> u64 {
        self.sizes.last().copied().unwrap_or_default()
    }
}

/// How actions are chosen.
#[derive(Clone, Copy, Debug)]
pub enum Chooser<'a> {
    /// As often as the policy says.
    Sampled(&'a Mlp),
    /// What the policy, or the value of actions, puts first.
    Greedy(&'a Mlp),
    /// The same, but now and then anything.
    Curious(&'a Mlp, f64),
    /// Anything.
    Random,
}

/// One episode to gather.
#[derive(Clone, Copy, Debug)]
pub struct EpisodeRequest {
    /// On which benchmark.
    pub benchmark: usize,
    /// Where to begin: a position among the starts of the compiler's profile.
    pub start: usize,
    /// Seed of its luck.
    pub seed: u64,
    /// Stream of its luck: no two episodes of a run share one.
    pub stream: u64,
}

/// Gathers episodes, as many at a time as there are cores. What each one does depends on its request
/// and on the network alone, not on how many cores there are. Passes that do not keep what programs
/// compute ([`World::keeps_results`]) are never chosen.
pub struct Gatherer {
    /// Where.
    pub world: Arc<World>,
    /// How environments behave.
    pub config: EnvConfig,
    /// What is seen.
    pub observer: Observer,
    /// Whether passes that were just seen to do nothing are forbidden.
    pub mask: bool,
}

impl Gatherer {
    /// Gathers episodes; the results in order.
    pub fn gather(
        &self,
        requests: &[EpisodeRequest],
        chooser: Chooser<'_>,
    ) -> Result<Vec<Episode>, EnvError> {
        on_all_cores(requests.len(), |index| self.play(requests[index], chooser))
    }

    /// Plays one episode.
    pub fn play(&self, request: EpisodeRequest, chooser: Chooser<'_>) -> Result<Episode, EnvError> {
        let EpisodeRequest { benchmark, start, seed, stream } = request;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let mut env = Env::new(&self.world, self.config.clone())?;
        env.reset_to_start(benchmark, start, Some(0))?;
        let (actions, width) = (env.actions(), self.observer.value_width());
        let mut episode = Episode { benchmark, start, ..Episode::default() };
        let mut space = Space::default();
        let mut logs = vec![0.0; actions];
        loop {
            let row = episode.seen.len();
            episode.seen.resize(row + width, 0.0);
            self.observer.write(&env, &mut episode.seen[row..])?;
            let masked = episode.masks.len();
            episode.masks.resize(masked + actions, true);
            if self.mask {
                env.write_mask(&mut episode.masks[masked..])?;
            }
            self.forbid_lossy(&mut episode.masks[masked..])?;
            if env.is_over() {
                break;
            }
            let seen = &episode.seen[row..row + self.observer.policy_width()];
            let mask = &episode.masks[masked..];
            let (action, log) = choose(chooser, seen, mask, &mut space, &mut logs, &mut rng);
            let step = env.step(action)?;
            episode.actions.push(action);
            episode.log_probabilities.push(log);
            episode.rewards.push(step.reward as f32);
            episode.terminated = step.terminated;
        }
        episode.sizes = env.sizes()?.to_vec();
        episode.best_path = env.best_path()?;
        episode.path = env.path()?;
        Ok(episode)
    }

    /// Nobody takes a pass that does not keep what programs compute, also where a policy was trained
    /// with one and still has a place for it.
    fn forbid_lossy(&self, mask: &mut [bool]) -> Result<(), EnvError> {
        let keeps = |action: usize| self.world.keeps_results(action);
        mask.iter_mut().enumerate().for_each(|(action, allowed)| *allowed &= keeps(action));
        if !mask.contains(&true) {
            // All others are known to do nothing here, and one of them must do.
            mask.iter_mut().enumerate().for_each(|(action, allowed)| *allowed = keeps(action));
        }
        if mask.contains(&true) {
            return Ok(());
        }
        let why =
            "no pass is left to choose: all of them lose precision or are wrong on some programs";
        Err(EnvError::Config(why.to_owned()))
    }
}

fn choose(
    chooser: Chooser<'_>,
    seen: &[f32],
    mask: &[bool],
    space: &mut Space,
    logs: &mut [f32],
    rng: &mut ChaCha8Rng,
) -> (usize, f32) {
    match chooser {
        Chooser::Sampled(network) => {
            choice::log_probabilities(network.infer(seen, space), mask, logs);
            let action = choice::sample(logs, rng);
            (action, logs[action])
        }
        Chooser::Greedy(network) => (choice::best(network.infer(seen, space), mask), 0.0),
        Chooser::Curious(network, share) => {
            if rng.random_bool(share.clamp(0.0, 1.0)) {
                (choice::any(mask, rng), 0.0)
            } else {
                (choice::best(network.infer(seen, space), mask), 0.0)
            }
        }
        Chooser::Random => (choice::any(mask, rng), 0.0),
    }
}
