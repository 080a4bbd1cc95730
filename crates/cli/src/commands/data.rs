//! `xla-gym data`

mod picture;
mod scan;
mod verify;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Result, bail};
use serde::Serialize;
use xla_gym_common::{Table, grouped, on_all_cores};
use xla_gym_data::{Baseline, Graph, Library, Side, Split};

use crate::{
    context::{Context, time},
    outfile::write_whole,
};

/// The benchmark library: real graphs, with XLA's own result for each.
///
/// An id works wherever a FILE is taken: `xla-gym show hlo-v1/…`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the graphs.
    List(ListArgs),
    /// Show what is known of a graph.
    Show {
        /// Its id.
        id: String,
    },
    /// Sizes, families, splits, opcodes.
    Stats {
        /// Of which data set.
        #[arg(long, default_value = "hlo-v1")]
        set: String,

        /// Draw sizes and opcodes by family into this file.
        #[arg(long, value_name = "OUT")]
        svg: Option<PathBuf>,

        /// Also load every graph into the engine, and time it.
        #[arg(long)]
        load: bool,
    },
    /// Look at your own graphs: which can be used, how large they are, what XLA makes of them.
    Scan(scan::Args),
    /// Check every graph against the real compiler.
    Verify(verify::Args),
}

#[derive(clap::Args)]
struct ListArgs {
    /// Only graphs whose id contains this.
    filter: Option<String>,

    /// Only graphs of this split.
    #[arg(long, value_parser = parse_split)]
    split: Option<Split>,

    /// Only this side of the split: train or test.
    #[arg(long, requires = "split", value_parser = parse_side)]
    side: Option<Side>,

    /// Print ids only.
    #[arg(long)]
    ids: bool,
}

fn parse_split(text: &str) -> Result<Split, String> {
    Split::ALL
        .into_iter()
        .find(|split| split.to_string() == text)
        .ok_or_else(|| "there are: gpt2, diverse, unseen, full-size".to_owned())
}

fn parse_side(text: &str) -> Result<Side, String> {
    match text {
        "train" => Ok(Side::Train),
        "test" => Ok(Side::Test),
        _ => Err("there are: train, test".to_owned()),
    }
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List(args) => list(context, args)?,
        Command::Show { id } => show(context, Library::of_id(&id)?.graph(&id)?)?,
        Command::Stats { set, svg, load } => stats(context, named(&set)?, svg, load)?,
        Command::Scan(args) => return scan::run(context, args),
        Command::Verify(args) => return verify::run(context, named(&args.set)?, args),
    }
    Ok(ExitCode::SUCCESS)
}

fn named(name: &str) -> Result<&'static Library> {
    let names = || Library::all().map(|all| all.iter().map(|set| &*set.manifest().name));
    let Some(library) = Library::named(name)? else {
        bail!(
            "there is no data set {name:?}; there are: {}",
            names()?.collect::<Vec<_>>().join(", ")
        );
    };
    Ok(library)
}

fn list(context: &Context, args: ListArgs) -> Result<()> {
    let wanted = |graph: &&Graph| {
        args.filter.as_ref().is_none_or(|text| graph.id.contains(text.as_str()))
            && args.split.is_none_or(|split| match (graph.splits.get(&split), args.side) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(side), Some(wanted)) => *side == wanted,
            })
    };
    let all = Library::all()?.iter().flat_map(|library| &library.manifest().graphs);
    let graphs: Vec<&Graph> = all.filter(wanted).collect();
    if context.json() {
        return context.print_json(&graphs);
    }
    if args.ids {
        let ids: String = graphs.iter().map(|graph| format!("{}\n", graph.id)).collect();
        return context.print(&ids);
    }
    let mut table =
        Table::new(&["id", ">instructions", ">operations", ">default", ">kernels", "what it is"]);
    for graph in graphs {
        let default = graph.default.as_ref().ok();
        table.row([
            graph.id.clone(),
            grouped(graph.size()),
            grouped(of(&graph.counts, "operations")),
            default.map_or_else(|| "–".to_owned(), |default| whole(default, "optimised")),
            default.map_or_else(|| "–".to_owned(), |default| whole(default, "kernels")),
            graph.what.clone(),
        ]);
    }
    context.print(&table.render())
}

