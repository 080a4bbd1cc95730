//! What the engine client adds to the passes' own time.

use std::time::Instant;

use anyhow::Result;
use rand::{SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    Engine, EngineError, Session,
    protocol::{Observe, PassId},
};
use xla_gym_profile::apply_all;
use xla_gym_xla_profile::{INSTRUCTIONS, NORMALIZED};

use crate::graphs::{self, median};

/// What the engine client adds to the passes' own time.
///
/// Every step's time is measured twice in the same run: by the worker around the bare pass, and
/// by the client around the whole step with counts and opcode counts. The difference is what we
/// add.
#[derive(clap::Args)]
pub struct Args {
    /// Steps on each graph.
    #[arg(long, default_value_t = 2000)]
    steps: usize,

    /// Seed of the pass orders.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// About 200, 3,000 and 13,000 instructions.
const GRAPHS: [&str; 4] = ["mlp-train", "gpt2-train-1l", "gpt2-train-4l", "gpt2-train-12l"];

/// An episode's length; after that the graph starts anew, since passes soon find nothing to do.
const EPISODE: usize = 40;

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(30)?;
    for name in GRAPHS {
        let file = graphs::folder().join(format!("{name}.hlo.zst"));
        let mut session = engine.load_file(file)?;
        let mut start = graphs::start_session(&mut session, NORMALIZED)?;
        measure(&engine, name, &mut start, &args)?;
    }
    Ok(())
}

fn measure(engine: &Engine, name: &str, start: &mut Session, args: &Args) -> Result<()> {
    let instructions = graphs::counts(start)?[INSTRUCTIONS];
    let passes = graphs::usable_passes(engine);
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    // The same sequences for both ways of sending them.
    let sequences: Vec<Vec<PassId>> = (0..args.steps.div_ceil(EPISODE))
        .map(|_| (0..EPISODE).filter_map(|_| passes.choose(&mut rng).copied()).collect())
        .collect();

    let observe = Observe::COUNTS | Observe::OPCODES;
    let (mut inside, mut outside, mut steps) = (0.0, 0.0, 0);
    let mut extra = Vec::new();
    for sequence in &sequences {
        let mut session = start.fork()?;
        for &pass in sequence {
            let begin = Instant::now();
            match session.apply(pass, observe) {
                Ok(applied) => {
                    let whole = begin.elapsed().as_secs_f64() * 1e6;
                    let bare = applied.nanos as f64 / 1e3;
                    inside += bare;
                    outside += whole;
                    extra.push(whole - bare);
                    steps += 1;
                }
                Err(EngineError::Pass(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let one_by_one = outside;

    let (mut batch_inside, mut batch_outside) = (0.0, 0.0);
    for sequence in &sequences {
        let mut session = start.fork()?;
        let begin = Instant::now();
        let mut bare = 0;
        let result = session.multistep(sequence, observe, |applied| bare += applied.nanos);
        if result.is_ok() {
            batch_outside += begin.elapsed().as_secs_f64() * 1e6;
            batch_inside += bare as f64 / 1e3;
        }
    }

    println!("{name}: {instructions} instructions, {steps} steps of random passes");
    println!(
        "  one by one    {:8.0} steps/s; bare passes {:8.0} steps/s; overhead {:.1}% in total, \
         median {:.1} µs a step",
        steps as f64 / one_by_one * 1e6,
        steps as f64 / inside * 1e6,
        (one_by_one / inside - 1.0) * 100.0,
        median(&mut extra),
    );
    println!(
        "  {EPISODE} at a time    overhead {:.1}% in total",
        (batch_outside / batch_inside - 1.0) * 100.0
    );
    copies(start, &sequences[0])?;
    Ok(())
}

/// A fork against a replay of the same state, and recovery after a kill.
fn copies(start: &mut Session, sequence: &[PassId]) -> Result<()> {
    let mut session = start.fork()?;
    apply_all(&mut session, sequence)?;
    let steps = session.steps().to_vec();
    let timed = |times: &mut Vec<f64>, begin: Instant| {
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    };
    let (mut forks, mut replays, mut recoveries) = (Vec::new(), Vec::new(), Vec::new());
    let mut clones = Vec::new();
    let mut scratch = session.scratch()?;
    for _ in 0..15 {
        let begin = Instant::now();
        scratch.clone_program()?;
        timed(&mut clones, begin);

        let begin = Instant::now();
        let copy = session.fork()?;
        timed(&mut forks, begin);
        drop(copy);

        let begin = Instant::now();
        let mut replayed = start.fork()?;
        replayed.multistep(&steps, Observe::NOTHING, |_| {})?;
        timed(&mut replays, begin);
        drop(replayed);

        session.kill_worker();
        let begin = Instant::now();
        session.observe(Observe::COUNTS)?;
        timed(&mut recoveries, begin);
    }
    println!(
        "  state after {} passes: fork {:.0} µs, copy through the proto {:.0} µs, replay from the start \
         {:.0} µs, recovery after a kill {:.0} µs",
        steps.len(),
        median(&mut forks),
        median(&mut clones),
        median(&mut replays),
        median(&mut recoveries),
    );
    Ok(())
}
