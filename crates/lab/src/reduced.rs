//! Whether a program with fewer layers stands for the whole.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Instant};

use anyhow::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{World, WorldConfig};
use xla_gym_optimize::{Judge, Plan, reduced};
use xla_gym_profile::{Figure, Figures, Profile};
use xla_gym_rows::{self as rows, Appender};
use xla_gym_xla_profile::{KERNELS, LEGAL, MEMORY, ORDER, Xla, coreset};

use crate::graphs;

/// Whether a program with fewer layers stands for the whole: the same plans on both, and how well
/// what comes of them agrees.
#[derive(clap::Args)]
pub struct Args {
    /// Which programs.
    #[arg(default_values = ["hlo-full-v1"])]
    benchmarks: Vec<String>,

    /// How many plans are tried on each: orders of the coreset, with up to four passes added or left
    /// out at random.
    #[arg(long, default_value_t = 12)]
    plans: usize,

    /// Seed of the changes.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Print the table of a file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each; programs that are in it are done.
    #[arg(long, short)]
    output: PathBuf,
}

/// What is compared.
const FIGURES: [Figure; 4] = [ORDER, LEGAL, KERNELS, MEMORY];

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    program: String,
    operations: u64,
    /// Operations with fewer layers; none if that is not worth while.
    reduced: Option<u64>,
    /// Seconds that all plans took on the whole, and on the other.
    seconds: [f64; 2],
    /// For each plan, what comes of it beside the default: on the whole, and on the other.
    plans: Vec<[Vec<f64>; 2]>,
}

pub fn run(args: Args) -> Result<()> {
    if !args.only_table {
        let done: HashSet<String> =
            rows::read_if_any::<Row>(&args.output)?.into_iter().map(|row| row.program).collect();
        let file = Appender::open(&args.output)?;
        let programs: Vec<Benchmark> = Benchmarks::find(&args.benchmarks)?
            .programs
            .into_iter()
            .filter(|program| !done.contains(&program.name()))
            .collect();
        let bar = graphs::progress(programs.len() as u64, "programs");
        for program in programs {
            let row = compare(program, &args)?;
            file.add(&row)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
    print(&rows::read_if_any(&args.output)?);
    Ok(())
}

fn compare(program: Benchmark, args: &Args) -> Result<Row> {
    let name = program.name();
    let found = Benchmarks { programs: vec![program], skipped: Vec::new() };
    let world = Arc::new(World::with_programs(WorldConfig::new(Arc::new(Xla::default()))?, found)?);
    let whole = Judge::new(&world, 0)?;
    let mut row = Row {
        program: name,
        operations: whole.initial,
        reduced: None,
        seconds: [0.0; 2],
        plans: Vec::new(),
    };
    let Some(small) = reduced(&whole)? else { return Ok(row) };
    row.reduced = Some(small.initial);
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let orders: Vec<Vec<PassId>> = coreset()
        .iter()
        .filter_map(|order| world.engine().passes(order.iter().map(String::as_str)).ok())
        .collect();
    for index in 0..args.plans {
        let mut passes = orders[index % orders.len()].clone();
        for _ in 0..rng.random_range(0..=4) {
            if rng.random() && !passes.is_empty() {
                passes.remove(rng.random_range(0..passes.len()));
            } else {
                let actions = world.actions();
                let pass = actions[rng.random_range(0..actions.len())];
                passes.insert(rng.random_range(0..=passes.len()), pass);
            }
        }
        let plan = Plan::instead(whole.spec(), passes);
        let mut figures = Vec::new();
        for (judge, seconds) in [&whole, &small].into_iter().zip(&mut row.seconds) {
            let begin = Instant::now();
            let judged = judge.judge(&plan)?;
            *seconds += begin.elapsed().as_secs_f64();
            figures.extend(judged.ok().map(|one| beside(&one.figures, &judge.default_figures)));
        }
        if let Ok(pair) = <[Vec<f64>; 2]>::try_from(figures) {
            row.plans.push(pair);
        }
    }
    Ok(row)
}

fn beside(figures: &Figures, default: &Figures) -> Vec<f64> {
    let ratio = |figure| Some(figures.get(figure)? / default.get(figure)?.max(1.0));
    FIGURES.into_iter().map(|figure| ratio(figure).unwrap_or(f64::NAN)).collect()
}

fn print(rows: &[Row]) {
    println!(
        "| program | operations | with fewer layers | time | agreement: {} |",
        FIGURES.map(|figure| Xla::default().spec().figure_name(figure)).join(" | ")
    );
    println!("|---|---|---|---|{}", "---|".repeat(FIGURES.len()));
    for row in rows {
        let Some(small) = row.reduced else {
            println!("| {} | {} | as it is | | | | | |", row.program, row.operations);
            continue;
        };
        let agreement: Vec<String> = (0..FIGURES.len())
            .map(|figure| {
                let pairs: Vec<(f64, f64)> =
                    row.plans.iter().map(|[whole, small]| (whole[figure], small[figure])).collect();
                format!("{:.2}", rank_correlation(&pairs))
            })
            .collect();
        println!(
            "| {} | {} | {small} | {:.2}× | {} |",
            row.program,
            row.operations,
            row.seconds[1] / row.seconds[0],
            agreement.join(" | "),
        );
    }
}

/// Spearman's: 1 where both sides put the plans in the same order.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            below + (equal - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let a = ranks(pairs.iter().map(|pair| pair.0).collect());
    let b = ranks(pairs.iter().map(|pair| pair.1).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt()
}
