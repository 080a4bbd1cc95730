//! Deep Q network: learns what each action is worth from everything that was ever seen.

use std::collections::VecDeque;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_nn::{Adam, Matrix, Mlp, Shape, Tape, clip_norm};

use crate::{
    choice,
    config::Network,
    episode::{Chooser, Episode},
    learner::{Figures, Learner, Widths},
    tensors::Tensors,
};

/// Gain of the first weights.
const GAIN: f32 = std::f32::consts::SQRT_2;

/// How DQN learns. The defaults are the paper's, and where it is silent Stable-Baselines3's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DqnConfig {
    /// Episodes before each update.
    pub episodes: usize,
    /// Steps that are remembered.
    pub remembered: usize,
    /// Steps before learning begins.
    pub begins: u64,
    /// Rows of experience in each step of the optimiser.
    pub batch: usize,
    /// Steps in the environment for each step of the optimiser.
    pub train_every: u64,
    /// Steps in the environment between which the target stays as it is.
    pub target_every: u64,
    /// Step of the optimiser.
    pub learning_rate: f64,
    /// What a reward is worth a step later.
    pub gamma: f64,
    /// Share of all steps over which curiosity falls.
    pub exploration: f64,
    /// Curiosity at the beginning: share of actions by chance.
    pub first_curiosity: f64,
    /// Curiosity at the end.
    pub last_curiosity: f64,
    /// The gradient's largest norm.
    pub largest_gradient: f32,
    /// Whether the network itself says which action the target is asked about.
    pub double: bool,
    /// Whether an episode that reached the limit of steps is thought to go on.
    pub goes_on: bool,
}

impl Default for DqnConfig {
    fn default() -> DqnConfig {
        DqnConfig {
            episodes: 4,
            remembered: 1_000_000,
            begins: 100,
            batch: 256,
            train_every: 4,
            target_every: 10_000,
            learning_rate: 3e-4,
            gamma: 0.99,
            exploration: 0.1,
            first_curiosity: 1.0,
            last_curiosity: 0.05,
            largest_gradient: 10.0,
            double: false,
            goes_on: true,
        }
    }
}

impl DqnConfig {
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in [
            ("episodes", self.episodes as u64),
            ("remembered", self.remembered as u64),
            ("batch", self.batch as u64),
            ("train-every", self.train_every),
            ("target-every", self.target_every),
        ] {
            if value == 0 {
                return Err(format!("{name}: must be at least 1"));
            }
        }
        Ok(())
    }
}

/// DQN at work.
pub struct Dqn {
    config: DqnConfig,
    widths: Widths,
    network: Mlp,
    target: Mlp,
    optimiser: Adam,
    tape: Tape,
    gradient: Vec<f32>,
    memory: Memory,
    /// Steps in the environment so far.
    steps: u64,
}

/// Episodes that are remembered, the oldest first.
#[derive(Default)]
struct Memory {
    episodes: VecDeque<Episode>,
    /// Number of the first episode that is still there.
    first: u64,
    /// Episode and step of everything that can be drawn.
    steps: VecDeque<(u64, usize)>,
}

impl Memory {
    fn add(&mut self, episode: Episode, most: usize) {
        let number = self.first + self.episodes.len() as u64;
        self.steps.extend((0..episode.len()).map(|step| (number, step)));
        self.episodes.push_back(episode);
        while self.steps.len() > most {
            self.steps.pop_front();
        }
        let oldest = self.steps.front().map_or(number, |(episode, _)| *episode);
        while self.first < oldest {
            self.episodes.pop_front();
            self.first += 1;
        }
    }

    fn draw(&self, luck: &mut ChaCha8Rng) -> (&Episode, usize) {
        let (episode, step) = self.steps[luck.random_range(0..self.steps.len())];
        (&self.episodes[(episode - self.first) as usize], step)
    }
}

impl Dqn {
    /// Begins with a network by chance.
    pub fn new(config: DqnConfig, network: &Network, widths: Widths, luck: &mut ChaCha8Rng) -> Dqn {
        let shape = Shape {
            inputs: widths.policy,
            hidden: network.hidden.clone(),
            outputs: widths.actions,
            activation: network.activation,
        };
        let network = Mlp::new(shape, GAIN, 1.0, luck);
        let parameters = network.parameters().len();
        Dqn {
            target: network.clone(),
            optimiser: Adam::new(parameters, config.learning_rate, 1e-8),
            tape: Tape::default(),
            gradient: vec![0.0; parameters],
            memory: Memory::default(),
            steps: 0,
            network,
            widths,
            config,
        }
    }