/// A count of a manifest.
fn of(counts: &BTreeMap<String, u64>, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or_default()
}

/// A figure of the compiler's own result.
fn whole(default: &Baseline, name: &str) -> String {
    grouped(default.get(name) as u64)
}

fn show(context: &Context, graph: &Graph) -> Result<()> {
    if context.json() {
        return context.print_json(graph);
    }
    let mut table = Table::new(&[&graph.id, ""]);
    let mut line = |name: &str, value: String| table.row([name.to_owned(), value]);
    line("what it is", graph.what.clone());
    line("family", format!("{} ({})", graph.family, graph.super_family));
    line("kind", graph.kind.clone());
    line("made by", graph.framework.clone());
    for (name, value) in &graph.options {
        line(&format!("  {name}"), value.to_string().trim_matches('"').to_owned());
    }
    for (split, side) in &graph.splits {
        line(&format!("split {split}"), side.to_string());
    }
    for (name, count) in &graph.counts {
        line(name, grouped(*count));
    }
    match &graph.default {
        Ok(default) => {
            line("XLA's optimization passes (D)", whole(default, "optimised"));
            line("legal, without optional passes (I′)", whole(default, "legal_initial"));
            line("legal, by default (D′)", whole(default, "legal_default"));
            line("kernels by default", whole(default, "kernels"));
            line("kernels without optional passes", whole(default, "kernels_without_optional"));
            line("time of the pipeline", format!("{} ms", default.get("millis")));
        }
        Err(reason) => line("XLA's own pipeline", format!("refuses it: {reason}")),
    }
    line("fingerprint", graph.fingerprint.to_string());
    line("sha256", graph.sha256.clone());
    context.print(&table.render())
}

/// The kinds of opcodes that passes care about.
const CLASSES: [&str; 22] = [
    "while",
    "conditional",
    "call",
    "sort",
    "topk",
    "gather",
    "scatter",
    "dot",
    "dot with batch dimensions",
    "convolution",
    "reduce-window",
    "select-and-scatter",
    "rng-bit-generator",
    "cholesky",
    "triangular-solve",
    "fft",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "custom-call",
    "bf16",
];

#[derive(Serialize)]
struct Stats {
    graphs: usize,
    archive_bytes: usize,
    families: BTreeMap<String, Sizes>,
    splits: Vec<SplitRow>,
    opcode_classes: BTreeMap<&'static str, usize>,
    load_seconds: Option<f64>,
}

#[derive(Serialize)]
struct Sizes {
    graphs: usize,
    smallest: u64,
    median: u64,
    largest: u64,
}

#[derive(Serialize)]
struct SplitRow {
    split: String,
    graphs: usize,
    median_instructions: u64,
    largest: u64,
    operations: u64,
    after_default: u64,
    kernels: u64,
}

fn stats(context: &Context, library: &Library, svg: Option<PathBuf>, load: bool) -> Result<()> {
    let graphs = &library.manifest().graphs;
    let mut families: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for graph in graphs {
        families.entry(graph.family.clone()).or_default().push(graph.size());
    }
    let mut splits = Vec::new();
    for split in Split::ALL {
        for side in [Side::Train, Side::Test] {
            splits.push(split_row(split, side, library.manifest().side(split, side)));
            splits.pop_if(|row| row.graphs == 0);
        }
    }
    let stats = Stats {
        graphs: graphs.len(),
        archive_bytes: library.archive_bytes(),
        families: families.into_iter().map(|(family, sizes)| (family, summary(sizes))).collect(),
        splits,
        opcode_classes: CLASSES
            .into_iter()
            .map(|class| Ok((class, count(library, graphs, class)?)))
            .collect::<Result<_>>()?,
        load_seconds: load.then(|| load_all(context, library)).transpose()?,
    };
    if let Some(path) = svg {
        write_whole(&path, picture::draw(graphs).as_bytes())?;
    }
    if context.json() { context.print_json(&stats) } else { context.print(&render(&stats)) }
}

