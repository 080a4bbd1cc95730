//! What all algorithms have in common.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use xla_gym_nn::Mlp;

use crate::{
    config::{Algorithm, Config},
    episode::{Chooser, Episode},
    tensors::Tensors,
};

/// Losses and the like, by name.
pub type Figures = BTreeMap<String, f64>;

/// What networks are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Numbers that the policy sees.
    pub policy: usize,
    /// Numbers that the value function sees.
    pub value: usize,
    /// Actions.
    pub actions: usize,
}

/// An algorithm at work. It holds networks and what else it has learnt; luck comes from outside,
/// so that a run can go on where it ended.
pub trait Learner: Send + Sync {
    /// How many episodes to gather before it learns again.
    fn episodes(&self) -> usize;

    /// How many of them are on the same program.
    fn rivals(&self) -> usize {
        1
    }

    /// How actions are chosen, after a share of all steps.
    fn chooser(&self, share: f64) -> Chooser<'_>;

    /// Learns from new episodes.
    fn learn(&mut self, episodes: Vec<Episode>, luck: &mut ChaCha8Rng) -> Figures;

    /// The network whose largest output is the action to take.
    fn policy(&self) -> &Mlp;

    /// The same, to be changed from outside.
    fn policy_mut(&mut self) -> &mut Mlp;

    /// Everything that it has learnt.
    fn save(&self, tensors: &mut Tensors);

    /// Takes over what was saved; says what is missing.
    fn load(&mut self, tensors: &Tensors) -> Result<(), String>;
}

/// Makes the learner that a configuration asks for.
pub fn learner(config: &Config, widths: Widths, luck: &mut ChaCha8Rng) -> Box<dyn Learner> {
    let network = &config.network;
    match &config.algorithm {
        Algorithm::Ppo(ppo) => Box::new(crate::ppo::Ppo::new(ppo.clone(), network, widths, luck)),
        Algorithm::A2c(a2c) => Box::new(crate::a2c::A2c::new(a2c.clone(), network, widths, luck)),
        Algorithm::Dqn(dqn) => Box::new(crate::dqn::Dqn::new(dqn.clone(), network, widths, luck)),
        Algorithm::Trpo(trpo) => {
            Box::new(crate::trpo::Trpo::new(trpo.clone(), network, widths, luck))
        }
    }
}