    /// One step of the optimiser; returns loss and mean value.
    fn step(&mut self, luck: &mut ChaCha8Rng) -> (f64, f64) {
        let batch = self.config.batch;
        let Widths { policy, value, actions } = self.widths;
        let mut now = Matrix::zeros(batch, policy);
        let mut next = Matrix::zeros(batch, policy);
        let mut drawn = Vec::with_capacity(batch);
        for row in 0..batch {
            let (episode, step) = self.memory.draw(luck);
            let seen = |step: usize| &episode.seen[step * value..step * value + policy];
            now.row_mut(row).copy_from_slice(seen(step));
            next.row_mut(row).copy_from_slice(seen(step + 1));
            drawn.push((episode, step));
        }
        let target = self.target.forward(&next);
        let chosen = if self.config.double { Some(self.network.forward(&next)) } else { None };
        self.network.forward_keeping(&now, &mut self.tape);
        let mut by_values = Matrix::zeros(batch, actions);
        let (mut loss, mut mean) = (0.0, 0.0);
        for (row, (episode, step)) in drawn.into_iter().enumerate() {
            let mask = &episode.masks[(step + 1) * actions..(step + 2) * actions];
            let by = chosen.as_ref().unwrap_or(&target);
            let best = choice::best(by.row(row), mask);
            let last = step + 1 == episode.len() && (episode.terminated || !self.config.goes_on);
            let after = if last { 0.0 } else { target.row(row)[best] };
            let wanted = episode.rewards[step] + self.config.gamma as f32 * after;
            let action = episode.actions[step];
            let said = self.tape.outputs().row(row)[action];
            let error = said - wanted;
            // Huber's loss: square near zero, straight beyond one.
            let huber = if error.abs() < 1.0 { 0.5 * error * error } else { error.abs() - 0.5 };
            by_values.row_mut(row)[action] = error.clamp(-1.0, 1.0) / batch as f32;
            loss += f64::from(huber) / batch as f64;
            mean += f64::from(said) / batch as f64;
        }
        self.network.backward(&mut self.tape, &by_values, &mut self.gradient);
        clip_norm(&mut self.gradient, self.config.largest_gradient);
        self.optimiser.step(self.network.parameters_mut(), &self.gradient);
        (loss, mean)
    }

    fn curiosity(&self, share: f64) -> f64 {
        let DqnConfig { exploration, first_curiosity, last_curiosity, .. } = self.config;
        let fallen = if exploration > 0.0 { (share / exploration).min(1.0) } else { 1.0 };
        first_curiosity + fallen * (last_curiosity - first_curiosity)
    }
}

impl Learner for Dqn {
    fn episodes(&self) -> usize {
        self.config.episodes
    }

