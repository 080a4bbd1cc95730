//! Episodes made up for tests.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{episode::Episode, learner::Widths};

/// Episodes of different lengths, by chance.
pub fn episodes(widths: Widths, count: usize, seed: u64) -> Vec<Episode> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|number| {
            let steps = 4 + (number * 5) % 9;
            let mut masks: Vec<bool> =
                (0..(steps + 1) * widths.actions).map(|_| rng.random_bool(0.8)).collect();
            let actions: Vec<usize> =
                (0..steps).map(|_| rng.random_range(0..widths.actions)).collect();
            for (step, action) in actions.iter().enumerate() {
                masks[step * widths.actions + action] = true;
            }
            Episode {
                seen: (0..(steps + 1) * widths.value)
                    .map(|_| rng.random_range(-1.0..1.0))
                    .collect(),
                masks,
                actions,
                log_probabilities: (0..steps).map(|_| rng.random_range(-2.0..-0.5)).collect(),
                rewards: (0..steps).map(|_| rng.random_range(-1.0..1.0)).collect(),
                terminated: number % 3 == 0,
                ..Episode::default()
            }
        })
        .collect()
}