/// How many graphs have an opcode class.
fn count(library: &Library, graphs: &[Graph], class: &str) -> Result<usize> {
    let mut count = 0;
    for graph in graphs {
        count += usize::from(match class {
            "bf16" => graph.bf16,
            "dot with batch dimensions" => {
                let text = library.source(graph)?.bytes;
                text.windows(BATCH.len()).any(|part| part == BATCH)
            }
            _ => graph.opcodes.contains_key(class),
        });
    }
    Ok(count)
}

/// How HLO text says it.
const BATCH: &[u8] = b"lhs_batch_dims={0";

fn summary(mut sizes: Vec<u64>) -> Sizes {
    sizes.sort_unstable();
    Sizes {
        graphs: sizes.len(),
        smallest: sizes.first().copied().unwrap_or(0),
        median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
        largest: sizes.last().copied().unwrap_or(0),
    }
}

fn split_row<'a>(split: Split, side: Side, graphs: impl Iterator<Item = &'a Graph>) -> SplitRow {
    let graphs: Vec<&Graph> = graphs.collect();
    let sizes = summary(graphs.iter().map(|graph| graph.size()).collect());
    let defaults = graphs.iter().filter_map(|graph| graph.default.as_ref().ok());
    SplitRow {
        split: format!("{split} {side}"),
        graphs: graphs.len(),
        median_instructions: sizes.median,
        largest: sizes.largest,
        operations: defaults.clone().map(|default| default.get("initial") as u64).sum(),
        after_default: defaults.clone().map(|default| default.get("optimised") as u64).sum(),
        kernels: defaults.map(|default| default.get("kernels") as u64).sum(),
    }
}

/// Seconds to load every graph, on all cores.
fn load_all(context: &Context, library: &Library) -> Result<f64> {
    let engine = context.engine(Path::new(""))?;
    let progress = context.progress();
    progress.doing("loading");
    let graphs = &library.manifest().graphs;
    progress.counting(graphs.len() as u64, "graphs");
    let begin = Instant::now();
    on_all_cores(graphs.len(), |index| {
        engine.load(&library.source(&graphs[index])?)?;
        progress.advance();
        anyhow::Ok(())
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

fn render(stats: &Stats) -> String {
    let mut families =
        Table::new(&["family", ">graphs", ">smallest", ">median", ">largest (instructions)"]);
    for (family, sizes) in &stats.families {
        families.row([
            family.clone(),
            sizes.graphs.to_string(),
            grouped(sizes.smallest),
            grouped(sizes.median),
            grouped(sizes.largest),
        ]);
    }
    let mut splits = Table::new(&[
        "split",
        ">graphs",
        ">median size",
        ">largest",
        ">operations",
        ">after XLA's passes",
        ">kernels",
    ]);
    for row in &stats.splits {
        splits.row([
            row.split.clone(),
            row.graphs.to_string(),
            grouped(row.median_instructions),
            grouped(row.largest),
            grouped(row.operations),
            grouped(row.after_default),
            grouped(row.kernels),
        ]);
    }
    let mut classes = Table::new(&["in graphs with", ">graphs"]);
    for (class, count) in &stats.opcode_classes {
        classes.row([(*class).to_owned(), count.to_string()]);
    }
    let mut out = format!(
        "{} graphs of {} families, {:.1} MB packed\n\n{}\n{}\n{}",
        stats.graphs,
        stats.families.len(),
        stats.archive_bytes as f64 / 1e6,
        families.render(),
        splits.render(),
        classes.render()
    );
    if let Some(seconds) = stats.load_seconds {
        let spent = time(std::time::Duration::from_secs_f64(seconds));
        out.push_str(&format!("\nall graphs loaded in {spent}\n"));
    }
    out
}