    fn chooser(&self, share: f64) -> Chooser<'_> {
        Chooser::Curious(&self.network, self.curiosity(share))
    }

    fn learn(&mut self, episodes: Vec<Episode>, luck: &mut ChaCha8Rng) -> Figures {
        let fresh: u64 = episodes.iter().map(|episode| episode.len() as u64).sum();
        for episode in episodes {
            self.memory.add(episode, self.config.remembered);
        }
        let (mut loss, mut mean, mut count) = (0.0, 0.0, 0.0);
        for step in self.steps + 1..=self.steps + fresh {
            if step > self.config.begins && step.is_multiple_of(self.config.train_every) {
                let (one, value) = self.step(luck);
                (loss, mean, count) = (loss + one, mean + value, count + 1.0);
            }
            if step.is_multiple_of(self.config.target_every) {
                self.target = self.network.clone();
            }
        }
        self.steps += fresh;
        let count = f64::max(count, 1.0);
        Figures::from([
            ("value-loss".to_owned(), loss / count),
            ("mean-value".to_owned(), mean / count),
            ("remembered".to_owned(), self.memory.steps.len() as f64),
        ])
    }

    fn policy(&self) -> &Mlp {
        &self.network
    }

    fn policy_mut(&mut self) -> &mut Mlp {
        &mut self.network
    }

    fn save(&self, tensors: &mut Tensors) {
        tensors.add_network("network", &self.network);
        tensors.add_network("target", &self.target);
        tensors.add_optimiser("optimiser", &self.optimiser);
        tensors.add_number("steps", self.steps);
        let memory = &self.memory;
        let all = |part: fn(&Episode) -> &[f32]| -> Vec<f32> {
            memory.episodes.iter().flat_map(|e| part(e).iter().copied()).collect()
        };
        let (seen, rewards) = (all(|e| &e.seen), all(|e| &e.rewards));
        tensors.add("memory.seen", &[seen.len()], &seen);
        tensors.add("memory.rewards", &[rewards.len()], &rewards);
        let masks = memory.episodes.iter().flat_map(|e| e.masks.iter().map(|m| u8::from(*m)));
        tensors.add_bytes("memory.masks", masks.collect());
        let actions = memory.episodes.iter().flat_map(|e| e.actions.iter());
        let actions = actions.flat_map(|action| (*action as u16).to_le_bytes());
        tensors.add_bytes("memory.actions", actions.collect());
        let ends = memory.episodes.iter().flat_map(|e| {
            let length = (e.len() as u32).to_le_bytes();
            [length[0], length[1], length[2], length[3], u8::from(e.terminated)]
        });
        tensors.add_bytes("memory.ends", ends.collect());
        tensors.add_number("memory.first", memory.first);
        tensors.add_number("memory.steps", memory.steps.len() as u64);
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), String> {
        tensors.load_network("network", &mut self.network)?;
        tensors.load_network("target", &mut self.target)?;
        tensors.load_optimiser("optimiser", &mut self.optimiser)?;
        self.steps = tensors.number("steps")?;
        let Widths { value, actions, .. } = self.widths;
        let short = || "the memory is cut off".to_owned();
        let mut seen = tensors.get("memory.seen")?;
        let mut rewards = tensors.get("memory.rewards")?;
        let mut masks = tensors.bytes("memory.masks")?;
        let mut taken = tensors.bytes("memory.actions")?;
        let mut memory = Memory { first: tensors.number("memory.first")?, ..Memory::default() };
        for end in tensors.bytes("memory.ends")?.chunks_exact(5) {
            let steps = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
            let row = |rest: &mut &[f32], count: usize| -> Result<Vec<f32>, String> {
                let (now, later) = rest.split_at_checked(count).ok_or_else(short)?;
                *rest = later;
                Ok(now.to_vec())
            };
            let (mask, later) = masks.split_at_checked((steps + 1) * actions).ok_or_else(short)?;
            masks = later;
            let (action, later) = taken.split_at_checked(steps * 2).ok_or_else(short)?;
            taken = later;
            memory.episodes.push_back(Episode {
                seen: row(&mut seen, (steps + 1) * value)?,
                rewards: row(&mut rewards, steps)?,
                masks: mask.iter().map(|allowed| *allowed != 0).collect(),
                actions: action
                    .chunks_exact(2)
                    .map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
                    .collect(),
                terminated: end[4] != 0,
                ..Episode::default()
            });
        }
        for (index, episode) in memory.episodes.iter().enumerate() {
            let number = memory.first + index as u64;
            memory.steps.extend((0..episode.len()).map(|step| (number, step)));
        }
        // The oldest steps of the first episode may have been forgotten already.
        let kept = tensors.number("memory.steps")? as usize;
        while memory.steps.len() > kept {
            memory.steps.pop_front();
        }
        self.memory = memory;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use xla_gym_nn::Activation;

    use super::*;
    use crate::testing::episodes;

    const WIDTHS: Widths = Widths { policy: 5, value: 5, actions: 4 };

    fn small(config: DqnConfig) -> Dqn {
        let network = Network { hidden: vec![8], activation: Activation::Relu };
        Dqn::new(config, &network, WIDTHS, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn the_memory_forgets_the_oldest_steps() {
        let mut memory = Memory::default();
        for episode in episodes(WIDTHS, 10, 0) {
            memory.add(episode, 25);
        }
        assert_eq!(memory.steps.len(), 25);
        let mut luck = ChaCha8Rng::seed_from_u64(0);
        for _ in 0..100 {
            let (episode, step) = memory.draw(&mut luck);
            assert!(step < episode.len());
        }
        let steps: usize = memory.episodes.iter().map(Episode::len).sum();
        assert!((25..25 + 16).contains(&steps), "{steps}");
    }

    #[test]
    fn it_goes_on_exactly_where_it_was_saved() {
        let config = DqnConfig {
            begins: 10,
            batch: 16,
            remembered: 60,
            target_every: 32,
            ..DqnConfig::default()
        };
        let mut one = small(config.clone());
        let luck = |seed| ChaCha8Rng::seed_from_u64(seed);
        for round in 0..4 {
            one.learn(episodes(WIDTHS, 3, round), &mut luck(round));
        }
        let mut tensors = Tensors::default();
        one.save(&mut tensors);
        let mut other = small(config);
        other.load(&Tensors::from_bytes(&tensors.to_bytes().unwrap()).unwrap()).unwrap();
        for round in 4..8 {
            one.learn(episodes(WIDTHS, 3, round), &mut luck(round));
            other.learn(episodes(WIDTHS, 3, round), &mut luck(round));
        }
        assert_eq!(one.network, other.network);
        assert_eq!(one.target, other.target);
    }

    #[test]
    fn curiosity_falls_and_stays() {
        let dqn = small(DqnConfig::default());
        assert_eq!(dqn.curiosity(0.0), 1.0);
        assert!((dqn.curiosity(0.05) - 0.525).abs() < 1e-9);
        assert!((dqn.curiosity(0.5) - 0.05).abs() < 1e-9);
    }
}
