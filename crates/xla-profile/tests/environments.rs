//! The promises of the environments, kept on the real compiler.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    EngineConfig, Source,
    protocol::{Fingerprint, Form, Observe},
};
use xla_gym_env::{
    CacheConfig, Env, EnvConfig, EnvError, FailureKind, MaskKind, Objective, Reward, Sampler,
    VectorEnv, VectorStep, View, World, WorldConfig,
};
use xla_gym_xla_profile::{FLOPS, KERNELS, LEGAL, NORMALIZED, ORDER, TRANSCENDENTALS, Xla};

const GPT2: &str = "hlo-v1/gpt2/train-1l-adamw";

fn world_with(benchmarks: &[&str], change: impl FnOnce(&mut WorldConfig)) -> Arc<World> {
    let profile = Arc::new(Xla::default());
    let mut config = WorldConfig::new(profile).expect("`make build` comes first");
    config.engine = EngineConfig { quarantine: None, ..config.engine };
    change(&mut config);
    Arc::new(World::new(config, benchmarks).unwrap())
}

fn world(benchmarks: &[&str]) -> Arc<World> {
    world_with(benchmarks, |_| {})
}

fn short() -> EnvConfig {
    EnvConfig { traj_limit: 15, sampler: Sampler::Random, ..EnvConfig::default() }
}

/// Everything that a step tells, apart from how long it took and who knew.
type Trace = Vec<(u64, f64, bool, Option<FailureKind>, Fingerprint)>;

fn record(env: &mut Env, seed: u64, episodes: usize) -> Trace {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trace = Trace::new();
    env.reset(Some(seed)).unwrap();
    for _ in 0..episodes {
        loop {
            let step = env.step(rng.random_range(0..env.actions())).unwrap();
            let state = env.state().unwrap();
            let failure = step.info.failure.map(|failure| failure.kind);
            trace.push((state.counts.primary(), step.reward, step.info.changed, failure, state.id));
            if step.truncated || step.terminated {
                break;
            }
        }
        env.reset(None).unwrap();
    }
    trace
}

#[test]
fn a_seed_decides_everything_whatever_is_remembered() {
    let graphs = [GPT2, "hlo-v1/sorting/group-by", "hlo-v1/mlp/*"];
    let first = world(&graphs);
    let cold = record(&mut Env::new(&first, short()).unwrap(), 3, 6);
    assert!(cold.iter().any(|step| step.2), "no pass changed anything");
    let warm = record(&mut Env::new(&first, short()).unwrap(), 3, 6);
    assert_eq!(cold, warm, "with everything remembered");
    assert!(first.transitions().stats().hits_memory > 0);
    let forgetful = world_with(&graphs, |config| config.cache.memory_bytes = 0);
    let other = record(&mut Env::new(&forgetful, short()).unwrap(), 3, 6);
    assert_eq!(cold, other, "in another compiler process, with nothing remembered");
    assert_ne!(cold, record(&mut Env::new(&first, short()).unwrap(), 4, 6));
}

#[test]
fn environments_of_a_vector_do_not_disturb_each_other() {
    let graphs = ["hlo-v1/sorting/*", "hlo-v1/mlp/*"];
    let actions = |env: usize, step: usize| (env * 37 + step * 11) % 100;
    let mut expected: Vec<Vec<(u64, f64)>> = Vec::new();
    let alone = world(&graphs);
    for index in 0..4 {
        let mut env = Env::one_of(&alone, short(), index, 4).unwrap();
        env.reset(Some(9)).unwrap();
        let steps = (0..15).map(|step| {
            let step = env.step(actions(index, step)).unwrap();
            (env.counts().unwrap().primary(), step.reward)
        });
        expected.push(steps.collect());
    }
    let together = world(&graphs);
    let mut envs = VectorEnv::new(&together, &short(), 4).unwrap();
    envs.reset(Some(9)).unwrap();
    let mut seen: Vec<Vec<(u64, f64)>> = vec![Vec::new(); 4];
    for step in 0..15 {
        let steps = envs.step(&(0..4).map(|env| actions(env, step)).collect::<Vec<_>>()).unwrap();
        for (index, step) in steps.into_iter().enumerate() {
            let VectorStep::Stepped(step) = step else { panic!("the episode has just begun") };
            let operations = envs.with(index, |env| env.counts().unwrap().primary());
            seen[index].push((operations, step.reward));
        }
    }
    assert_eq!(seen, expected);
    // The same again, each driven by a thread.
    envs.reset(Some(9)).unwrap();
    let driven = envs.drive(|index, env| {
        (0..15)
            .map(|step| {
                let step = env.step(actions(index, step))?;
                Ok((env.counts()?.primary(), step.reward))
            })
            .collect::<Result<Vec<_>, EnvError>>()
    });
    assert_eq!(driven.unwrap(), expected);
    // All episodes are over: the next step begins new ones.
    assert!(envs.step(&[0; 4]).unwrap().iter().all(|step| matches!(step, VectorStep::Began)));
}

