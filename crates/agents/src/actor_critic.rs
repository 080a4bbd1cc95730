//! A policy and a value function, which PPO, A2C and TRPO share.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_nn::{Adam, Matrix, Mlp, Shape, Tape, clip_norm, clip_norms};

use crate::{
    advantage::generalised, choice, config::Network, episode::Episode, learner::Widths,
    tensors::Tensors,
};

/// Gains of the first weights: hidden layers, the policy's last, the value function's last.
const GAINS: (f32, f32, f32) = (std::f32::consts::SQRT_2, 0.01, 1.0);

/// Adam's epsilon, as in Stable-Baselines3.
const EPSILON: f64 = 1e-5;

/// How episodes are turned into advantages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Discounting {
    /// What a reward is worth a step later.
    pub gamma: f64,
    /// How far advantages look ahead.
    pub lambda: f64,
    /// Whether an episode that reached the limit of steps is thought to go on.
    pub goes_on: bool,
}

impl Default for Discounting {
    fn default() -> Discounting {
        Discounting { gamma: 0.99, lambda: 0.95, goes_on: true }
    }
}

impl Discounting {
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let share = |name: &str, value: f64| match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => Err(format!("discounting.{name}: a number between 0 and 1 is needed")),
        };
        share("gamma", self.gamma)?;
        share("lambda", self.lambda)
    }
}

/// Everything that was seen and done in some episodes, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Experience {
    /// What the policy saw.
    pub policy_inputs: Matrix,
    /// What the value function saw.
    pub value_inputs: Matrix,
    /// What was allowed, row by row.
    pub masks: Vec<bool>,
    /// What was done.
    pub actions: Vec<usize>,
    /// Logarithm of the probability with which it was done.
    pub log_probabilities: Vec<f32>,
    /// How much better it was than expected.
    pub advantages: Vec<f32>,
    /// What the value function should have said.
    pub returns: Vec<f32>,
    /// What it said.
    pub values: Vec<f32>,
}

impl Experience {
    /// How many actions.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// What was allowed in a row.
    pub fn mask(&self, row: usize) -> &[bool] {
        let width = self.masks.len() / self.len().max(1);
        &self.masks[row * width..(row + 1) * width]
    }

    /// How much of the returns' variance the value function explained.
    pub fn explained_variance(&self) -> f64 {
        let variance = |values: &mut dyn Iterator<Item = f64>| {
            let values: Vec<f64> = values.collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len().max(1) as f64
        };
        let all = variance(&mut self.returns.iter().map(|r| f64::from(*r)));
        let pairs = self.returns.iter().zip(&self.values);
        let left = variance(&mut pairs.map(|(r, v)| f64::from(*r - *v)));
        if all > 0.0 { 1.0 - left / all } else { f64::NAN }
    }
}

/// A policy and a value function, each with its optimiser.
#[derive(Clone, Debug)]
pub struct ActorCritic {
    /// The policy: a logit for each action.
    pub actor: Mlp,
    /// The value function.
    pub critic: Mlp,
    actor_optimiser: Adam,
    critic_optimiser: Adam,
    widths: Widths,
    actor_tape: Tape,
    critic_tape: Tape,
    actor_gradient: Vec<f32>,
    critic_gradient: Vec<f32>,
}

/// How far one update moves.
#[derive(Clone, Copy, Debug)]
pub struct Push {
    /// How much the error of the value function counts.
    pub value_share: f32,
    /// The gradient's largest norm.
    pub largest_gradient: f32,
}

/// What came of one update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pushed {
    /// Half of the squared error of the value function, times its share.
    pub value_loss: f64,
    /// Norm of the gradient before it was cut.
    pub gradient: f64,
}

impl ActorCritic {
    /// Makes both, with first weights by chance.
    pub fn new(network: &Network, widths: Widths, rate: f64, luck: &mut ChaCha8Rng) -> Self {
        let shape = |inputs, outputs| Shape {
            inputs,
            hidden: network.hidden.clone(),
            outputs,
            activation: network.activation,
        };
        let actor = Mlp::new(shape(widths.policy, widths.actions), GAINS.0, GAINS.1, luck);
        let critic = Mlp::new(shape(widths.value, 1), GAINS.0, GAINS.2, luck);
        let (a, c) = (actor.parameters().len(), critic.parameters().len());
        ActorCritic {
            actor,
            critic,
            actor_optimiser: Adam::new(a, rate, EPSILON),
            critic_optimiser: Adam::new(c, rate, EPSILON),
            widths,
            actor_tape: Tape::default(),
            critic_tape: Tape::default(),
            actor_gradient: vec![0.0; a],
            critic_gradient: vec![0.0; c],
        }
    }

