//! Random orders: what every other method has to beat.

use rand::Rng;
use xla_gym_env::EnvError;

use crate::{lane::Lane, search::Optimizer};

/// Random orders of random lengths. Passes that are known to do nothing in a state are not tried
/// there again.
pub struct Random {
    /// The longest order.
    pub length: usize,
}

impl Default for Random {
    fn default() -> Random {
        Random { length: 40 }
    }
}

impl Optimizer for Random {
    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        while lane.over().is_none() {
            let length = lane.rng.random_range(self.length / 4..=self.length).max(1);
            let mut walk = lane.begin()?;
            for _ in 0..length {
                let Some(pass) = lane.pick_for(&walk) else { break };
                if lane.step(&mut walk, pass)?.is_none() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