/// 20,000 steps with `XLA_GYM_SLOW=1`, a few hundred otherwise.
#[test]
fn killed_workers_change_nothing() {
    let rounds = if std::env::var_os("XLA_GYM_SLOW").is_some() { 5_000 } else { 60 };
    let graphs = ["hlo-v1/sorting/*", "hlo-v1/mlp/*", "hlo-v1/ode/*"];
    let run = |kill: bool| {
        let world = world_with(&graphs, |config| config.cache.memory_bytes = 0);
        let mut envs = VectorEnv::new(&world, &short(), 4).unwrap();
        envs.reset(Some(1)).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut killer = ChaCha8Rng::seed_from_u64(6);
        let mut trace = Vec::new();
        for _ in 0..rounds {
            let actions: Vec<usize> = (0..4).map(|_| rng.random_range(0..100)).collect();
            if kill && killer.random_bool(0.3) {
                envs.with(killer.random_range(0..4), |env| env.kill_worker());
            }
            for (index, step) in envs.step(&actions).unwrap().into_iter().enumerate() {
                let reward = match step {
                    VectorStep::Began => None,
                    VectorStep::Stepped(step) => Some(step.reward),
                };
                trace.push((envs.with(index, |env| env.state().unwrap().id), reward));
            }
        }
        trace
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_saved_state_is_found_again_in_another_process() {
    let (one, other) = (world(&[GPT2]), world(&["hlo-v1/mlp/*", GPT2]));
    let mut env = Env::new(&one, short()).unwrap();
    env.reset(Some(0)).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let actions: Vec<usize> = (0..12).map(|_| rng.random_range(0..env.actions())).collect();
    let rewards: Vec<f64> =
        env.multistep(&actions).unwrap().iter().map(|step| step.reward).collect();
    let text = serde_json::to_string(&env.save().unwrap()).unwrap();

    let mut again = Env::new(&other, short()).unwrap();
    let steps = again.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(steps.iter().map(|step| step.reward).collect::<Vec<_>>(), rewards);
    assert_eq!(again.fingerprint().unwrap(), env.fingerprint().unwrap());
    assert_eq!(again.state().unwrap(), env.state().unwrap());

    env.replay(&actions).unwrap();
    assert_eq!(again.fingerprint().unwrap(), env.fingerprint().unwrap(), "replayed");

    let mut state = env.save().unwrap();
    state.benchmark = "hlo-v1/none".to_owned();
    assert!(matches!(env.restore(&state), Err(EnvError::State(_))));
    let mut state = env.save().unwrap();
    state.start = "nowhere".to_owned();
    assert!(matches!(env.restore(&state), Err(EnvError::State(_))));
}

#[test]
fn undo_and_fork_lead_where_they_say() {
    let world = world(&[GPT2]);
    let action = |name: &str| (0..100).find(|&a| world.action_name(a) == name).unwrap();
    let mut env = Env::new(&world, short()).unwrap();
    env.reset(Some(0)).unwrap();
    env.multistep(&[action("cse"), action("dce")]).unwrap();
    let (middle, id) = (env.fingerprint().unwrap(), env.state().unwrap().id);
    let mut other = env.fork().unwrap();
    env.multistep(&[action("call-inliner"), action("algsimp"), action("dce")]).unwrap();
    assert_ne!(env.fingerprint().unwrap(), middle);
    assert_eq!(other.fingerprint().unwrap(), middle, "the fork stays");
    env.undo(3).unwrap();
    assert_eq!((env.fingerprint().unwrap(), env.state().unwrap().id), (middle, id));
    assert_eq!(env.taken().unwrap().len(), 2);
    other.step(action("call-inliner")).unwrap();
    env.step(action("call-inliner")).unwrap();
    assert_eq!(env.fingerprint().unwrap(), other.fingerprint().unwrap());
}

#[test]
fn views_stay_within_their_bounds() {
    let graphs = ["hlo-v1/control/*", "hlo-v1/linalg/*", "hlo-v1/collective/*", "hlo-v1/signal/*"];
    let world = world(&graphs);
    let mut env = Env::new(&world, short()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for seed in 0..30 {
        env.reset(Some(seed)).unwrap();
        for _ in 0..15 {
            env.step(rng.random_range(0..env.actions())).unwrap();
            for view in View::ALL {
                let bounds = env.bounds(view);
                let mut values = vec![f32::NAN; bounds.length];
                env.write(view, &mut values).unwrap();
                assert!(
                    values.iter().all(|value| (bounds.low..=bounds.high).contains(value)),
                    "{view:?}: {values:?}"
                );
            }
        }
    }
}

/// What is remembered of instructions must not change what is said of the whole. The mistral graph
/// is one on which a pass leaves instructions behind and reports that nothing changed.
#[test]
fn what_a_step_says_is_what_a_fresh_compiler_says() {
    let names = ["flatten-call-graph", "algsimp:associative", "algsimp:associative", "cse"];
    for graph in ["hlo-v1/mistral/train-2l-adamw", GPT2, "hlo-v1/collective/*"] {
        let world = world(&[graph]);
        let fresh = world_with(&[GPT2], |_| {});
        let mut env = Env::new(&world, short()).unwrap();
        env.reset(Some(1)).unwrap();
        let mut actions: Vec<usize> = names
            .iter()
            .map(|name| (0..114).find(|&a| world.action_name(a) == *name).unwrap())
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        actions.extend((0..8).map(|_| rng.random_range(0..env.actions())));
        for action in actions {
            env.step(action).unwrap();
            let said = env.state().unwrap().clone();
            let source = Source::from_bytes("x", env.print(Form::BINARY).unwrap()).unwrap();
            // Loading runs the verifier, in a process that remembers nothing.
            let mut session = fresh.engine().load(&source).unwrap();
            let seen = session.observe(Observe::COUNTS | Observe::OPCODES | Observe::COST).unwrap();
            assert_eq!(seen.counts, Some(said.counts), "{}", world.action_name(action));
            assert_eq!(seen.opcodes, Some(said.opcodes));
            let (seen, said) = (seen.cost.unwrap().ok(), said.cost);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(1.0);
            match (seen, said) {
                (Some(a), Some(b)) => assert!(
                    [FLOPS, TRANSCENDENTALS].iter().all(|&at| near(a[at], b[at])),
                    "{a:?} {b:?}"
                ),
                (a, b) => assert_eq!(a, b),
            }
        }
    }
}

#[test]
fn a_pass_that_fails_leaves_everything_as_it_was() {
    let world = world(&[GPT2]);
    let action = |name: &str| (0..114).find(|&a| world.action_name(a) == name).unwrap();
    let reward = Reward { failure_cost: 0.5, ..Reward::default() };
    let mut env = Env::new(&world, EnvConfig { reward, ..short() }).unwrap();
    env.reset(Some(0)).unwrap();
    let before = env.state().unwrap().clone();
    for (round, remembered) in [(0, false), (1, true)] {
        let step = env.step(action("scatter_simplifier")).unwrap();
        let failure = step.info.failure.expect("it aborts on this graph");
        assert_eq!(failure.kind, FailureKind::Died, "{failure:?}");
        assert!(failure.message.contains("Check failed"), "{failure:?}");
        assert_eq!(step.info.remembered, remembered, "round {round}");
        assert_eq!(step.reward, -1.5);
        assert_eq!(env.state().unwrap(), &before);
    }
    let mut mask = vec![true; env.actions()];
    env.write_mask(&mut mask).unwrap();
    assert_eq!(mask.iter().filter(|useful| !**useful).count(), 1);
    assert!(!mask[action("scatter_simplifier")]);
    assert!(env.step(action("call-inliner")).unwrap().info.changed, "and it goes on");
}

/// The second of these passes takes the first one's asynchronous pair apart and leaves half of it.
#[test]
fn a_program_that_the_verifier_rejects_is_no_state() {
    let world = world(&["hlo-v1/collective/expert-parallel"]);
    let action = |name: &str| (0..114).find(|&a| world.action_name(a) == name).unwrap();
    let mut env = Env::new(&world, short()).unwrap();
    env.reset(Some(0)).unwrap();
    assert!(env.step(action("async-collective-creator")).unwrap().info.changed);
    let before = (env.state().unwrap().clone(), env.print(Form::TEXT).unwrap());
    let failure = env.step(action("all_to_all_decomposer")).unwrap().info.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Invalid, "{failure:?}");
    assert!(failure.message.contains("verifier"), "{failure:?}");
    assert_eq!((env.state().unwrap().clone(), env.print(Form::TEXT).unwrap()), before);
}

#[test]
fn an_exact_mask_knows_everything() {
    let world = world(&["hlo-v1/sorting/group-by"]);
    let config = EnvConfig { mask: MaskKind::Exact, ..short() };
    let mut env = Env::new(&world, config).unwrap();
    env.reset(Some(0)).unwrap();
    let mut mask = vec![true; env.actions()];
    env.write_mask(&mut mask).unwrap();
    for (action, useful) in mask.iter().enumerate() {
        env.reset(None).unwrap();
        let changed = env.step(action).unwrap().info.changed;
        assert_eq!(changed, *useful, "{}", env.action_name(action));
    }
    assert!(mask.contains(&true) && mask.contains(&false));
}

#[test]
fn rewards_rest_on_what_xla_itself_does() {
    let world = world_with(&[GPT2], |config| config.start = NORMALIZED.to_owned());
    let baseline = world.baseline(0).unwrap();
    let default = |figure| baseline.default.get(figure).unwrap();
    let initial = baseline.initial.primary();
    assert!(initial > default(ORDER) && default(LEGAL) > default(KERNELS));
    let reward = Reward {
        objective: Objective::OverDefault,
        at_end: Some("kernels".to_owned()),
        ..Reward::default()
    };
    let config = EnvConfig { reward, stop_action: true, ..short() };
    let mut env = Env::new(&world, config).unwrap();
    env.reset(Some(0)).unwrap();
    let action = |name: &str| (0..114).find(|&a| world.action_name(a) == name).unwrap();
    let steps = env.multistep(&["call-inliner", "algsimp", "cse", "dce"].map(action)).unwrap();
    let paid: f64 = steps.iter().map(|step| step.reward).sum();
    let removed = initial - env.counts().unwrap().primary() as f64;
    assert!((paid - removed / baseline.reduction(ORDER)).abs() < 1e-12);
    let stop = env.step(env.actions() - 1).unwrap();
    assert!(stop.terminated && !stop.truncated);
    let (kernels, theirs) = stop.info.at_end.unwrap();
    assert_eq!(theirs, default(KERNELS));
    assert!((stop.reward - (1.0 - kernels / theirs)).abs() < 1e-12, "{stop:?}");
    assert!(matches!(env.step(0), Err(EnvError::NotRunning(_))));
}

#[test]
fn a_disk_cache_serves_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        world_with(&[GPT2], |config| {
            let disk = Some(folder.path().join("transitions.db"));
            config.cache = CacheConfig { disk, ..CacheConfig::default() };
        })
    };
    let first = record(&mut Env::new(&open(), short()).unwrap(), 3, 2);
    let world = open();
    let second = record(&mut Env::new(&world, short()).unwrap(), 3, 2);
    assert_eq!(first, second);
    let stats = world.transitions().stats();
    assert!(stats.hits_disk > 0 && stats.misses == 0, "{stats:?}");
}

#[test]
fn wrong_configurations_are_refused_in_words() {
    let world = world(&["hlo-v1/mlp/*"]);
    let refused = |config: EnvConfig| match Env::new(&world, config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it should have been refused"),
    };
    assert!(refused(EnvConfig { traj_limit: 0, ..short() }).contains("traj_limit"));
    let sampler = Sampler::Weighted(vec![1.0]);
    assert!(refused(EnvConfig { sampler, ..short() }).contains("1 weights for"));
    let mut env = Env::new(&world, short()).unwrap();
    assert!(matches!(env.step(0), Err(EnvError::NotRunning(_))));
    env.reset(None).unwrap();
    assert!(matches!(env.step(1000), Err(EnvError::NoSuchAction { .. })));
    assert!(env.reset_to(1000, None).is_err());
}