    /// Turns episodes into experience.
    pub fn experience(&self, episodes: &[Episode], discounting: Discounting) -> Experience {
        let Widths { policy, value, actions } = self.widths;
        let rows: usize = episodes.iter().map(Episode::len).sum();
        let mut policy_inputs = Vec::with_capacity(rows * policy);
        let mut value_inputs = Vec::with_capacity(rows * value);
        let mut masks = Vec::with_capacity(rows * actions);
        // All states in one product: those before each action, and the last of each episode.
        let all: Vec<f32> = episodes.iter().flat_map(|e| e.seen.iter().copied()).collect();
        let values = self.critic.forward(&Matrix::from_vec(rows + episodes.len(), value, all));
        let mut experience = Experience {
            policy_inputs: Matrix::zeros(0, policy),
            value_inputs: Matrix::zeros(0, value),
            masks: Vec::new(),
            actions: Vec::with_capacity(rows),
            log_probabilities: Vec::with_capacity(rows),
            advantages: Vec::with_capacity(rows),
            returns: Vec::with_capacity(rows),
            values: Vec::with_capacity(rows),
        };
        let mut from = 0;
        for episode in episodes {
            let steps = episode.len();
            for row in episode.seen.chunks_exact(value).take(steps) {
                policy_inputs.extend_from_slice(&row[..policy]);
            }
            value_inputs.extend_from_slice(&episode.seen[..steps * value]);
            masks.extend_from_slice(&episode.masks[..steps * actions]);
            let said = &values.data()[from..from + steps];
            let ends = episode.terminated || !discounting.goes_on;
            let after = if ends { 0.0 } else { values.data()[from + steps] };
            let Discounting { gamma, lambda, .. } = discounting;
            let worth = generalised(&episode.rewards, said, after, gamma, lambda);
            experience.values.extend_from_slice(said);
            experience.actions.extend_from_slice(&episode.actions);
            experience.log_probabilities.extend_from_slice(&episode.log_probabilities);
            experience.advantages.extend(worth.advantages);
            experience.returns.extend(worth.returns);
            from += steps + 1;
        }
        experience.policy_inputs = Matrix::from_vec(rows, policy, policy_inputs);
        experience.value_inputs = Matrix::from_vec(rows, value, value_inputs);
        experience.masks = masks;
        experience
    }

    /// The policy's logarithms of probabilities for some rows; what is needed for its gradient stays
    /// on the tape.
    pub fn consider(&mut self, experience: &Experience, rows: &[usize]) -> Matrix {
        let inputs = pick(&experience.policy_inputs, rows);
        self.actor.forward_keeping(&inputs, &mut self.actor_tape);
        let logits = self.actor_tape.outputs();
        let mut logs = Matrix::zeros(rows.len(), self.widths.actions);
        for (index, row) in rows.iter().enumerate() {
            let mask = experience.mask(*row);
            choice::log_probabilities(logits.row(index), mask, logs.row_mut(index));
        }
        logs
    }

    /// Moves both networks: the policy against the gradient of a loss by its logits, which
    /// [`ActorCritic::consider`] was asked for just before; the value function towards the returns.
    pub fn push(
        &mut self,
        experience: &Experience,
        rows: &[usize],
        by_logits: &Matrix,
        push: Push,
    ) -> Pushed {
        self.actor.backward(&mut self.actor_tape, by_logits, &mut self.actor_gradient);
        let value_loss = self.value_gradient(experience, rows, push.value_share);
        // Both count as one gradient.
        let both = &mut [&mut self.actor_gradient[..], &mut self.critic_gradient[..]];
        let norm = f64::from(clip_norms(both, push.largest_gradient));
        self.actor_optimiser.step(self.actor.parameters_mut(), &self.actor_gradient);
        self.critic_optimiser.step(self.critic.parameters_mut(), &self.critic_gradient);
        Pushed { value_loss, gradient: norm }
    }

