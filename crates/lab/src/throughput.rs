//! What the environments add to the passes' own time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Observe, PassId},
};
use xla_gym_env::{
    CacheConfig, Env, EnvConfig, EnvError, VectorEnv, VectorStep, View, World, WorldConfig,
};
use xla_gym_xla_profile::NORMALIZED;

use crate::graphs::{self, median};

/// Environments in a vector.
const VECTOR: usize = 8;

/// What the environments add to the passes' own time.
///
/// The same actions on the same graph, in one run: the bare passes in the worker, the environment
/// with nothing remembered, with what it remembers itself, and with everything remembered; and eight
/// environments on all cores.
#[derive(clap::Args)]
pub struct Args {
    /// The graph.
    #[arg(default_value = "hlo-v1/gpt2/train-4l-adamw")]
    graph: String,

    /// Episodes.
    #[arg(long, default_value_t = 40)]
    episodes: usize,

    /// Steps in each.
    #[arg(long, default_value_t = 40)]
    length: usize,

    /// Repetitions; the middle one counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Seed of the actions.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: Args) -> Result<()> {
    let forgetful = world(&args, 0)?;
    let count = forgetful.actions().len();
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let episodes: Vec<Vec<usize>> = (0..args.episodes)
        .map(|_| (0..args.length).map(|_| rng.random_range(0..count)).collect())
        .collect();
    let steps = args.episodes * args.length;
    println!(
        "{}: {} instructions, {} episodes of {} random passes, middle of {} rounds",
        args.graph,
        forgetful.size(0)?,
        args.episodes,
        args.length,
        args.rounds
    );

    let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut add = |name: &'static str, micros: f64| match rows.iter_mut().find(|row| row.0 == name)
    {
        Some(row) => row.1.push(micros),
        None => rows.push((name, vec![micros])),
    };
    for _ in 0..args.rounds {
        // Taken in turn, so that a slow moment of the machine meets all of them.
        let per_step = |time: Duration| time.as_secs_f64() * 1e6 / steps as f64;
        let (inside, outside) = bare(&forgetful, &episodes)?;
        add("bare passes, inside the worker", per_step(inside));
        add("the same through the engine client", per_step(outside));
        add("environment, nothing remembered", per_step(one(&forgetful, &episodes, false)?));
        for (name, count) in [("8 environments in step", 8), ("32 environments in step", 32)] {
            if episodes.len() >= count {
                let rounds = episodes.len() / count * count;
                let time = vector(&forgetful, &episodes[..rounds], count, false)?;
                add(name, per_step(time) * episodes.len() as f64 / rounds as f64);
            }
        }
        for (name, passes, count) in [
            ("2 environments at their own pace", "  their passes, inside the workers", 2),
            ("8 environments at their own pace", "  the passes of those, likewise", 8),
        ] {
            if episodes.len().is_multiple_of(count) {
                let (time, inside) = own_pace(&forgetful, &episodes, count)?;
                add(name, per_step(time));
                add(passes, per_step(inside));
            }
        }
        add("all environments, each driven to its end", per_step(driven(&forgetful, &episodes)?));
        for (name, observe) in LOOKS {
            add(name, per_step(looking(&forgetful, &episodes, observe)?));
        }
        let fresh = world(&args, 256 << 20)?;
        add("environment that remembers", per_step(one(&fresh, &episodes, false)?));
        add("everything remembered", per_step(one(&fresh, &episodes, true)?));
        if episodes.len().is_multiple_of(VECTOR) {
            let time = vector(&fresh, &episodes, VECTOR, true)?;
            add("8 environments, everything remembered", per_step(time));
        }
    }
    let base = median(&mut rows[0].1.clone());
    for (name, times) in &mut rows {
        let time = median(times);
        println!("  {name:38} {time:8.1} µs a step, {:.3} of the bare passes", time / base);
    }
    Ok(())
}

fn world(args: &Args, memory_bytes: usize) -> Result<Arc<World>> {
    let config = WorldConfig {
        cache: CacheConfig { memory_bytes, ..CacheConfig::default() },
        ..graphs::world(NORMALIZED)?
    };
    let world = Arc::new(World::new(config, [&args.graph])?);
    // Loading and normalizing is not what is measured.
    world.session(0)?;
    Ok(world)
}

/// Every pass in the worker, nothing looked at: the time inside the worker, and from outside.
fn bare(world: &World, episodes: &[Vec<usize>]) -> Result<(Duration, Duration)> {
    let (mut inside, mut outside) = (Duration::ZERO, Duration::ZERO);
    for episode in episodes {
        let passes: Vec<PassId> = episode.iter().map(|&action| world.actions()[action]).collect();
        let mut session = world.session(0)?;
        let begin = Instant::now();
        inside += apply(&mut session, &passes, Observe::NOTHING)?;
        outside += begin.elapsed();
    }
    Ok((inside, outside))
}

/// What each part of an observation costs.
const LOOKS: [(&str, Observe); 5] = [
    ("engine client with counts", Observe::COUNTS),
    ("engine client with opcode counts", Observe::OPCODES),
    ("engine client with XLA's cost analysis", Observe::COST),
    ("engine client with the exact identity", Observe::EXACT),
    ("engine client with XLA's verifier", Observe::VERDICT),
];

