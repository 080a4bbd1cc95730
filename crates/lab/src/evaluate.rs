//! What `optimize` is worth: many graphs, methods side by side at equal budgets.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use xla_gym_common::on_all_cores;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_env::World;
use xla_gym_optimize::{Judge, Objective, Task, optimize};
use xla_gym_oracle::Verdict;
use xla_gym_profile::{Figures, Ratio};
use xla_gym_rows::{self as rows, Appender};
use xla_gym_search::{Budget, Method};
use xla_gym_xla_profile::{KERNELS, NORMALIZED};

use crate::graphs;

/// What `optimize` is worth: order ratio, legal ratio and kernels on many graphs, methods side by
/// side at equal budgets.
///
/// Every answer is proven like that of `xla-gym optimize`. Results are written as they come; a run
/// that is started again goes on where it ended. Effects of passes are remembered between the
/// searches on a graph, which changes how long they take and not what they find.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = [
        "hlo-v1:gpt2/test".to_owned(),
        "hlo-v1:diverse/test".to_owned(),
        "hlo-v1:unseen/test".to_owned(),
    ])]
    benchmarks: Vec<String>,

    /// Every how manieth of them.
    #[arg(long, default_value_t = 1)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = u64::MAX)]
    up_to: u64,

    /// Runs of passes.
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    budgets: Vec<u64>,

    /// Which methods. Those that begin with `coreset+` try orders first that did well on training
    /// graphs; `coreset` tries nothing else.
    #[arg(long, value_delimiter = ',', default_value = "coreset+evolve")]
    methods: Vec<String>,

    /// What is to be made small.
    #[arg(long, value_delimiter = ',', default_value = "operations,legal")]
    objectives: Vec<String>,

    /// Start from a normal form of the programs.
    #[arg(long, alias = "normalise")]
    normalize: bool,

    /// Seeds.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,

    /// Stop beginning new graphs after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,

    /// Print the table of what is in the file, and run nothing.
    #[arg(long)]
    only_table: bool,

    /// Where to write results, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    graph: String,
    /// The splits of which it is a test graph.
    splits: Vec<String>,
    method: String,
    objective: String,
    budget: u64,
    seed: u64,
    order: Ratio,
    legal: Ratio,
    kernels_default: u64,
    kernels: u64,
    /// Whether something better than the default was found.
    better: bool,
    /// Of what was found: equal, not-comparable.
    outputs: Option<String>,
    /// The largest difference, in units of the tolerance.
    worst_difference: f64,
    dropped: usize,
    charged: u64,
    passes: Vec<String>,
    disabled: usize,
    seconds: f64,
}

impl Row {
    fn key(&self) -> (String, String, String, u64, u64) {
        let Row { graph, method, objective, budget, seed, .. } = self;
        (graph.clone(), method.clone(), objective.clone(), *budget, *seed)
    }
}