    /// Moves the value function alone towards the returns.
    pub fn push_value(&mut self, experience: &Experience, rows: &[usize], push: Push) -> f64 {
        let loss = self.value_gradient(experience, rows, push.value_share);
        clip_norm(&mut self.critic_gradient, push.largest_gradient);
        self.critic_optimiser.step(self.critic.parameters_mut(), &self.critic_gradient);
        loss
    }

    fn value_gradient(&mut self, experience: &Experience, rows: &[usize], share: f32) -> f64 {
        let inputs = pick(&experience.value_inputs, rows);
        self.critic.forward_keeping(&inputs, &mut self.critic_tape);
        let mut by_value = Matrix::zeros(rows.len(), 1);
        let mut loss = 0.0;
        for (index, row) in rows.iter().enumerate() {
            let error = self.critic_tape.outputs().row(index)[0] - experience.returns[*row];
            loss += f64::from(share * error * error);
            by_value.row_mut(index)[0] = 2.0 * share * error / rows.len() as f32;
        }
        self.critic.backward(&mut self.critic_tape, &by_value, &mut self.critic_gradient);
        loss / rows.len() as f64
    }

    /// The policy's gradient by a loss whose derivative by the logits is given.
    pub fn policy_gradient(&mut self, by_logits: &Matrix) -> Vec<f32> {
        self.actor.backward(&mut self.actor_tape, by_logits, &mut self.actor_gradient);
        self.actor_gradient.clone()
    }

    /// How the policy's logits move with its parameters.
    pub fn policy_tangent(&self, direction: &[f32]) -> Matrix {
        self.actor.tangent(&self.actor_tape, direction)
    }

    /// Adds everything.
    pub fn save(&self, tensors: &mut Tensors) {
        tensors.add_network("actor", &self.actor);
        tensors.add_network("critic", &self.critic);
        tensors.add_optimiser("actor-optimiser", &self.actor_optimiser);
        tensors.add_optimiser("critic-optimiser", &self.critic_optimiser);
    }

    /// Takes everything over.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), String> {
        tensors.load_network("actor", &mut self.actor)?;
        tensors.load_network("critic", &mut self.critic)?;
        tensors.load_optimiser("actor-optimiser", &mut self.actor_optimiser)?;
        tensors.load_optimiser("critic-optimiser", &mut self.critic_optimiser)
    }
}

/// The gradient by the logits of a loss `−weight · log π(action) − entropy_share · H(π)`, for one
/// row, into `out`.
pub fn by_logits(logs: &[f32], action: usize, weight: f32, entropy_share: f32, out: &mut [f32]) {
    let entropy = if entropy_share == 0.0 { 0.0 } else { choice::entropy(logs) };
    for (other, (slot, log)) in out.iter_mut().zip(logs).enumerate() {
        if !log.is_finite() {
            *slot = 0.0;
            continue;
        }
        let probability = log.exp();
        let taken = if other == action { 1.0 } else { 0.0 };
        *slot = -weight * (taken - probability);
        if entropy_share != 0.0 {
            *slot += entropy_share * probability * (log + entropy);
        }
    }
}

/// Some rows of a matrix.
pub fn pick(matrix: &Matrix, rows: &[usize]) -> Matrix {
    let mut out = Matrix::zeros(rows.len(), matrix.columns());
    for (index, row) in rows.iter().enumerate() {
        out.row_mut(index).copy_from_slice(matrix.row(*row));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_by_logits_are_those_of_finite_differences() {
        let logits = [0.3_f32, -1.0, 2.0, 0.7];
        let mask = [true, true, false, true];
        let loss = |logits: &[f32]| {
            let mut logs = [0.0; 4];
            choice::log_probabilities(logits, &mask, &mut logs);
            f64::from(-1.7 * logs[1] - 0.3 * choice::entropy(&logs))
        };
        let mut logs = [0.0; 4];
        choice::log_probabilities(&logits, &mask, &mut logs);
        let mut gradient = [f32::NAN; 4];
        by_logits(&logs, 1, 1.7, 0.3, &mut gradient);
        for index in 0..4 {
            let moved = |by: f32| {
                let mut logits = logits;
                logits[index] += by;
                loss(&logits)
            };
            let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((f64::from(gradient[index]) - expected).abs() < 1e-3, "{index}");
        }
    }
}
