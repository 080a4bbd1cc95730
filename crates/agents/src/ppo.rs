//! Proximal policy optimisation: several passes over the same experience, as long as the policy
//! stays close to the one that gathered it.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_nn::{Matrix, Mlp};

use crate::{
    actor_critic::{ActorCritic, Discounting, Experience, Push, by_logits},
    advantage::normalise,
    choice,
    config::Network,
    episode::{Chooser, Episode},
    learner::{Figures, Learner, Widths},
    tensors::Tensors,
};

/// How PPO learns. The defaults are the paper's, and where it is silent Stable-Baselines3's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PpoConfig {
    /// Episodes before each update.
    pub episodes: usize,
    /// How many of them are on the same program. If more than one, the advantages of those are
    /// shifted and scaled to mean 0 and deviation 1 among each other: a walk is compared with other
    /// walks on its program, and no program counts for more than another.
    pub rivals: usize,
    /// Rows of experience in each step of the optimiser.
    pub batch: usize,
    /// Passes over the experience in each update.
    pub epochs: usize,
    /// Step of the optimiser.
    pub learning_rate: f64,
    /// By how much probabilities may change before a row stops pushing; infinite for no limit.
    pub clip: f32,
    /// What indecision is worth.
    pub entropy: f32,
    /// How much the value function's error counts.
    pub value_share: f32,
    /// The gradient's largest norm.
    pub largest_gradient: f32,
    /// Whether advantages of a batch are shifted and scaled to mean 0 and deviation 1.
    pub normalise: bool,
    /// An update ends when the policy has moved by 1.5 times this divergence.
    pub target_divergence: Option<f64>,
    /// How episodes are turned into advantages.
    pub discounting: Discounting,
}

impl Default for PpoConfig {
    fn default() -> PpoConfig {
        PpoConfig {
            episodes: 32,
            rivals: 1,
            batch: 256,
            epochs: 10,
            learning_rate: 3e-4,
            clip: 0.2,
            entropy: 0.0,
            value_share: 0.5,
            largest_gradient: 0.5,
            normalise: true,
            target_divergence: None,
            discounting: Discounting::default(),
        }
    }
}

impl PpoConfig {
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in [
            ("episodes", self.episodes),
            ("rivals", self.rivals),
            ("batch", self.batch),
            ("epochs", self.epochs),
        ] {
            if value == 0 {
                return Err(format!("{name}: must be at least 1"));
            }
        }
        if self.clip.is_nan() || self.clip <= 0.0 {
            return Err("clip: must be greater than 0".to_owned());
        }
        self.discounting.check()
    }
}

/// PPO at work.
pub struct Ppo {
    config: PpoConfig,
    networks: ActorCritic,
}

impl Ppo {
    /// Begins with networks by chance.
    pub fn new(config: PpoConfig, network: &Network, widths: Widths, luck: &mut ChaCha8Rng) -> Ppo {
        let networks = ActorCritic::new(network, widths, config.learning_rate, luck);
        Ppo { config, networks }
    }

    /// One step of the optimiser on some rows.
    fn step(&mut self, experience: &Experience, rows: &[usize], sums: &mut Sums) {
        let config = &self.config;
        let logs = self.networks.consider(experience, rows);
        let mut advantages: Vec<f32> = rows.iter().map(|r| experience.advantages[*r]).collect();
        if config.normalise {
            normalise(&mut advantages);
        }
        let mut gradient = Matrix::zeros(rows.len(), logs.columns());
        let share = 1.0 / rows.len() as f32;
        for (index, (row, advantage)) in rows.iter().zip(advantages).enumerate() {
            let logs = logs.row(index);
            let action = experience.actions[*row];
            let moved = logs[action] - experience.log_probabilities[*row];
            let ratio = moved.exp();
            let clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip);
            let pushes = ratio * advantage <= clipped * advantage;
            // The derivative of the ratio by the logits is the ratio times that of the logarithm.
            let weight = if pushes { ratio * advantage } else { 0.0 };
            let entropy_share = config.entropy * share;
            by_logits(logs, action, weight * share, entropy_share, gradient.row_mut(index));
            sums.policy_loss -= f64::from((ratio * advantage).min(clipped * advantage) * share);
            sums.entropy += f64::from(choice::entropy(logs) * share);
            sums.divergence += f64::from((ratio - 1.0 - moved) * share);
            sums.clipped += if pushes { 0.0 } else { f64::from(share) };
        }
        let push = self.push();
        let pushed = self.networks.push(experience, rows, &gradient, push);
        sums.value_loss += pushed.value_loss;
        sums.gradient += pushed.gradient;
        sums.steps += 1.0;
    }

    fn push(&self) -> Push {
        let PpoConfig { value_share, largest_gradient, .. } = self.config;
        Push { value_share, largest_gradient }
    }
}

