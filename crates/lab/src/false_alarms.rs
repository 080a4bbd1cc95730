//! Every graph beside what XLA's own pipeline makes of it: the oracle must call them equal.

use std::{collections::HashSet, path::PathBuf, time::Instant};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use xla_gym_common::on_all_cores;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{
    Engine, Session, Source,
    protocol::{Finish, Form, Observe, PipelineOptions, Signature},
};
use xla_gym_oracle::{Options, ReferenceKind};
use xla_gym_rows::{self as rows, Appender};

use crate::graphs;

/// Every graph beside what XLA's own pipeline makes of it, before layouts are chosen: how often the
/// oracle raises a false alarm, what it cannot compare and why, and what it costs.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values = ["hlo-v1:all/train", "hlo-v1:all/test"])]
    benchmarks: Vec<String>,

    /// Leave out graphs with more instructions.
    #[arg(long, default_value_t = u64::MAX)]
    up_to: u64,

    /// Every so many of the graphs.
    #[arg(long, default_value_t = 1)]
    every: usize,

    /// Sets of inputs.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Who says what a graph computes.
    #[arg(long, default_value_t = ReferenceKind::Auto)]
    reference: ReferenceKind,

    /// Where to write results, one line of JSON each; graphs that are in it are done.
    #[arg(long, short)]
    output: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    graph: String,
    instructions: u64,
    outcome: String,
    why: String,
    /// Largest difference, in units of what is allowed.
    worst: f64,
    finite: f64,
    varying: f64,
    unstable: f64,
    one_sided: usize,
    decisions: usize,
    higher_precision: bool,
    interpreted: u32,
    reference_seconds: f64,
    compare_seconds: f64,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(30)?;
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    let size = |program: &Benchmark| match program {
        Benchmark::Graph(graph) => graph.size(),
        _ => 0,
    };
    let mut seen = HashSet::new();
    programs.retain(|program| size(program) <= args.up_to && seen.insert(program.name()));
    programs.sort_by_key(size);
    let done: HashSet<String> =
        rows::read_if_any::<Row>(&args.output)?.into_iter().map(|row| row.graph).collect();
    let programs: Vec<Benchmark> = programs
        .into_iter()
        .step_by(args.every.max(1))
        .filter(|program| !done.contains(&program.name()))
        .collect();
    let file = Appender::open(&args.output)?;
    let bar = graphs::progress(programs.len() as u64, "graphs");
    on_all_cores(programs.len(), |index| {
        let program = &programs[index];
        let row = compare(&engine, program, size(program), &args).unwrap_or_else(|error| Row {
            graph: program.name(),
            instructions: size(program),
            outcome: "error".to_owned(),
            why: format!("{error:#}"),
            worst: 0.0,
            finite: 0.0,
            varying: 0.0,
            unstable: 0.0,
            one_sided: 0,
            decisions: 0,
            higher_precision: false,
            interpreted: 0,
            reference_seconds: 0.0,
            compare_seconds: 0.0,
        });
        file.add(&row)?;
        bar.inc(1);
        anyhow::Ok(())
    })?;
    bar.finish_and_clear();
    print(&rows::read_if_any(&args.output)?);
    Ok(())
}

fn compare(engine: &Engine, program: &Benchmark, size: u64, args: &Args) -> Result<Row> {
    let mut original = engine.load(&program.source()?)?;
    let (trials, seed, reference) = (args.trials, args.seed, args.reference);
    let options = Options { trials, seed, reference, ..Options::default() };
    let begin = Instant::now();
    let reference = graphs::reference(&mut original, options)?;
    let reference_seconds = begin.elapsed().as_secs_f64();
    let mut optimized = after_pipeline(engine, &mut original)?;
    // The pipeline splits sharded programs, and a part takes other inputs than the whole.
    if optimized.signature()?.inputs.len() != original.signature()?.inputs.len()
        || !same_shapes(&optimized.signature()?, &original.signature()?)
    {
        optimized = original.fork()?;
    }
    let begin = Instant::now();
    let report = reference.compare(&mut optimized, &Finish::default())?;
    let share = |part: u64| part as f64 / report.compared.elements.max(1) as f64;
    let summary = report.summary();
    let (outcome, why) = match summary.split_once(": ") {
        Some((outcome, why)) => (outcome.to_owned(), why.to_owned()),
        None if report.is_equal() => (summary, String::new()),
        None => ("different".to_owned(), format!("{summary}; {:?}", report.verdict)),
    };
    Ok(Row {
        graph: program.name(),
        instructions: size,
        outcome,
        why: why.chars().take(600).collect(),
        worst: report.worst,
        finite: share(report.compared.finite),
        varying: share(report.compared.varying),
        unstable: share(report.compared.unstable),
        one_sided: report.one_sided.len(),
        decisions: report.decisions,
        higher_precision: report.higher_precision,
        interpreted: report.interpreted,
        reference_seconds,
        compare_seconds: begin.elapsed().as_secs_f64(),
    })
}

fn same_shapes(a: &Signature, b: &Signature) -> bool {
    a.inputs.iter().zip(&b.inputs).all(|(a, b)| a.dims == b.dims)
}

/// What XLA's own pipeline makes of a program, before it chooses layouts.
fn after_pipeline(engine: &Engine, session: &mut Session) -> Result<Session> {
    let options = PipelineOptions { stages: true, keep: true, ..PipelineOptions::default() };
    let mut scratch = session.scratch()?;
    let report = scratch.pipeline(&options, Observe::NOTHING)?;
    let middle = report.stages[graphs::MIDDLE].as_ref().and_then(|stage| stage.program);
    let middle = middle.ok_or_else(|| anyhow!("the pipeline has no middle"))?;
    let bytes = scratch.print(middle, Form::BINARY)?;
    Ok(engine.load(&Source::from_bytes("after the pipeline", bytes)?)?)
}

fn print(rows: &[Row]) {
    let mut outcomes: Vec<&str> = rows.iter().map(|row| row.outcome.as_str()).collect();
    outcomes.sort_unstable();
    for group in outcomes.chunk_by(|a, b| a == b) {
        println!("{:6}  {}", group.len(), group[0]);
    }
    for row in rows.iter().filter(|row| row.outcome != "equal") {
        println!("  {} ({}): {}", row.graph, row.outcome, row.why);
    }
    let total = |get: fn(&Row) -> f64| rows.iter().map(get).sum::<f64>();
    println!(
        "reference {:.0} s, comparison {:.0} s in all; largest difference of those that are equal {:.3}",
        total(|row| row.reference_seconds),
        total(|row| row.compare_seconds),
        rows.iter().filter(|row| row.outcome == "equal").map(|row| row.worst).fold(0.0, f64::max)
    );
}
