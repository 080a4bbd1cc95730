//! Trust region policy optimisation: the longest step along the natural gradient that keeps the
//! policy within a divergence of the one that gathered the experience.

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

/// Below this squared residual the conjugate gradient has arrived.
const SMALL: f64 = 1e-10;

/// How TRPO learns. The defaults are the paper's, and where it is silent those of Stable-Baselines3's
/// companion package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrpoConfig {
    /// Episodes before each update.
    pub episodes: usize,
    /// How far the policy may move, as a mean Kullback–Leibler divergence.
    pub target_divergence: f64,
    /// Steps of the conjugate gradient.
    pub conjugate_steps: usize,
    /// Added to the diagonal of the Fisher matrix.
    pub damping: f64,
    /// Rows of experience on which the Fisher matrix rests.
    pub fisher_rows: usize,
    /// By how much the line search shortens the step each time.
    pub shortening: f64,
    /// How often it does so.
    pub attempts: usize,
    /// Passes over the experience for the value function.
    pub value_epochs: usize,
    /// Rows of experience in each step of the value function.
    pub batch: usize,
    /// Step of the value function's optimiser.
    pub learning_rate: f64,
    /// How episodes are turned into advantages.
    pub discounting: Discounting,
}

impl Default for TrpoConfig {
    fn default() -> TrpoConfig {
        TrpoConfig {
            episodes: 32,
            target_divergence: 0.01,
            conjugate_steps: 15,
            damping: 0.1,
            fisher_rows: 256,
            shortening: 0.8,
            attempts: 10,
            value_epochs: 10,
            batch: 256,
            learning_rate: 3e-4,
            discounting: Discounting::default(),
        }
    }
}

impl TrpoConfig {
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in [
            ("episodes", self.episodes),
            ("batch", self.batch),
            ("fisher-rows", self.fisher_rows),
            ("conjugate-steps", self.conjugate_steps),
            ("attempts", self.attempts),
        ] {
            if value == 0 {
                return Err(format!("{name}: must be at least 1"));
            }
        }
        if self.target_divergence <= 0.0 {
            return Err("target-divergence: must be greater than 0".to_owned());
        }
        self.discounting.check()
    }
}

/// TRPO at work.
pub struct Trpo {
    config: TrpoConfig,
    networks: ActorCritic,
}

/// What the line search came to.
struct Moved {
    divergence: f64,
    gain: f64,
    attempts: usize,
}

impl Trpo {
    /// Begins with networks by chance.
    pub fn new(
        config: TrpoConfig,
        network: &Network,
        widths: Widths,
        luck: &mut ChaCha8Rng,
    ) -> Trpo {
        let networks = ActorCritic::new(network, widths, config.learning_rate, luck);
        Trpo { config, networks }
    }

    /// The direction in which the expected advantage grows fastest.
    fn gradient(&mut self, experience: &Experience, rows: &[usize], logs: &Matrix) -> Vec<f32> {
        let mut by = Matrix::zeros(rows.len(), logs.columns());
        for row in rows.iter().copied() {
            let weight = experience.advantages[row] / rows.len() as f32;
            by_logits(logs.row(row), experience.actions[row], weight, 0.0, by.row_mut(row));
        }
        let mut gradient = self.networks.policy_gradient(&by);
        gradient.iter_mut().for_each(|part| *part = -*part);
        gradient
    }

    /// The Fisher matrix times a vector, for the rows that were considered last: the logits move
    /// with the parameters, their probabilities with the logits, and all the way back.
    fn fisher(&mut self, logs: &Matrix, vector: &[f32]) -> Vec<f32> {
        let mut moved = self.networks.policy_tangent(vector);
        let share = 1.0 / logs.rows() as f32;
        for row in 0..logs.rows() {
            let probabilities: Vec<f32> = logs.row(row).iter().map(|log| log.exp()).collect();
            let moved = moved.row_mut(row);
            let mean: f32 = probabilities.iter().zip(&*moved).map(|(p, m)| p * m).sum();
            for (moved, probability) in moved.iter_mut().zip(probabilities) {
                *moved = probability * (*moved - mean) * share;
            }
        }
        let mut product = self.networks.policy_gradient(&moved);
        let damping = self.config.damping as f32;
        product.iter_mut().zip(vector).for_each(|(p, v)| *p += damping * v);
        product
    }

