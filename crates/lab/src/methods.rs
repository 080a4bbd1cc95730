//! The methods of search side by side, at equal budgets.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::Result;
use serde::Serialize;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::EngineConfig;
use xla_gym_env::{Start, World, WorldConfig};
use xla_gym_score::{default_passes, run_default};
use xla_gym_search::{Budget, Method, Search, search};

use crate::graphs;

/// The methods of search side by side, at equal budgets: the order ratio on many graphs.
///
/// From the normalised start; XLA's own order is tried first, so that no answer is worse. Nothing
/// is remembered from one search to the next.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1:gpt2/test".to_owned()])]
    benchmarks: Vec<String>,

    /// Every how manieth of them.
    #[arg(long, default_value_t = 1)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 3000)]
    up_to: u64,

    /// Runs of passes.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    budgets: Vec<u64>,

    /// Only these methods.
    #[arg(long, value_delimiter = ',')]
    methods: Vec<String>,

    /// Seeds.
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    seeds: Vec<u64>,

    /// Also write every result as JSON.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    graph: String,
    method: &'static str,
    budget: u64,
    seed: u64,
    initial: u64,
    default: u64,
    result: u64,
    passes: Vec<String>,
    seconds: f64,
}

impl Row {
    /// None if XLA's own order removes nothing.
    fn ratio(&self) -> Option<f64> {
        let reduction = |end: u64| self.initial as f64 - end as f64;
        (self.initial > self.default).then(|| reduction(self.result) / reduction(self.default))
    }
}

pub fn run(args: Args) -> Result<()> {
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.counts.instructions <= args.up_to,
        _ => true,
    });
    let programs: Vec<Benchmark> = programs.into_iter().step_by(args.every.max(1)).collect();
    let bar = graphs::progress(programs.len() as u64, "graphs");
    let mut rows = Vec::new();
    for program in programs {
        search_all(&program, &args, &mut rows)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    print(&rows);
    if let Some(path) = &args.output {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    Ok(())
}

fn search_all(program: &Benchmark, args: &Args, rows: &mut Vec<Row>) -> Result<()> {
    for &seed in &args.seeds {
        for &budget in &args.budgets {
            for method in Method::ALL {
                let named = |name: &String| name == method.name();
                if !args.methods.is_empty() && !args.methods.iter().any(named) {
                    continue;
                }
                let config = WorldConfig {
                    engine: EngineConfig { quarantine: None, ..EngineConfig::xla()? },
                    start: Start::Normalised,
                    ..WorldConfig::xla()?
                };
                let found = Benchmarks { programs: vec![program.clone()], skipped: Vec::new() };
                let world = Arc::new(World::with_programs(config, found)?);
                let mut emitted = world.engine().load(&program.source()?)?;
                let default = run_default(&mut emitted, &[])?;
                let task = Search {
                    world: &world,
                    benchmark: 0,
                    budget: Budget::passes(budget),
                    seed,
                    prefix: Vec::new(),
                    first: vec![default_passes(&emitted, &default)?],
                    stop: Arc::default(),
                };
                let found = search(&task, &*method.optimizer(), &|_, _| {})?;
                let defaults = world.defaults(0)?;
                let best = &found.candidates[0];
                rows.push(Row {
                    graph: program.name(),
                    method: method.name(),
                    budget,
                    seed,
                    initial: defaults.initial,
                    default: defaults.optimised,
                    result: best.state.counts.operations,
                    passes: best
                        .passes
                        .iter()
                        .map(|pass| world.engine().pass_name(*pass).to_owned())
                        .collect(),
                    seconds: found.time.as_secs_f64(),
                });
            }
        }
    }
    Ok(())
}

fn print(rows: &[Row]) {
    println!(
        "| method | budget | searches | order ratio | never worse | best | worst | undefined |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut groups: BTreeMap<(u64, &str), Vec<Option<f64>>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.budget, row.method)).or_default().push(row.ratio());
    }
    for ((budget, method), all) in groups {
        let ratios: Vec<f64> = all.iter().flatten().copied().collect();
        let mean = ratios.iter().map(|ratio| ratio.max(1e-3).ln()).sum::<f64>();
        let worse = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        println!(
            "| {method} | {budget} | {} | {:.3} | {:.1}% | {:.3} | {:.3} | {} |",
            all.len(),
            (mean / ratios.len().max(1) as f64).exp(),
            (1.0 - worse as f64 / ratios.len().max(1) as f64) * 100.0,
            ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            all.len() - ratios.len(),
        );
    }
}
