//! What the networks are shown.

use xla_gym_env::{Env, EnvError, View};

use crate::config::Observation;

/// Writes what policy and value function see. The value function sees everything that the policy
/// sees, and perhaps more: its row begins with the policy's.
#[derive(Clone, Debug)]
pub struct Observer {
    views: Vec<(View, usize)>,
    policy: usize,
    value: usize,
}

impl Observer {
    /// For the environments of a world.
    pub fn new(observation: &Observation, env: &Env) -> Observer {
        let both = observation.policy.iter().chain(&observation.value);
        let views: Vec<_> = both.map(|view| (*view, env.bounds(*view).length)).collect();
        let length = |views: &[(View, usize)]| views.iter().map(|(_, length)| length).sum();
        Observer {
            policy: length(&views[..observation.policy.len()]),
            value: length(&views),
            views,
        }
    }

    /// Numbers that the policy sees.
    pub fn policy_width(&self) -> usize {
        self.policy
    }

    /// Numbers that the value function sees.
    pub fn value_width(&self) -> usize {
        self.value
    }

    /// Writes the current state into a slice of [`Observer::value_width`].
    pub fn write(&self, env: &Env, out: &mut [f32]) -> Result<(), EnvError> {
        let mut rest = out;
        for (view, length) in &self.views {
            let (now, later) = rest.split_at_mut(*length);
            env.write(*view, now)?;
            rest = later;
        }
        Ok(())
    }
}
