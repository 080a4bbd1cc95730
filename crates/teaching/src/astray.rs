//! Where a policy may go wrong.

use std::sync::Arc;

use rand::{
    Rng, SeedableRng,
    distr::{Distribution, weighted::WeightedIndex},
};
use rand_chacha::ChaCha8Rng;
use xla_gym_agents::Guide;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_search::Policy;

/// The most steps of a policy before an order begins.
const ASTRAY: usize = 12;

/// The most steps of a policy after that.
const GOES_ON: usize = 48;

/// Some steps of a policy, chosen by chance as a search that heeds it would, and how it would go on
/// without chance.
pub(crate) fn go_astray(
    world: &Arc<World>,
    prefix: &[PassId],
    guide: &Guide,
    seed: u64,
) -> Result<(Vec<PassId>, Vec<PassId>), EnvError> {
    let mut luck = ChaCha8Rng::seed_from_u64(seed);
    let steps = luck.random_range(1..=ASTRAY);
    let mut walk = Walk::begin_after(world, 0, prefix)?;
    let mut path = Vec::new();
    while path.len() < steps + GOES_ON {
        let mut weights = guide.weigh(&walk, world.actions());
        // By chance at first, then what it puts first; what does nothing is passed over.
        let pass = loop {
            let at = if path.len() < steps {
                WeightedIndex::new(&weights).ok().map(|weights| weights.sample(&mut luck))
            } else {
                (0..weights.len())
                    .filter(|at| weights[*at] > 0.0)
                    .max_by(|a, b| weights[*a].total_cmp(&weights[*b]))
            };
            let Some(at) = at else { break None };
            if walk.step(world.actions()[at])?.changed {
                break Some(world.actions()[at]);
            }
            weights[at] = 0.0;
        };
        let Some(pass) = pass else { break };
        path.push(pass);
    }
    let own = path.split_off(steps.min(path.len()));
    Ok((path, own))
}
