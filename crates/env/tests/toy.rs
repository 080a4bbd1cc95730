//! Another compiler: nothing in the environments knows XLA, and nothing a compiler does ends them.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{
    Source,
    protocol::{Form, Limits},
};
use xla_gym_env::{
    Env, EnvConfig, EnvError, FailureKind, Objective, Potential, Reward, Walk, World, WorldConfig,
};
use xla_gym_toy_profile::Toy;

const PROGRAM: &str = "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n";

fn world(passes: &[&str]) -> Arc<World> {
    world_with(passes, |_| {})
}

fn world_with(passes: &[&str], change: impl FnOnce(&mut WorldConfig)) -> Arc<World> {
    let mut config = WorldConfig::new(Arc::new(Toy::default()))
        .expect("`cargo build -p xla-gym-toy-worker` comes first");
    config.engine.quarantine = None;
    config.engine.limits =
        Limits { pass_millis: 200, request_millis: 5_000, memory_bytes: 256 << 20 };
    config.passes = passes.iter().map(|&name| name.to_owned()).collect();
    change(&mut config);
    let source = Source { name: "toy".into(), bytes: PROGRAM.as_bytes().into() };
    let found = Benchmarks { programs: vec![Benchmark::Memory(source)], skipped: Vec::new() };
    Arc::new(World::with_programs(config, found).unwrap())
}

