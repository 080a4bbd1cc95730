//! No policy takes a pass that may change what a program computes, whatever it has learnt.

use std::{collections::HashSet, sync::Arc};

use xla_gym_agents::{
    Chooser, EpisodeRequest, Gatherer, Observation, Observer, Shipped, TrainedPolicy, together,
};
use xla_gym_engine::{EngineConfig, protocol::PassId};
use xla_gym_env::{Env, EnvConfig, Walk, World, WorldConfig};
use xla_gym_search::{Budget, Goal, Method, Policy as _, Search, search};
use xla_gym_xla_profile::Xla;

const LOSSY: &str = "simplify-fp-conversions";

/// On this graph, the lossy pass has something to do, and the policies used to take it.
const GRAPH: &str = "hlo-v1/vgg16/forward-bf16";

fn world(passes: &[String]) -> Arc<World> {
    let xla = WorldConfig::new(Arc::new(Xla::default())).expect("`make build` comes first");
    let engine = EngineConfig { quarantine: None, ..xla.engine.clone() };
    let config = WorldConfig { engine, passes: passes.to_vec(), ..xla };
    Arc::new(World::new(config, [GRAPH]).unwrap())
}

/// The same policy, convinced that nothing is better than the lossy pass.
fn convinced(policy: &TrainedPolicy) -> TrainedPolicy {
    let mut policy = policy.clone();
    let output = policy.interface.passes.iter().position(|pass| pass == LOSSY).unwrap();
    let biases = policy.network.shape().layers().last().unwrap().biases;
    policy.network.parameters_mut()[biases][output] = 1e4;
    policy
}

/// The passes of a walk by the policy alone.
fn walked(world: &Arc<World>, policy: &TrainedPolicy, mask: bool) -> Vec<String> {
    let config = EnvConfig { traj_limit: policy.interface.traj_limit, ..EnvConfig::default() };
    let env = Env::new(world, config.clone()).unwrap();
    let seen = Observation { policy: policy.interface.views.clone(), value: Vec::new() };
    let observer = Observer::new(&seen, &env);
    let gatherer = Gatherer { world: world.clone(), config, observer, mask };
    let request = EpisodeRequest { benchmark: 0, start: 0, seed: 0, stream: 0 };
    let episode = gatherer.play(request, Chooser::Greedy(&policy.network)).unwrap();
    episode.actions.iter().map(|action| world.action_name(*action).to_owned()).collect()
}

#[test]
fn shipped_policies_never_take_a_lossy_pass() {
    let all = world(&[]);
    let lossy = all.engine().pass(LOSSY).unwrap();
    assert!(all.action_of(lossy).is_none(), "it is no action unless it is asked for");
    let before = all.engine().passes(["call-inliner", "float-normalization-bf16"]).unwrap();
    let mut here = Walk::begin_after(&all, 0, &before).unwrap();
    assert!(here.step(lossy).unwrap().changed, "it has nothing to do here");
    for shipped in Shipped::of("xla") {
        let own = shipped.policy().unwrap();
        let both = together("both", "", &[convinced(own), convinced(own)]).unwrap();
        let theirs = world(&own.interface.passes);
        assert!(theirs.action_of(lossy).is_some());
        for policy in [own.clone(), convinced(own), both] {
            for mask in [true, false] {
                let taken: HashSet<String> = walked(&theirs, &policy, mask).into_iter().collect();
                assert!(!taken.contains(LOSSY), "{} {mask}", shipped.name());
                assert!(!mask || taken.len() > 3, "{taken:?}");
            }
            // It has no weight in a world that has it, and leaves none behind in one that has not.
            let walk = Walk::begin(&theirs, 0).unwrap();
            let weights = policy.guide(&theirs).unwrap().weigh(&walk, theirs.actions());
            assert_eq!(weights[theirs.action_of(lossy).unwrap()], 0.0);
            let weights =
                policy.guide(&all).unwrap().weigh(&Walk::begin(&all, 0).unwrap(), all.actions());
            assert!(weights.iter().sum::<f64>() > 0.9, "{}", weights.iter().sum::<f64>());
            for world in [&all, &theirs] {
                for method in [Method::Beam, Method::Mcts, Method::Evolve] {
                    let passes = searched(world, &policy, method);
                    assert!(!passes.contains(&lossy), "{} {method:?}", shipped.name());
                }
            }
        }
    }
}

/// All passes of all orders that a guided search keeps.
fn searched(world: &Arc<World>, policy: &TrainedPolicy, method: Method) -> HashSet<PassId> {
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(100),
        seed: 0,
        goal: Goal::default(),
        policy: Some(Arc::new(policy.guide(world).unwrap())),
        prefix: Vec::new(),
        first: Vec::new(),
        costs: Arc::default(),
        stop: Arc::default(),
    };
    let found = search(&task, &*method.optimizer(), &|_, _| {}).unwrap();
    found.candidates.into_iter().flat_map(|candidate| candidate.passes).collect()
}

#[test]
fn passes_that_are_all_lossy_are_refused_with_the_reason() {
    let own = Shipped::named("general", "xla").unwrap().policy().unwrap();
    let world = world(&[LOSSY.to_owned()]);
    let config = EnvConfig::default();
    let env = Env::new(&world, config.clone()).unwrap();
    let seen = Observation { policy: own.interface.views.clone(), value: Vec::new() };
    let observer = Observer::new(&seen, &env);
    let gatherer = Gatherer { world, config, observer, mask: true };
    let request = EpisodeRequest { benchmark: 0, start: 0, seed: 0, stream: 0 };
    let error = gatherer.play(request, Chooser::Random).unwrap_err().to_string();
    assert!(error.contains("lose precision"), "{error}");
}
