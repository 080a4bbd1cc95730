//! Advantage actor critic: one step of the optimiser for each batch of fresh experience.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_nn::{Matrix, Mlp};

use crate::{
    actor_critic::{ActorCritic, Discounting, Push, by_logits},
    advantage::normalise,
    choice,
    config::Network,
    episode::{Chooser, Episode},
    learner::{Figures, Learner, Widths},
    tensors::Tensors,
};

/// How A2C learns. With episodes of 64 steps, 4 of them are the paper's batch of 256.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct A2cConfig {
    /// Episodes before each update.
    pub episodes: usize,
    /// Step of the optimiser.
    pub learning_rate: f64,
    /// What indecision is worth.
    pub entropy: f32,
    /// How much the value function's error counts.
    pub value_share: f32,
    /// The gradient's largest norm.
    pub largest_gradient: f32,
    /// Whether advantages are shifted and scaled to mean 0 and deviation 1.
    pub normalise: bool,
    /// How episodes are turned into advantages.
    pub discounting: Discounting,
}

impl Default for A2cConfig {
    fn default() -> A2cConfig {
        A2cConfig {
            episodes: 4,
            learning_rate: 3e-4,
            entropy: 0.0,
            value_share: 0.5,
            largest_gradient: 0.5,
            normalise: false,
            discounting: Discounting::default(),
        }
    }
}

impl A2cConfig {
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.episodes == 0 {
            return Err("episodes: must be at least 1".to_owned());
        }
        self.discounting.check()
    }
}

/// A2C at work.
pub struct A2c {
    config: A2cConfig,
    networks: ActorCritic,
}

impl A2c {
    /// Begins with networks by chance.
    pub fn new(config: A2cConfig, network: &Network, widths: Widths, luck: &mut ChaCha8Rng) -> A2c {
        let networks = ActorCritic::new(network, widths, config.learning_rate, luck);
        A2c { config, networks }
    }
}

impl Learner for A2c {
    fn episodes(&self) -> usize {
        self.config.episodes
    }

    fn chooser(&self, _: f64) -> Chooser<'_> {
        Chooser::Sampled(&self.networks.actor)
    }

    fn learn(&mut self, episodes: Vec<Episode>, _: &mut ChaCha8Rng) -> Figures {
        let config = &self.config;
        let mut experience = self.networks.experience(&episodes, config.discounting);
        if config.normalise {
            normalise(&mut experience.advantages);
        }
        let rows: Vec<usize> = (0..experience.len()).collect();
        let logs = self.networks.consider(&experience, &rows);
        let mut gradient = Matrix::zeros(rows.len(), logs.columns());
        let share = 1.0 / rows.len() as f32;
        let (mut policy_loss, mut entropy) = (0.0, 0.0);
        for row in rows.iter().copied() {
            let (logs, action) = (logs.row(row), experience.actions[row]);
            let weight = experience.advantages[row] * share;
            by_logits(logs, action, weight, config.entropy * share, gradient.row_mut(row));
            policy_loss -= f64::from(weight * logs[action]);
            entropy += f64::from(choice::entropy(logs) * share);
        }
        let A2cConfig { value_share, largest_gradient, .. } = self.config;
        let push = Push { value_share, largest_gradient };
        let pushed = self.networks.push(&experience, &rows, &gradient, push);
        Figures::from([
            ("policy-loss".to_owned(), policy_loss),
            ("value-loss".to_owned(), pushed.value_loss),
            ("entropy".to_owned(), entropy),
            ("gradient".to_owned(), pushed.gradient),
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
