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

#[cfg(test)]
mod tests {
    use xla_gym_agents::TrainedPolicy;
    use xla_gym_data::Benchmarks;
    use xla_gym_profile::Profile;
    use xla_gym_xla_profile::Xla;

    use super::*;

    #[test]
    fn steps_astray_change_the_program_and_depend_on_the_seed_alone() {
        let policy = TrainedPolicy::find("general", "xla").unwrap();
        let program = Benchmarks::find(["hlo-v1/mlp/classifier-forward-8l"]).unwrap();
        let profile: Arc<dyn Profile> = Arc::new(Xla::default());
        let engine = profile.engine_config().unwrap();
        let passes = &policy.interface.passes;
        let world = crate::program::world(&profile, &engine, program, passes).unwrap();
        let guide = policy.guide(&world).unwrap();
        let mut walks = Vec::new();
        for seed in 0..4 {
            let (after, own) = go_astray(&world, &[], &guide, seed).unwrap();
            assert!((1..=ASTRAY).contains(&after.len()) && own.len() <= GOES_ON);
            let both = [after.clone(), own.clone()].concat();
            assert_eq!(Walk::begin_after(&world, 0, &both).unwrap().path().len(), both.len());
            assert_eq!(go_astray(&world, &[], &guide, seed).unwrap(), (after.clone(), own));
            walks.push(after);
        }
        assert!(walks.iter().any(|walk| *walk != walks[0]));
    }
}