/// Shifts and scales the advantages of all episodes on a program to mean 0 and deviation 1.
fn compare_rivals(episodes: &[Episode], advantages: &mut [f32]) {
    let mut programs: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut begin = 0;
    for episode in episodes {
        let rows = programs.entry((episode.benchmark, episode.start)).or_default();
        rows.extend(begin..begin + episode.len());
        begin += episode.len();
    }
    for rows in programs.values() {
        let mut compared: Vec<f32> = rows.iter().map(|row| advantages[*row]).collect();
        normalise(&mut compared);
        for (row, advantage) in rows.iter().zip(compared) {
            advantages[*row] = advantage;
        }
    }
}

/// Sums over the steps of an update.
#[derive(Default)]
struct Sums {
    steps: f64,
    policy_loss: f64,
    value_loss: f64,
    entropy: f64,
    divergence: f64,
    clipped: f64,
    gradient: f64,
}

impl Learner for Ppo {
    fn episodes(&self) -> usize {
        self.config.episodes
    }

    fn rivals(&self) -> usize {
        self.config.rivals
    }

    fn chooser(&self, _: f64) -> Chooser<'_> {
        Chooser::Sampled(&self.networks.actor)
    }

    fn learn(&mut self, episodes: Vec<Episode>, luck: &mut ChaCha8Rng) -> Figures {
        let mut experience = self.networks.experience(&episodes, self.config.discounting);
        if self.config.rivals > 1 {
            compare_rivals(&episodes, &mut experience.advantages);
        }
        let mut rows: Vec<usize> = (0..experience.len()).collect();
        let mut sums = Sums::default();
        'update: for _ in 0..self.config.epochs {
            rows.shuffle(luck);
            for batch in rows.chunks(self.config.batch) {
                let before = (sums.divergence, sums.steps);
                self.step(&experience, batch, &mut sums);
                let now = (sums.divergence - before.0) / (sums.steps - before.1);
                if self.config.target_divergence.is_some_and(|most| now > 1.5 * most) {
                    break 'update;
                }
            }
        }
        let mean = |sum: f64| sum / sums.steps.max(1.0);
        Figures::from([
            ("policy-loss".to_owned(), mean(sums.policy_loss)),
            ("value-loss".to_owned(), mean(sums.value_loss)),
            ("entropy".to_owned(), mean(sums.entropy)),
            ("divergence".to_owned(), mean(sums.divergence)),
            ("clipped".to_owned(), mean(sums.clipped)),
            ("gradient".to_owned(), mean(sums.gradient)),
            ("explained-variance".to_owned(), experience.explained_variance()),
        ])
    }

    fn policy(&self) -> &Mlp {
        &self.networks.actor
    }

    fn policy_mut(&mut self) -> &mut Mlp {
        &mut self.networks.actor
    }

    fn save(&self, tensors: &mut Tensors) {
        self.networks.save(tensors);
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), String> {
        self.networks.load(tensors)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use xla_gym_nn::Activation;

    use super::*;
    use crate::{
        a2c::{A2c, A2cConfig},
        testing::episodes,
    };

    const WIDTHS: Widths = Widths { policy: 5, value: 6, actions: 4 };

    fn network() -> Network {
        Network { hidden: vec![9, 7], activation: Activation::Tanh }
    }

    /// Episodes whose probabilities are those of a policy, as when it gathered them itself.
    fn gathered(policy: &Mlp, seed: u64) -> Vec<Episode> {
        let mut episodes = episodes(WIDTHS, 8, seed);
        for episode in &mut episodes {
            for step in 0..episode.len() {
                let seen = &episode.seen[step * WIDTHS.value..][..WIDTHS.policy];
                let mask = &episode.masks[step * WIDTHS.actions..][..WIDTHS.actions];
                let mut logs = [0.0; WIDTHS.actions];
                let logits = policy.forward(&Matrix::from_vec(1, WIDTHS.policy, seen.to_vec()));
                choice::log_probabilities(logits.row(0), mask, &mut logs);
                episode.log_probabilities[step] = logs[episode.actions[step]];
            }
        }
        episodes
    }

    #[test]
    fn with_one_pass_and_no_clipping_it_is_a2c() {
        let luck = || ChaCha8Rng::seed_from_u64(5);
        let config = PpoConfig {
            epochs: 1,
            batch: usize::MAX,
            clip: f32::INFINITY,
            normalise: false,
            entropy: 0.01,
            ..PpoConfig::default()
        };
        let mut ppo = Ppo::new(config, &network(), WIDTHS, &mut luck());
        let config = A2cConfig { entropy: 0.01, ..A2cConfig::default() };
        let mut a2c = A2c::new(config, &network(), WIDTHS, &mut luck());
        let first = ppo.policy().clone();
        for round in 0..5 {
            let episodes = gathered(ppo.policy(), round);
            ppo.learn(episodes.clone(), &mut luck());
            a2c.learn(episodes, &mut luck());
            let pairs = ppo.policy().parameters().iter().zip(a2c.policy().parameters());
            let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(furthest < 1e-6, "{furthest}");
        }
        let moved = ppo.policy().parameters().iter().zip(first.parameters());
        assert!(moved.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) > 1e-4);
    }

    #[test]
    fn rivals_are_compared_with_one_another() {
        let on =
            |benchmark, steps| Episode { benchmark, actions: vec![0; steps], ..Episode::default() };
        // Two walks on a program that pays well and two on one that pays badly.
        let episodes = [on(7, 2), on(3, 1), on(7, 1), on(3, 2)];
        let mut advantages = [101.0, 102.0, 0.1, 103.0, 0.2, 0.3];
        compare_rivals(&episodes, &mut advantages);
        for (advantage, expected) in advantages.iter().zip([-1.0, 0.0, -1.0, 1.0, 0.0, 1.0]) {
            assert!((advantage - expected).abs() < 1e-4, "{advantages:?}");
        }
    }

    #[test]
    fn rows_that_moved_far_enough_stop_pushing() {
        let mut luck = ChaCha8Rng::seed_from_u64(5);
        let config = PpoConfig { epochs: 200, ..PpoConfig::default() };
        let mut ppo = Ppo::new(config, &network(), WIDTHS, &mut luck);
        let before = ppo.policy().clone();
        let episodes = gathered(&before, 1);
        let figures = ppo.learn(episodes.clone(), &mut luck);
        assert!(figures["clipped"] > 0.0);
        // However often it looks, the policy stays near the one that gathered.
        let experience = ppo.networks.experience(&episodes, Discounting::default());
        let rows: Vec<usize> = (0..experience.len()).collect();
        let logs = ppo.networks.consider(&experience, &rows);
        let ratio = |r: &usize| {
            (logs.row(*r)[experience.actions[*r]] - experience.log_probabilities[*r]).exp()
        };
        let mean = rows.iter().map(|r| (ratio(r) - 1.0).abs()).sum::<f32>() / rows.len() as f32;
        assert!((0.02..0.6).contains(&mean), "{mean}");
    }

    #[test]
    fn the_loss_falls_along_its_gradient() {
        // The surrogate's gradient by the parameters, against finite differences of the surrogate.
        let mut luck = ChaCha8Rng::seed_from_u64(2);
        let mut ppo = Ppo::new(PpoConfig::default(), &network(), WIDTHS, &mut luck);
        let episodes = gathered(ppo.policy(), 3);
        let experience = ppo.networks.experience(&episodes, Discounting::default());
        let rows: Vec<usize> = (0..experience.len()).collect();
        let surrogate = |networks: &mut ActorCritic| {
            let logs = networks.consider(&experience, &rows);
            let gain = |r: &usize| {
                let moved = logs.row(*r)[experience.actions[*r]] - experience.log_probabilities[*r];
                f64::from(moved.exp() * experience.advantages[*r])
            };
            -rows.iter().map(gain).sum::<f64>() / rows.len() as f64
        };
        let logs = ppo.networks.consider(&experience, &rows);
        let mut by = Matrix::zeros(rows.len(), WIDTHS.actions);
        for row in rows.iter().copied() {
            let weight = experience.advantages[row] / rows.len() as f32;
            by_logits(logs.row(row), experience.actions[row], weight, 0.0, by.row_mut(row));
        }
        let gradient = ppo.networks.policy_gradient(&by);
        for index in (0..gradient.len()).step_by(7) {
            let mut moved = |by: f32| {
                let before = ppo.networks.actor.parameters()[index];
                ppo.networks.actor.parameters_mut()[index] = before + by;
                let value = surrogate(&mut ppo.networks);
                ppo.networks.actor.parameters_mut()[index] = before;
                value
            };
            let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            let error = (f64::from(gradient[index]) - expected).abs();
            assert!(
                error < 2e-3 * expected.abs().max(0.1),
                "{index}: {} {expected}",
                gradient[index]
            );
        }
    }
}