#[test]
fn the_shortest_program_is_reached() {
    let world = world(&["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let mut env = Env::new(&world, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..40 {
        env.step(rng.random_range(0..5)).unwrap();
    }
    assert_eq!(env.counts().unwrap().primary(), 2);
}

#[test]
fn whatever_a_compiler_does_is_a_step() {
    let faults = ["half", "abort", "panic", "segfault", "overflow", "hang", "hog", "garbage"];
    let passes: Vec<&str> = faults.iter().copied().chain(["shift", "fold"]).collect();
    let world = world(&passes);
    let mut env = Env::new(&world, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    env.step(8).unwrap();
    let before = env.fingerprint().unwrap();
    for (action, name) in faults.iter().enumerate() {
        let failure = env.step(action).unwrap().info.failure.unwrap();
        let expected = match *name {
            "half" => FailureKind::Refused,
            "hang" => FailureKind::TimeLimit,
            "hog" => FailureKind::OutOfMemory,
            _ => FailureKind::Died,
        };
        assert_eq!(failure.kind, expected, "{name}: {failure:?}");
        assert_eq!(env.fingerprint().unwrap(), before, "{name}");
    }
    assert!(env.step(9).unwrap().info.changed, "and it goes on");
}

#[test]
fn a_remembered_pass_that_has_become_too_slow_fails_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let passes = ["slow", "fold", "simplify"];
    let world_within = |pass_millis| {
        world_with(&passes, |config| {
            config.engine.limits.pass_millis = pass_millis;
            config.cache.disk = Some(folder.path().join("cache.db"));
        })
    };
    let patient = world_within(2_000);
    let mut env = Env::new(&patient, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    assert!(env.step(0).unwrap().info.changed);
    drop(env);
    drop(patient);

    let impatient = world_within(20);
    let mut env = Env::new(&impatient, EnvConfig::default()).unwrap();
    env.reset(Some(0)).unwrap();
    assert!(env.step(0).unwrap().info.remembered, "nothing ran, so nothing was too slow");
    let before = env.state().unwrap().clone();
    let step = env.step(1).unwrap();
    assert_eq!(step.info.failure.unwrap().kind, FailureKind::TimeLimit, "the program is needed");
    assert_eq!(env.state().unwrap(), &before, "the state is what it was");
    assert!(env.print(Form::TEXT).is_err(), "and has no program");
    env.undo(2).unwrap();
    let info = env.step(0).unwrap().info;
    assert_eq!(info.failure.unwrap().kind, FailureKind::TimeLimit);
    assert!(info.remembered, "which is known from now on");
}

/// Negations, which the back end does not have, and constants that make a one.
const NEGATED: &str =
    "toy\ninput 0\nneg 0\nneg 1\nconst 2\nconst -1\nadd 3 4\nmul 2 5\nneg 6\nadd 7 0\n";

fn negated(start: &str, passes: &[&str]) -> Arc<World> {
    let mut config = WorldConfig::new(Arc::new(Toy::default())).unwrap();
    config.engine.quarantine = None;
    config.start = start.to_owned();
    config.passes = passes.iter().map(|&name| name.to_owned()).collect();
    let source = Source { name: "negated".into(), bytes: NEGATED.as_bytes().into() };
    let found = Benchmarks { programs: vec![Benchmark::Memory(source)], skipped: Vec::new() };
    Arc::new(World::with_programs(config, found).unwrap())
}

#[test]
fn an_episode_pays_by_the_toys_own_order_and_its_pipeline() {
    let world = negated("emitted", &["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let baseline = world.baseline(0).unwrap();
    let figure = |name: &str| world.profile().spec().figure(name).unwrap();
    // Two of the negations go; the constants are folded too late for `x * 1` to be seen.
    let lines = figure("lines");
    assert_eq!((baseline.initial.get(lines), baseline.default.get(lines)), (Some(9.0), Some(5.0)));
    let last = figure("final");
    assert_eq!((baseline.initial.get(last), baseline.default.get(last)), (Some(12.0), Some(6.0)));

    let reward = Reward {
        objective: Objective::OverDefault,
        at_end: Some("final".to_owned()),
        ..Reward::default()
    };
    let config = EnvConfig { reward, stop_action: true, ..EnvConfig::default() };
    let mut env = Env::new(&world, config).unwrap();
    env.reset(Some(0)).unwrap();
    // fold, simplify, copy-elim, dead
    let steps = env.multistep(&[0, 1, 3, 4]).unwrap();
    let paid: Vec<f64> = steps.iter().map(|step| step.reward).collect();
    // All six lines go at once, of the four that the toy's own order removes.
    assert_eq!(paid, [0.0, 0.0, 0.0, 6.0 / 4.0]);
    assert_eq!(env.counts().unwrap().primary(), 3);
    let stop = env.step(5).unwrap();
    assert!(stop.terminated);
    // What is left of the negations takes a line more in the back end.
    assert_eq!(stop.info.at_end, Some((4.0, 6.0)));
    assert!((stop.reward - (1.0 - 4.0 / 6.0)).abs() < 1e-12, "{stop:?}");
}

#[test]
fn an_episode_can_pay_by_the_clock() {
    let world = negated("emitted", &["fold", "simplify", "dedup", "copy-elim", "dead"]);
    for figure in ["run-time", "compile-time"] {
        let at_end = Some(figure.to_owned());
        // Nothing else is paid.
        let reward = Reward { objective: Objective::Nothing, at_end, ..Reward::default() };
        let config = EnvConfig { reward, stop_action: true, ..EnvConfig::default() };
        let mut env = Env::new(&world, config).unwrap();
        env.reset(Some(0)).unwrap();
        let stop = env.step(5).unwrap();
        let (result, default) = stop.info.at_end.unwrap();
        assert!(result >= 1.0 && default >= 1.0, "{figure}: {stop:?}");
        assert!((stop.reward - (default / result).ln()).abs() < 1e-12, "{figure}: {stop:?}");
    }
}

#[test]
fn an_episode_can_begin_where_the_pipeline_leaves_the_program() {
    let world = negated("lowered", &["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let start = world.start();
    assert_eq!((world.start_name(), start), ("lowered", 1));
    let names: Vec<&str> = world
        .start_passes(0, start)
        .unwrap()
        .iter()
        .map(|pass| world.engine().pass_name(*pass))
        .collect();
    assert_eq!(names, ["lower"]);
    // Beside the final program of the toy's own pipeline, since it begins behind what leads there.
    let counts_as = world.profile().spec().starts[start].counts_as;
    let baseline = world.baseline(0).unwrap();
    assert_eq!(baseline.initial.get(counts_as), Some(12.0));
    assert_eq!(baseline.reduction(counts_as), 6.0);

    let reward = Reward { objective: Objective::OverDefault, ..Reward::default() };
    let mut env = Env::new(&world, EnvConfig { reward, ..EnvConfig::default() }).unwrap();
    env.reset(Some(0)).unwrap();
    assert_eq!(env.sizes().unwrap(), [12], "the start counts as no step");
    assert!(env.taken().unwrap().is_empty() && env.path().unwrap().is_empty());
    // dedup, copy-elim, dead: one -1 for all.
    let steps = env.multistep(&[2, 3, 4]).unwrap();
    assert_eq!(env.sizes().unwrap(), [12, 12, 12, 9]);
    assert_eq!(steps.last().unwrap().reward, 3.0 / 6.0);
    assert_eq!(env.best_path().unwrap(), [2, 3, 4]);

    // The same start in a world that begins elsewhere, and found again by name.
    let other = negated("emitted", &["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let mut again = Env::new(&other, EnvConfig::default()).unwrap();
    again.reset_to_start(0, start, Some(0)).unwrap();
    assert_eq!(again.counts().unwrap().primary(), 12);
    again.restore(&env.save().unwrap()).unwrap();
    assert_eq!(again.state().unwrap(), env.state().unwrap());
    let walk = Walk::begin_at(&other, 0, start).unwrap();
    assert_eq!((walk.path().len(), walk.lowest()), (0, 12));
}

#[test]
fn what_a_compiler_does_not_have_is_refused_with_what_it_has() {
    let world = negated("emitted", &[]);
    // Neither what is lossy nor what is faulty is an action unless it was asked for.
    let names: Vec<&str> = (0..world.actions().len()).map(|at| world.action_name(at)).collect();
    assert_eq!(names, ["fold", "simplify", "dedup", "copy-elim", "dead", "lower", "cancel"]);
    let refused =
        |reward: Reward| match Env::new(&world, EnvConfig { reward, ..EnvConfig::default() }) {
            Err(EnvError::Config(message)) => message,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it should have been refused"),
        };
    let kernels = Reward { at_end: Some("kernels".to_owned()), ..Reward::default() };
    assert!(refused(kernels).contains("lines, final, work, registers"));
    let weights = [("flops".to_owned(), 1.0)].into();
    let flops = Potential { weights, ..Potential::default() };
    assert!(refused(Reward { shaping: Some(flops), ..Reward::default() }).contains("work"));
    assert!(
        Env::new(
            &world,
            EnvConfig {
                reward: Reward { shaping: Some(Potential::default()), ..Reward::default() },
                ..EnvConfig::default()
            }
        )
        .is_ok()
    );
    let mut config = WorldConfig::new(Arc::new(Toy::default())).unwrap();
    config.start = "legal".to_owned();
    let Err(EnvError::Config(message)) = World::new(config, ["hlo-v1/mlp/*"]) else {
        panic!("it should have been refused");
    };
    assert!(message.contains("emitted, lowered"), "{message}");
}