    /// Solves `F x = gradient`; returns `x` and `xᵀ F x`.
    fn natural(&mut self, logs: &Matrix, gradient: &[f32]) -> (Vec<f32>, f64) {
        let mut solution = vec![0.0_f32; gradient.len()];
        let mut residual = gradient.to_vec();
        let mut direction = gradient.to_vec();
        let mut square = dot(&residual, &residual);
        for _ in 0..self.config.conjugate_steps {
            if square < SMALL {
                break;
            }
            let product = self.fisher(logs, &direction);
            let length = square / dot(&direction, &product);
            add(&mut solution, length, &direction);
            add(&mut residual, -length, &product);
            let next = dot(&residual, &residual);
            let keep = (next / square) as f32;
            direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + keep * *d);
            square = next;
        }
        let product = self.fisher(logs, &solution);
        let curvature = dot(&solution, &product);
        (solution, curvature)
    }

    /// Goes as far along a direction as the divergence allows and the expected advantage grows.
    fn search(
        &mut self,
        experience: &Experience,
        rows: &[usize],
        before: &Matrix,
        direction: &[f32],
        longest: f64,
    ) -> Moved {
        let from = self.networks.actor.parameters().to_vec();
        for attempt in 0..self.config.attempts {
            let length = longest * self.config.shortening.powi(attempt as i32);
            self.networks.actor.parameters_mut().copy_from_slice(&from);
            add(self.networks.actor.parameters_mut(), length, direction);
            let after = self.networks.consider(experience, rows);
            let (divergence, gain) = compare(experience, rows, before, &after);
            if divergence <= self.config.target_divergence && gain > 0.0 {
                return Moved { divergence, gain, attempts: attempt + 1 };
            }
        }
        self.networks.actor.parameters_mut().copy_from_slice(&from);
        Moved { divergence: 0.0, gain: 0.0, attempts: self.config.attempts }
    }
}