fn looking(world: &World, episodes: &[Vec<usize>], observe: Observe) -> Result<Duration> {
    let mut time = Duration::ZERO;
    for episode in episodes {
        let passes: Vec<PassId> = episode.iter().map(|&action| world.actions()[action]).collect();
        let mut session = world.session(0)?;
        // What holds for the start is not asked for in every episode.
        session.observe(observe)?;
        let begin = Instant::now();
        apply(&mut session, &passes, observe)?;
        time += begin.elapsed();
    }
    Ok(time)
}

fn apply(session: &mut Session, passes: &[PassId], observe: Observe) -> Result<Duration> {
    let mut nanos = 0;
    for pass in passes {
        match session.apply(*pass, observe) {
            Ok(applied) => nanos += applied.nanos,
            Err(EngineError::Pass(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Duration::from_nanos(nanos))
}

fn config(episodes: &[Vec<usize>]) -> EnvConfig {
    EnvConfig { traj_limit: episodes[0].len(), ..EnvConfig::default() }
}

/// One environment after the other, each step with its observation and its mask.
fn one(world: &Arc<World>, episodes: &[Vec<usize>], remembered: bool) -> Result<Duration> {
    let mut env = Env::new(world, config(episodes))?;
    let mut observation = vec![0.0; env.bounds(View::Scaled).length];
    let mut mask = vec![true; env.actions()];
    let mut time = Duration::ZERO;
    for episode in episodes {
        env.reset(None)?;
        if !remembered {
            // A fork of the start state, which the first unknown pass would wait for.
            env.fingerprint()?;
        }
        let begin = Instant::now();
        for &action in episode {
            env.step(action)?;
            env.write(View::Scaled, &mut observation)?;
            env.write_mask(&mut mask)?;
        }
        time += begin.elapsed();
    }
    Ok(time)
}

/// Several at a time, each with its observation and its mask. A step of all takes as long as its
/// slowest, and few passes take most of the time: the more environments, the better.
fn vector(
    world: &Arc<World>,
    episodes: &[Vec<usize>],
    count: usize,
    remembered: bool,
) -> Result<Duration> {
    let mut envs = VectorEnv::new(world, &config(episodes), count)?;
    let (length, actions) = envs.with(0, |env| (env.bounds(View::Scaled).length, env.actions()));
    let (mut observation, mut mask) = (vec![0.0; length], vec![true; actions]);
    let mut time = Duration::ZERO;
    for group in episodes.chunks_exact(count) {
        envs.reset(None)?;
        if !remembered {
            for env in 0..count {
                envs.with(env, |env| env.fingerprint())?;
            }
        }
        let begin = Instant::now();
        for step in 0..group[0].len() {
            let actions: Vec<usize> = group.iter().map(|episode| episode[step]).collect();
            envs.step(&actions)?;
            for env in 0..count {
                envs.with(env, |env| -> Result<(), EnvError> {
                    env.write(View::Scaled, &mut observation)?;
                    env.write_mask(&mut mask)
                })?;
            }
        }
        time += begin.elapsed();
    }
    Ok(time)
}

/// Several, each of which gets its next action as soon as it has taken one. Also the time of the
/// passes alone.
fn own_pace(
    world: &Arc<World>,
    episodes: &[Vec<usize>],
    count: usize,
) -> Result<(Duration, Duration)> {
    let mut envs = VectorEnv::new(world, &config(episodes), count)?;
    let (mut time, mut inside) = (Duration::ZERO, Duration::ZERO);
    for group in episodes.chunks_exact(count) {
        envs.reset(None)?;
        for env in 0..count {
            envs.with(env, |env| env.fingerprint())?;
        }
        let begin = Instant::now();
        let mut taken = vec![0; count];
        for (env, episode) in group.iter().enumerate() {
            envs.send(env, episode[0]);
        }
        while let Some((env, step)) = envs.receive()? {
            if let VectorStep::Stepped(step) = step? {
                inside += Duration::from_nanos(step.info.nanos);
            }
            taken[env] += 1;
            if let Some(&action) = group[env].get(taken[env]) {
                envs.send(env, action);
            }
        }
        time += begin.elapsed();
    }
    Ok((time, inside))
}

/// One for each episode, driven to its end by one of the threads.
fn driven(world: &Arc<World>, episodes: &[Vec<usize>]) -> Result<Duration> {
    let mut envs = VectorEnv::new(world, &config(episodes), episodes.len())?;
    envs.reset(None)?;
    for env in 0..episodes.len() {
        envs.with(env, |env| env.fingerprint())?;
    }
    let begin = Instant::now();
    envs.drive(|index, env| {
        let mut observation = vec![0.0; env.bounds(View::Scaled).length];
        let mut mask = vec![true; env.actions()];
        for &action in &episodes[index] {
            env.step(action)?;
            env.write(View::Scaled, &mut observation)?;
            env.write_mask(&mut mask)?;
        }
        Ok(())
    })?;
    Ok(begin.elapsed())
}
