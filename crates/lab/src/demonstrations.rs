//! Good orders for training graphs, by search, for agents to learn by heart.

use std::{
    collections::HashSet,
    fs::File,
    io::Write,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{EngineConfig, on_all_cores, protocol::PassId};
use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_optimize::coreset;
use xla_gym_search::{Budget, Goal, Method, Search, minimise, search};

use crate::graphs;

/// Good orders for training graphs, by search, for agents to learn by heart.
///
/// Results are written as they come; a run that is started again goes on where it ended.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1:all/train".to_owned()])]
    benchmarks: Vec<String>,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 5000)]
    up_to: u64,

    /// Passes of each search.
    #[arg(long, default_value_t = 1000)]
    budget: u64,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where to write the orders, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Row {
    benchmark: String,
    passes: Vec<String>,
    initial: u64,
    default: u64,
    operations: u64,
}

pub fn run(args: Args) -> Result<()> {
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.counts.instructions <= args.up_to && graph.default.is_ok(),
        _ => true,
    });
    let before = std::fs::read_to_string(&args.output).unwrap_or_default();
    let done: HashSet<String> = before
        .lines()
        .map(|line| Ok(serde_json::from_str::<Row>(line)?.benchmark))
        .collect::<Result<_>>()
        .with_context(|| args.output.display().to_string())?;
    programs.retain(|program| !done.contains(&program.name()));
    if programs.is_empty() {
        return Ok(());
    }
    let file = Mutex::new(File::options().create(true).append(true).open(&args.output)?);
    let bar = graphs::progress(programs.len() as u64, "graphs");
    on_all_cores(programs.len(), |index| {
        // A world for each: what is remembered of one graph is of no use to another.
        let found = Benchmarks { programs: vec![programs[index].clone()], skipped: Vec::new() };
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..EngineConfig::xla()? },
            ..WorldConfig::xla()?
        };
        let world = Arc::new(World::with_programs(config, found)?);
        let row = demonstrate(&world, &args).with_context(|| world.benchmark_name(0).to_owned())?;
        let line = serde_json::to_string(&row)? + "\n";
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())?;
        bar.inc(1);
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// The shortest order that a search finds for the only graph of a world.
fn demonstrate(world: &Arc<World>, args: &Args) -> Result<Row> {
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(args.budget),
        seed: args.seed,
        goal: Goal::default(),
        policy: None,
        prefix: Vec::new(),
        first: coreset(world.engine()),
        stop: Arc::default(),
    };
    let found = search(&task, &*Method::Evolve.optimizer(), &|_, _| {})?;
    let best = &found.candidates[0];
    let operations = best.state.counts.operations;
    let good = |walk: &mut Walk| Ok(walk.state().counts.operations <= operations);
    let passes: Vec<PassId> = minimise(world, 0, &best.passes, good)?;
    let defaults = world.defaults(0)?;
    Ok(Row {
        benchmark: world.benchmark_name(0).to_owned(),
        passes: passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect(),
        initial: defaults.initial,
        default: defaults.optimised,
        operations,
    })
}
