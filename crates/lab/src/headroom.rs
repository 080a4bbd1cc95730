//! What there is to win.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Result;
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use xla_gym_common::on_all_cores;
use xla_gym_data::{Graph, Library, Side, Split};
use xla_gym_engine::{
    Engine, Session,
    protocol::{Observe, PassId},
};
use xla_gym_profile::{Finish, apply_all, finish};
use xla_gym_xla_profile::NORMALIZED;

use crate::graphs::{self, END, MIDDLE, median};

/// What there is to win: the best of some random pass orders on a sample of graphs.
///
/// Starts are normalized, so that random orders rarely crash. The order ratio's default is
/// replayed from the same start. The best order by operations is then sent through the pipeline
/// for the legal ratio and the kernels.
#[derive(clap::Args)]
pub struct Args {
    /// Graphs in the sample, spread evenly over the test sides of the splits.
    #[arg(long, default_value_t = 40)]
    graphs: usize,

    /// Random orders for each.
    #[arg(long, default_value_t = 200)]
    tries: u32,

    /// Most passes in an order.
    #[arg(long, default_value_t = 40)]
    length: usize,

    /// How many of the best orders are sent through the pipeline.
    #[arg(long, default_value_t = 5)]
    finalists: usize,

    /// Graphs with more instructions are left out.
    #[arg(long, default_value_t = 8000)]
    up_to: u64,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Write the result as JSON.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    super_family: String,
    splits: BTreeMap<Split, Side>,
    instructions: u64,
    order: Option<f64>,
    legal: Option<f64>,
    kernels: Option<f64>,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(20)?;
    let library = Library::hlo_v1()?;
    let sample = sample(library, &args);
    let bar = graphs::progress(sample.len() as u64, "graphs");
    let mut rows = on_all_cores(sample.len(), |index| {
        let row = measure(&engine, library, sample[index], &args)?;
        bar.inc(1);
        anyhow::Ok(row)
    })?;
    bar.finish_and_clear();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    print(&rows, &args);
    if let Some(path) = &args.output {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    Ok(())
}

/// As many graphs of each super-family as its share of the test graphs, evenly by size.
fn sample<'a>(library: &'a Library, args: &Args) -> Vec<&'a Graph> {
    let mut graphs: Vec<&Graph> = library
        .manifest()
        .graphs
        .iter()
        .filter(|graph| graph.splits.values().any(|side| *side == Side::Test))
        .filter(|graph| graph.size() <= args.up_to && graph.default.is_ok())
        .collect();
    graphs.sort_by_key(|graph| (&graph.super_family, graph.size()));
    let count = args.graphs.min(graphs.len());
    (0..count).map(|i| graphs[i * graphs.len() / count]).collect()
}

fn measure(engine: &Engine, library: &Library, graph: &Graph, args: &Args) -> Result<Row> {
    let mut session = engine.load(&library.source(graph)?)?;
    let default = finish(&mut session, &Finish::default())?;
    let mut start = graphs::start_session(&mut session, NORMALIZED)?;
    let mut by_default = start.fork()?;
    apply_all(&mut by_default, &graphs::own_order(&session, &default)?)?;
    let initial = graphs::counts(&mut start)?.primary();
    let ratio = |initial: u64, default: u64, result: u64| {
        (initial > default)
            .then(|| (initial as f64 - result as f64) / (initial as f64 - default as f64))
    };

    let passes: Vec<PassId> = graphs::usable_passes(engine)
        .into_iter()
        .filter(|pass| {
            let pass = &engine.hello().passes[usize::from(pass.0)];
            !pass.lossy && matches!(pass.kind.as_str(), "simplifier" | "call graph" | "loop")
        })
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let mut results: Vec<(u64, Session)> = Vec::new();
    for _ in 0..args.tries {
        let length = rng.random_range(args.length / 4..=args.length);
        let order: Vec<PassId> =
            (0..length).filter_map(|_| passes.choose(&mut rng).copied()).collect();
        let mut own = start.fork()?;
        apply_all(&mut own, &order)?;
        let seen = own.observe(Observe::COUNTS | Observe::VERDICT)?;
        if let (Some(counts), Some(Ok(()))) = (seen.counts, seen.verdict) {
            results.push((counts.primary(), own));
            results.sort_by_key(|(operations, _)| *operations);
            results.truncate(args.finalists);
        }
    }

    let bare = finish(&mut session, &graphs::without_optional())?;
    let (mut legal, mut kernels) = (None::<f64>, None::<f64>);
    let better = |best: Option<f64>, new: f64| Some(best.map_or(new, |best| best.max(new)));
    let best = results.first().map(|(operations, _)| *operations);
    for (_, result) in &mut results {
        // A result that the pipeline refuses is not a result.
        let Ok(replaced) = finish(result, &graphs::without_optional()) else { continue };
        let (before, after) = (bare.counts[MIDDLE].primary(), default.counts[MIDDLE].primary());
        if let Some(value) = ratio(before, after, replaced.counts[MIDDLE].primary()) {
            legal = better(legal, value);
        }
        let value =
            default.counts[END].primary() as f64 / replaced.counts[END].primary().max(1) as f64;
        kernels = better(kernels, value);
    }
    Ok(Row {
        id: graph.id.clone(),
        super_family: graph.super_family.clone(),
        splits: graph.splits.clone(),
        instructions: graph.size(),
        order: match best {
            Some(best) => ratio(initial, graphs::counts(&mut by_default)?.primary(), best),
            None => None,
        },
        legal,
        kernels,
    })
}

fn print(rows: &[Row], args: &Args) {
    println!(
        "Best of {} random orders of up to {} passes on {} graphs, from the normalized start; \
         geometric mean (median) of the ratio to XLA's own result, more than 1 is better:",
        args.tries,
        args.length,
        rows.len()
    );
    println!("| split | graphs | order ratio | legal ratio | kernels |\n|---|---|---|---|---|");
    for split in Split::HLO_V1 {
        let side: Vec<&Row> =
            rows.iter().filter(|row| row.splits.get(&split) == Some(&Side::Test)).collect();
        println!(
            "| {split} test | {} | {} | {} | {} |",
            side.len(),
            summary(side.iter().map(|row| row.order)),
            summary(side.iter().map(|row| row.legal)),
            summary(side.iter().map(|row| row.kernels)),
        );
    }
}

fn summary(values: impl Iterator<Item = Option<f64>>) -> String {
    let all: Vec<Option<f64>> = values.collect();
    let mut positive: Vec<f64> = all.iter().flatten().copied().filter(|v| *v > 0.0).collect();
    if positive.is_empty() {
        return "–".to_owned();
    }
    let mean = positive.iter().map(|v| v.ln()).sum::<f64>() / positive.len() as f64;
    let left_out = all.len() - positive.len();
    let note = if left_out > 0 { format!(", {left_out} undefined") } else { String::new() };
    format!("{:.3} ({:.3}{note})", mean.exp(), median(&mut positive))
}
