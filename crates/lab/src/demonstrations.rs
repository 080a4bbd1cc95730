//! Good orders for training graphs, by search, for agents to learn by heart.

use std::{
    collections::HashSet,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use xla_gym_agents::TrainedPolicy;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{EngineConfig, on_all_cores, protocol::PassId};
use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_optimize::coreset;
use xla_gym_search::{Budget, Goal, Method, Policy, Search, search};

use crate::graphs;

/// Good orders for training graphs, by search, for agents to learn by heart.
///
/// Searches from the program as emitted, and from the program made legal by XLA's own passes.
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

    /// A policy whose walk each search begins with and whose word it heeds: a name or a file.
    #[arg(long)]
    policy: Option<String>,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where to write the orders, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

/// An order that a search found.
#[derive(Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub benchmark: String,
    /// Whether the order begins at the program made legal.
    #[serde(default)]
    pub legal: bool,
    /// The passes, each of which changes the program.
    pub passes: Vec<String>,
    /// Operations where the order begins.
    pub initial: u64,
    /// Operations after XLA's own order.
    pub default: u64,
    /// Operations after this one.
    pub operations: u64,
}

impl Row {
    /// Reads orders, one line of JSON each.
    pub fn read(path: &Path) -> Result<Vec<Row>> {
        let named = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(named)?;
        let parse = |(number, line)| {
            let at = || format!("{}, line {}", named(), number + 1);
            serde_json::from_str(line).with_context(at)
        };
        text.lines().enumerate().map(parse).collect()
    }
}

pub fn run(args: Args) -> Result<()> {
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.counts.instructions <= args.up_to && graph.default.is_ok(),
        _ => true,
    });
    let policy = args.policy.as_deref().map(TrainedPolicy::find).transpose()?;
    let before = if args.output.exists() { Row::read(&args.output)? } else { Vec::new() };
    let done: HashSet<(String, bool)> =
        before.into_iter().map(|row| (row.benchmark, row.legal)).collect();
    let both = |program: &Benchmark| [false, true].map(|legal| (program.name(), legal));
    programs.retain(|program| !both(program).iter().all(|key| done.contains(key)));
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
        for legal in [false, true] {
            let name = world.benchmark_name(0).to_owned();
            if done.contains(&(name.clone(), legal)) {
                continue;
            }
            let row = demonstrate(&world, legal, policy.as_ref(), &args).context(name)?;
            let line = serde_json::to_string(&row)? + "\n";
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(line.as_bytes())?;
        }
        bar.inc(1);
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// The shortest order that a search finds for the only graph of a world.
fn demonstrate(
    world: &Arc<World>,
    legal: bool,
    policy: Option<&TrainedPolicy>,
    args: &Args,
) -> Result<Row> {
    let prefix = if legal { world.legalising(0)?.to_vec() } else { Vec::new() };
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(args.budget),
        seed: args.seed,
        goal: Goal::default(),
        policy: policy.map(|policy| Arc::new(policy.guide(world)) as Arc<dyn Policy>),
        prefix: prefix.clone(),
        first: coreset(world.engine()),
        stop: Arc::default(),
    };
    let found = search(&task, &*Method::Evolve.optimizer(), &|_, _| {})?;
    let best = &found.candidates[0];
    let operations = best.state.counts.operations;
    let passes = shorten(world, &prefix, &best.passes, operations)?;
    let defaults = world.defaults(0)?;
    let (initial, default) = if legal {
        (defaults.legal_initial, defaults.legal)
    } else {
        (defaults.initial, defaults.optimised)
    };
    Ok(Row {
        legal,
        benchmark: world.benchmark_name(0).to_owned(),
        passes: passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect(),
        initial,
        default,
        operations,
    })
}

/// Leaves out single passes, the last first, while no operation is added.
fn shorten(
    world: &Arc<World>,
    prefix: &[PassId],
    order: &[PassId],
    operations: u64,
) -> Result<Vec<PassId>> {
    // The way that a search returns includes what it was told to begin with.
    let mut order = order[count_applied(world, prefix)?..].to_vec();
    for at in (0..order.len()).rev() {
        let mut rest = order.clone();
        rest.remove(at);
        let mut walk = Walk::begin_after(world, 0, prefix)?;
        for &pass in &rest {
            walk.step(pass)?;
        }
        if walk.state().counts.operations <= operations {
            order = rest;
        }
    }
    Ok(order)
}

/// How many of some passes change the program.
fn count_applied(world: &Arc<World>, passes: &[PassId]) -> Result<usize> {
    Ok(Walk::begin_after(world, 0, passes)?.path().len())
}
