//! Whether a state's fingerprint and a pass determine the next state.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Mutex,
};

use anyhow::{Result, anyhow};
use rand::{
    SeedableRng,
    seq::{IndexedRandom, SliceRandom},
};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use xla_gym_common::{lock, on_all_cores};
use xla_gym_data::Benchmarks;
use xla_gym_engine::{
    EngineError,
    protocol::{Fingerprint, Observation, Observe, PassId},
};

use crate::graphs;

/// Whether a state's fingerprint and a pass determine the next state: random pass orders on many
/// graphs, every transition that occurs again is compared with what it led to before.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1".to_owned()])]
    benchmarks: Vec<String>,

    /// Every how manieth of them.
    #[arg(long, default_value_t = 10)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 4000)]
    up_to: u64,

    /// Pass orders on each.
    #[arg(long, default_value_t = 60)]
    episodes: usize,

    /// Passes in each.
    #[arg(long, default_value_t = 12)]
    length: usize,

    /// How many different passes, of those that change the graph.
    #[arg(long, default_value_t = 8)]
    passes: usize,

    /// Identify states by their content alone, whatever their order.
    #[arg(long)]
    content: bool,

    /// Seed of the pass orders.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Also write the result as JSON.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Seen {
    graphs: usize,
    steps: usize,
    /// Transitions that occurred again.
    again: usize,
    /// Those of them that change the program.
    again_changing: usize,
    /// Those that led elsewhere, by pass.
    contradictions: BTreeMap<String, usize>,
    examples: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(20)?;
    let mut programs: Vec<_> = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        xla_gym_data::Benchmark::Graph(graph) => graph.size() <= args.up_to,
        _ => true,
    });
    let programs: Vec<_> = programs.into_iter().step_by(args.every.max(1)).collect();
    let passes = graphs::usable_passes(&engine);
    let bar = graphs::progress(programs.len() as u64, "graphs");
    let seen: Mutex<Seen> = Mutex::default();
    on_all_cores(programs.len(), |index| {
        let mut loaded = engine.load(&programs[index].source()?)?;
        let mut start = graphs::start_session(&mut loaded, "emitted")?;
        let mut known: HashMap<(Fingerprint, PassId), (Option<Fingerprint>, String)> =
            HashMap::new();
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(index as u64);
        let mut own = Seen { graphs: 1, ..Seen::default() };
        // Few passes that do something meet in the same states more often than all.
        let mut useful = Vec::new();
        for &pass in &passes {
            let step = start.fork()?.apply(pass, Observe::NOTHING);
            if matches!(step, Ok(step) if step.changed) {
                useful.push(pass);
            }
        }
        useful.shuffle(&mut rng);
        useful.truncate(args.passes);
        for _ in 0..args.episodes {
            let mut session = start.fork()?;
            for _ in 0..args.length {
                let Some(&pass) = useful.choose(&mut rng) else { break };
                let what = if args.content { Observe::FINGERPRINT } else { Observe::EXACT };
                let from = identity(&session.observe(what)?)?;
                let to = match session.apply(pass, what) {
                    Ok(step) => Some(identity(&step.observation)?),
                    Err(EngineError::Pass(_)) => None,
                    Err(error) => return Err(error.into()),
                };
                own.steps += 1;
                let steps: Vec<&str> =
                    session.steps().iter().map(|pass| engine.pass_name(*pass)).collect();
                let steps = steps.join(",");
                let Some((before, other)) = known.insert((from, pass), (to, steps.clone())) else {
                    continue;
                };
                own.again += 1;
                own.again_changing += usize::from(to.is_some_and(|to| to != from));
                if before != to {
                    let name = engine.pass_name(pass).to_owned();
                    let graph = programs[index].name();
                    own.examples.push(format!("{graph}: {steps} against {other}"));
                    *own.contradictions.entry(name).or_default() += 1;
                }
            }
        }
        let mut seen = lock(&seen);
        seen.graphs += 1;
        seen.steps += own.steps;
        seen.again += own.again;
        seen.again_changing += own.again_changing;
        for (pass, count) in own.contradictions {
            *seen.contradictions.entry(pass).or_default() += count;
        }
        seen.examples.extend(own.examples.into_iter().take(2));
        bar.inc(1);
        anyhow::Ok(())
    })?;
    bar.finish_and_clear();
    let seen = seen.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    println!(
        "{} graphs, {} steps; {} transitions occurred again, {} of them change the program; \
         led elsewhere: {}",
        seen.graphs,
        seen.steps,
        seen.again,
        seen.again_changing,
        seen.contradictions.values().sum::<usize>(),
    );
    for (pass, count) in &seen.contradictions {
        println!("  {pass}: {count}");
    }
    if let Some(path) = &args.output {
        std::fs::write(path, serde_json::to_string_pretty(&seen)? + "\n")?;
    }
    Ok(())
}

fn identity(seen: &Observation) -> Result<Fingerprint> {
    seen.exact.or(seen.fingerprint).ok_or_else(|| anyhow!("the worker gave no identity"))
}