/// The mean divergence of two policies, and how much better the second is expected to be.
fn compare(experience: &Experience, rows: &[usize], old: &Matrix, new: &Matrix) -> (f64, f64) {
    let (mut divergence, mut gain) = (0.0, 0.0);
    for row in rows.iter().copied() {
        let (old, new) = (old.row(row), new.row(row));
        let pairs = old.iter().zip(new).filter(|(old, _)| old.is_finite());
        divergence += pairs.map(|(o, n)| f64::from(o.exp()) * f64::from(o - n)).sum::<f64>();
        let action = experience.actions[row];
        let ratio = f64::from(new[action] - old[action]).exp();
        gain += (ratio - 1.0) * f64::from(experience.advantages[row]);
    }
    (divergence / rows.len() as f64, gain / rows.len() as f64)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn add(to: &mut [f32], times: f64, what: &[f32]) {
    to.iter_mut().zip(what).for_each(|(t, w)| *t = (f64::from(*t) + times * f64::from(*w)) as f32);
}

impl Learner for Trpo {
    fn episodes(&self) -> usize {
        self.config.episodes
    }

    fn chooser(&self, _: f64) -> Chooser<'_> {
        Chooser::Sampled(&self.networks.actor)
    }

    fn learn(&mut self, episodes: Vec<Episode>, luck: &mut ChaCha8Rng) -> Figures {
        let mut experience = self.networks.experience(&episodes, self.config.discounting);
        normalise(&mut experience.advantages);
        let mut rows: Vec<usize> = (0..experience.len()).collect();
        let before = self.networks.consider(&experience, &rows);
        let entropy: f64 = (0..rows.len()).map(|r| f64::from(choice::entropy(before.row(r)))).sum();
        let gradient = self.gradient(&experience, &rows, &before);
        let mut some = rows.clone();
        some.shuffle(luck);
        some.truncate(self.config.fisher_rows);
        let considered = self.networks.consider(&experience, &some);
        let (direction, curvature) = self.natural(&considered, &gradient);
        let longest = (2.0 * self.config.target_divergence / curvature.max(1e-12)).sqrt();
        let moved = self.search(&experience, &rows, &before, &direction, longest);
        let push = Push { value_share: 1.0, largest_gradient: f32::INFINITY };
        let (mut value_loss, mut steps) = (0.0, 0.0);
        for _ in 0..self.config.value_epochs {
            rows.shuffle(luck);
            for batch in rows.chunks(self.config.batch) {
                value_loss += self.networks.push_value(&experience, batch, push);
                steps += 1.0;
            }
        }
        Figures::from([
            ("divergence".to_owned(), moved.divergence),
            ("expected-gain".to_owned(), moved.gain),
            ("attempts".to_owned(), moved.attempts as f64),
            ("value-loss".to_owned(), value_loss / f64::max(steps, 1.0)),
            ("entropy".to_owned(), entropy / before.rows().max(1) as f64),
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
    use crate::testing::episodes;

    /// The divergence from the policy as it was, by a step of its parameters.
    fn divergence(trpo: &mut Trpo, experience: &Experience, before: &Matrix, step: &[f32]) -> f64 {
        let from = trpo.networks.actor.parameters().to_vec();
        add(trpo.networks.actor.parameters_mut(), 1.0, step);
        let rows: Vec<usize> = (0..experience.len()).collect();
        let after = trpo.networks.consider(experience, &rows);
        trpo.networks.actor.parameters_mut().copy_from_slice(&from);
        compare(experience, &rows, before, &after).0
    }

    fn small() -> (Trpo, Vec<Episode>) {
        let widths = Widths { policy: 5, value: 5, actions: 4 };
        let network = Network { hidden: vec![7], activation: Activation::Tanh };
        let mut luck = ChaCha8Rng::seed_from_u64(3);
        let config = TrpoConfig { damping: 0.0, fisher_rows: 1000, ..TrpoConfig::default() };
        let mut trpo = Trpo::new(config, &network, widths, &mut luck);
        // Away from the uniform policy of the first weights.
        let parameters = trpo.networks.actor.parameters_mut();
        parameters
            .iter_mut()
            .enumerate()
            .for_each(|(i, p)| *p += ((i * 7 % 11) as f32 - 5.0) * 0.05);
        (trpo, episodes(widths, 6, 9))
    }

    #[test]
    fn the_fisher_matrix_is_the_curvature_of_the_divergence() {
        let (mut trpo, episodes) = small();
        let experience = trpo.networks.experience(&episodes, Discounting::default());
        let rows: Vec<usize> = (0..experience.len()).collect();
        let before = trpo.networks.consider(&experience, &rows);
        let count = trpo.networks.actor.parameters().len();
        for k in 0..3 {
            let step: Vec<f32> = (0..count)
                .map(|i| 0.02 * (((i * (k + 2) * 13) % 17) as f32 / 17.0 - 0.5))
                .collect();
            trpo.networks.consider(&experience, &rows);
            let quadratic = 0.5 * dot(&step, &trpo.fisher(&before, &step));
            let forward = divergence(&mut trpo, &experience, &before, &step);
            let back: Vec<f32> = step.iter().map(|part| -part).collect();
            let real = 0.5 * (forward + divergence(&mut trpo, &experience, &before, &back));
            assert!((quadratic / real - 1.0).abs() < 0.03, "{quadratic} {real}");
        }
    }

    #[test]
    fn the_conjugate_gradient_solves_its_equation() {
        let (mut trpo, episodes) = small();
        trpo.config.damping = 0.1;
        trpo.config.conjugate_steps = 200;
        let experience = trpo.networks.experience(&episodes, Discounting::default());
        let rows: Vec<usize> = (0..experience.len()).collect();
        let before = trpo.networks.consider(&experience, &rows);
        let gradient = trpo.gradient(&experience, &rows, &before);
        let (solution, curvature) = trpo.natural(&before, &gradient);
        let product = trpo.fisher(&before, &solution);
        let wrong: Vec<f32> = product.iter().zip(&gradient).map(|(p, g)| p - g).collect();
        assert!(dot(&wrong, &wrong).sqrt() < 1e-3 * dot(&gradient, &gradient).sqrt());
        assert!((curvature / dot(&solution, &gradient) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn no_update_leaves_the_trust_region() {
        let (mut trpo, _) = small();
        trpo.config.damping = 0.1;
        let mut luck = ChaCha8Rng::seed_from_u64(0);
        let widths = Widths { policy: 5, value: 5, actions: 4 };
        let mut moved = 0;
        for round in 0..20 {
            let figures = trpo.learn(episodes(widths, 6, 9 + round), &mut luck);
            assert!(figures["divergence"] <= trpo.config.target_divergence);
            moved += usize::from(figures["divergence"] > 0.0);
        }
        assert!(moved > 10, "only {moved} of 20 updates moved at all");
    }
}
