//! Which actions are known to be useless in a state.

use std::collections::HashMap;

use xla_gym_engine::protocol::Fingerprint;

/// Beyond so many states everything is forgotten. Which is a bound on memory, and happens at the
/// same step in every run.
const MOST_STATES: usize = 200_000;

/// What one environment has found to do nothing or to fail, by state.
#[derive(Clone, Default)]
pub struct Useless {
    states: HashMap<Fingerprint, Vec<u64>>,
}

impl Useless {
    /// Remembers that an action is useless in a state.
    pub fn add(&mut self, state: Fingerprint, action: usize, actions: usize) {
        if self.states.len() >= MOST_STATES {
            self.states.clear();
        }
        let bits = self.states.entry(state).or_insert_with(|| vec![0; actions.div_ceil(64)]);
        bits[action / 64] |= 1 << (action % 64);
    }

    /// Whether each action may be of use.
    pub fn write(&self, state: Fingerprint, out: &mut [bool]) {
        out.fill(true);
        if let Some(bits) = self.states.get(&state) {
            for (action, useful) in out.iter_mut().enumerate() {
                *useful = bits[action / 64] >> (action % 64) & 1 == 0;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.states.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_masks_what_was_added_and_nothing_else() {
        let mut useless = Useless::default();
        useless.add(Fingerprint(1), 3, 100);
        useless.add(Fingerprint(1), 99, 100);
        let mut mask = vec![false; 100];
        useless.write(Fingerprint(1), &mut mask);
        let masked: Vec<usize> = (0..100).filter(|i| !mask[*i]).collect();
        assert_eq!(masked, [3, 99]);
        useless.write(Fingerprint(2), &mut mask);
        assert!(mask.iter().all(|useful| *useful));
    }
}
