//! Run time as the objective: many models, each beside XLA's own pipeline and a control.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use xla_gym_data::Benchmarks;
use xla_gym_env::World;
use xla_gym_optimize::{Judge, Objective, Task, optimize};
use xla_gym_profile::Figures;
use xla_gym_recipe::{Recipe, Timing};
use xla_gym_rows::{self as rows, Appender};
use xla_gym_search::Budget;
use xla_gym_xla_profile::KERNELS;

use crate::graphs;

/// Models of the kinds that people train and serve, small enough for a CPU; test graphs all of them.
const MODELS: [&str; 18] = [
    "hlo-v1/gpt2/forward-4l",
    "hlo-v1/gpt2/gradient-4l",
    "hlo-v1/gpt2/train-2l-adafactor",
    "hlo-v1/gpt2/generate-beam-2l",
    "hlo-v1/bert/forward-classification-4l-pure-bf16",
    "hlo-v1/bert/train-mlm-2l-adamw",
    "hlo-v1/resnet/forward-18l",
    "hlo-v1/resnet/train-10l-lion-mixup-smooth",
    "hlo-v1/vit/forward-4l",
    "hlo-v1/vit/train-2l-adamw",
    "hlo-v1/t5/forward-3l",
    "hlo-v1/t5/train-2l-adamw",
    "hlo-v1/llama/generate-greedy-2l",
    "hlo-v1/llama/train-2l-adamw-clip-norm",
    "hlo-v1/roberta/train-mlm-2l-adamw",
    "hlo-v1/opt/gradient-2l",
    "hlo-v1/mlp/mixer-forward-4l",
    "hlo-v1/rnn/state-space-gradient-3l",
];

/// Run time as the objective: a search of some minutes for each model, its result measured again
/// beside XLA's own pipeline and a second compilation of that.
///
/// What is not better outside the noise falls back to XLA's own order, and counts as 1.
#[derive(clap::Args)]
pub struct Args {
    /// Which programs [default: 18 models of hlo-v1].
    benchmarks: Vec<String>,

    /// Seconds for each.
    #[arg(long, default_value_t = 120.0)]
    seconds: f64,

    /// Which time is to be made small: run-time or compile-time.
    #[arg(long, default_value = "run-time")]
    objective: String,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Print the table of what is in the file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each; what is there is not done again.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Row {
    graph: String,
    objective: String,
    instructions: u64,
    /// Whether something better than the default was found.
    better: bool,
    /// Of what was found, or of the default beside itself.
    timing: Option<Timing>,
    kernels: (f64, f64),
    recipe: Recipe,
}

pub fn run(args: Args) -> Result<()> {
    let mut rows: Vec<Row> = rows::read_if_any(&args.output)?;
    let names: Vec<String> = if args.benchmarks.is_empty() {
        MODELS.iter().map(|&name| name.to_owned()).collect()
    } else {
        args.benchmarks.clone()
    };
    if !args.only_table {
        let programs = Benchmarks::find(&names)?.programs;
        let file = Appender::open(&args.output)?;
        let bar = graphs::progress(programs.len() as u64, "models");
        for program in programs {
            let name = program.name();
            let known = |row: &Row| row.graph == name && row.objective == args.objective;
            if !rows.iter().any(known) {
                let found = Benchmarks { programs: vec![program], skipped: Vec::new() };
                match measure(&name, found, &args) {
                    Ok(row) => {
                        file.add(&row)?;
                        bar.suspend(|| println!("{}", line(&row)));
                        rows.push(row);
                    }
                    // One that cannot be measured does not end the others.
                    Err(error) => bar.suspend(|| eprintln!("{name}: {error:#}")),
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
    print(&rows);
    Ok(())
}

fn measure(name: &str, found: Benchmarks, args: &Args) -> Result<Row> {
    let world = Arc::new(World::with_programs(graphs::world("emitted")?, found)?);
    let judge = Judge::new(&world, 0)?;
    let task = Task {
        objective: Objective::parse(&args.objective, judge.spec())?,
        budget: Budget {
            passes: Some(4000),
            time: Some(Duration::try_from_secs_f64(args.seconds)?),
        },
        seed: args.seed,
        trials: 2,
        ..Task::usual(judge.spec())
    };
    let answer = optimize(&judge, &task, &())?;
    let kernels = |figures: &Figures| figures.get(KERNELS).unwrap_or(0.0);
    let kernels = (kernels(&answer.default), kernels(&answer.figures));
    Ok(Row {
        graph: name.to_owned(),
        objective: args.objective.clone(),
        instructions: answer.recipe.program.instructions,
        better: !answer.plan.is_default,
        timing: answer.recipe.evidence.timing.clone(),
        kernels,
        recipe: answer.recipe,
    })
}

fn line(row: &Row) -> String {
    let Some(timing) = &row.timing else {
        return format!(
            "| {} | {} | 1 (default kept) | | | | | {} |",
            row.graph,
            row.instructions,
            row.recipe.evidence.dropped.last().map_or("nothing was faster", String::as_str)
        );
    };
    let controls: Vec<String> =
        timing.run.controls.iter().map(|control| format!("{:.3}", control.speedup)).collect();
    format!(
        "| {} | {} | {:.3} | {:.3} – {:.3} | {} | {:.3} | {} → {} | {} passes, {} left out |",
        row.graph,
        row.instructions,
        timing.run.speedup,
        timing.run.interval.0,
        timing.run.interval.1,
        controls.join(", "),
        timing.compile.speedup,
        row.kernels.0,
        row.kernels.1,
        row.recipe.passes.len(),
        row.recipe.disabled_passes.len(),
    )
}

fn print(rows: &[Row]) {
    println!(
        "| model | instructions | run time | 95% interval | controls | compile time | kernels | by |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for row in rows {
        println!("{}", line(row));
    }
    for (name, speedup) in [
        ("run time", (|timing| timing.run.speedup) as fn(&Timing) -> f64),
        ("compile time", |timing| timing.compile.speedup),
    ] {
        let all: Vec<f64> =
            rows.iter().map(|row| row.timing.as_ref().map_or(1.0, speedup)).collect();
        let logs: Vec<f64> = all.iter().map(|value| value.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>()
            / (logs.len().max(2) - 1) as f64)
            .sqrt();
        let half = 1.96 * deviation / (logs.len().max(1) as f64).sqrt();
        println!(
            "\n{name}: geometric mean {:.4}× over {} models (95% interval {:.4} to {:.4}), best \
             {:.4}, worst {:.4}; {} kept XLA's own order.",
            mean.exp(),
            all.len(),
            (mean - half).exp(),
            (mean + half).exp(),
            all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            all.iter().copied().fold(f64::INFINITY, f64::min),
            rows.iter().filter(|row| !row.better).count(),
        );
    }
}