pub fn run(args: Args) -> Result<()> {
    let mut rows = rows::read_if_any(&args.output)?;
    if args.only_table {
        print(&rows);
        return Ok(());
    }
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= args.up_to,
        _ => true,
    });
    let mut seen = HashSet::new();
    programs.retain(|program| seen.insert(program.name()));
    let mut programs: Vec<Benchmark> = programs.into_iter().step_by(args.every.max(1)).collect();
    // By size, but every fourth first: if time is short, what was done is of all sizes.
    programs.sort_by_key(|program| match program {
        Benchmark::Graph(graph) => graph.size(),
        _ => 0,
    });
    let programs: Vec<Benchmark> =
        (0..4).flat_map(|first| programs.iter().skip(first).step_by(4).cloned()).collect();
    let done: HashSet<_> = rows.iter().map(Row::key).collect();
    let file = Appender::open(&args.output)?;
    let begin = Instant::now();
    let late = || args.minutes.is_some_and(|m| begin.elapsed().as_secs_f64() > m * 60.0);
    let bar = graphs::progress(programs.len() as u64, "graphs");
    on_all_cores(programs.len(), |index| {
        if !late() {
            let write = |row: &Row| Ok(file.add(row)?);
            let found = evaluate(&programs[index], &args, &done, &write);
            // One graph that cannot be done does not end the others.
            if let Err(error) = found {
                bar.suspend(|| eprintln!("{}: {error:#}", programs[index].name()));
            }
        }
        bar.inc(1);
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    rows = rows::read_if_any(&args.output)?;
    print(&rows);
    Ok(())
}

fn evaluate(
    program: &Benchmark,
    args: &Args,
    done: &HashSet<(String, String, String, u64, u64)>,
    write: &dyn Fn(&Row) -> Result<()>,
) -> Result<()> {
    let mut tasks = Vec::new();
    for objective in &args.objectives {
        for method in &args.methods {
            for &seed in &args.seeds {
                for &budget in &args.budgets {
                    let key = (program.name(), method.clone(), objective.clone(), budget, seed);
                    if !done.contains(&key) {
                        tasks.push(key);
                    }
                }
            }
        }
    }
    if tasks.is_empty() {
        return Ok(());
    }
    let start = if args.normalize { NORMALIZED } else { "emitted" };
    let found = Benchmarks { programs: vec![program.clone()], skipped: Vec::new() };
    let judge = Judge::new(&Arc::new(World::with_programs(graphs::world(start)?, found)?), 0)?;
    let splits = program.test_splits();
    for (graph, method, objective, budget, seed) in tasks {
        let (coreset, name) = match method.strip_prefix("coreset+") {
            Some(name) => (true, name),
            None => (method == "coreset", &*method),
        };
        let by_name = Method::ALL.into_iter().find(|other| other.name() == name);
        let task = Task {
            objective: Objective::parse(&objective, judge.spec())?,
            method: by_name.ok_or_else(|| anyhow!("there is no method {name:?}"))?,
            budget: Budget::passes(budget),
            seed,
            coreset,
            // Shorter orders are no better here.
            shortening: Duration::ZERO,
            ..Task::usual(judge.spec())
        };
        if task.objective.needs_clock() {
            bail!("times are measured by `xla-gym-lab speed`");
        }
        let begin = Instant::now();
        let answer = optimize(&judge, &task, &())?;
        let evidence = &answer.recipe.evidence;
        let ratio = |stage: &str| {
            let found =
                evidence.stage(stage).with_context(|| format!("nothing is said of {stage}"))?;
            anyhow::Ok(found.ratio)
        };
        let kernels = |figures: &Figures| figures.get(KERNELS).unwrap_or_default() as u64;
        let outputs = evidence.outputs.as_ref().map(|report| match &report.verdict {
            Verdict::Equal => "equal".to_owned(),
            Verdict::NotComparable { .. } => "not-comparable".to_owned(),
            other => format!("{other:?}"),
        });
        write(&Row {
            graph,
            splits: splits.clone(),
            method,
            objective,
            budget,
            seed,
            order: ratio("order")?,
            legal: ratio("legal")?,
            kernels_default: kernels(&answer.default),
            kernels: kernels(&answer.figures),
            better: !answer.plan.is_default,
            outputs,
            worst_difference: evidence.outputs.as_ref().map_or(0.0, |report| report.worst),
            dropped: evidence.dropped.len(),
            charged: evidence.search.passes,
            passes: answer.recipe.passes.clone(),
            disabled: answer.recipe.disabled_passes.len(),
            seconds: begin.elapsed().as_secs_f64(),
        })?;
    }
    Ok(())
}

/// Ratios of a group of rows.
#[derive(Default)]
struct Group {
    graphs: HashSet<String>,
    ratios: Vec<f64>,
    undefined: usize,
    kernels: Vec<f64>,
    kernels_worse: usize,
    equal: usize,
    not_comparable: usize,
    default: usize,
}

fn print(rows: &[Row]) {
    println!(
        "| objective | split | method | budget | graphs | searches | ratio | never worse | best | \
         worst | undefined | kernels | never more | equal | not comparable | default kept |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut groups: BTreeMap<(&str, &str, u64, &str), Group> = BTreeMap::new();
    for row in rows {
        for split in &row.splits {
            let key = (&*row.objective, &**split, row.budget, &*row.method);
            let group = groups.entry(key).or_default();
            group.graphs.insert(row.graph.clone());
            let ratio = if row.objective == "operations" { row.order } else { row.legal };
            match ratio.value() {
                Some(ratio) => group.ratios.push(ratio),
                None => group.undefined += 1,
            }
            group.kernels.push(row.kernels_default as f64 / row.kernels.max(1) as f64);
            group.kernels_worse += usize::from(row.kernels > row.kernels_default);
            match row.outputs.as_deref() {
                None => group.default += 1,
                Some("equal") => group.equal += 1,
                Some(_) => group.not_comparable += 1,
            }
        }
    }
    for ((objective, split, budget, method), group) in groups {
        let count = group.ratios.len() + group.undefined;
        let share = |bad: usize, of: usize| (1.0 - bad as f64 / of.max(1) as f64) * 100.0;
        let worse = group.ratios.iter().filter(|ratio| **ratio < 1.0).count();
        println!(
            "| {objective} | {split} | {method} | {budget} | {} | {count} | {:.3} | {:.1}% | {:.3} | \
             {:.3} | {} | {:.3} | {:.1}% | {} | {} | {} |",
            group.graphs.len(),
            geometric_mean(&group.ratios),
            share(worse, group.ratios.len()),
            group.ratios.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
            group.ratios.iter().copied().reduce(f64::min).unwrap_or(f64::NAN),
            group.undefined,
            geometric_mean(&group.kernels),
            share(group.kernels_worse, count),
            group.equal,
            group.not_comparable,
            group.default,
        );
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.max(1e-3).ln()).sum();
    (sum / values.len().max(1) as f64).exp()
}
