//! `xla-gym optimize`

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use serde::Serialize;
use signal_hook::consts::SIGINT;
use xla_gym_data::Benchmarks;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_env::{CacheConfig, Start, Walk, World, WorldConfig};
use xla_gym_oracle::{Options, Reference, Report, Verdict};
use xla_gym_score::{DefaultRun, OPTIONAL, Ratio, default_passes, run_default};
use xla_gym_search::{Budget, Found, Method, Search, StopReason, minimise, search};

use super::score::describe;
use crate::{
    context::{Context, grouped, time},
    outfile::{OutFile, write_whole},
    table::Table,
};

/// Find a better pass order than XLA's own.
///
/// Searches for an order that leaves few operations, sends the best through XLA's real pipeline
/// without its optional passes, and takes the one that does best there. The answer is verified,
/// compiled, and run beside the original; where nothing beats XLA's own order, that is the answer.
/// Ctrl-C ends the search and keeps the best so far.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: String,

    /// How to search.
    #[arg(long, value_enum, default_value_t = MethodName::Evolve)]
    method: MethodName,

    /// Runs of passes, at most.
    #[arg(long, default_value_t = 2000, value_name = "PASSES")]
    budget: u64,

    /// Seconds, at most. With it, results depend on the machine.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,

    /// What decides among the best.
    #[arg(long, value_enum, default_value_t = Objective::Legal)]
    objective: Objective,

    /// Start from the program as emitted, not from the normal form on which passes rarely crash.
    #[arg(long)]
    as_emitted: bool,

    /// Seed of the search and of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Sets of inputs on which outputs are compared.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// A file in which the effects of passes are remembered, shared between runs.
    #[arg(long, value_name = "PATH")]
    cache: Option<PathBuf>,

    /// Write the result.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,

    /// Write the recipe, as JSON.
    #[arg(long, value_name = "OUT")]
    recipe: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodName {
    Random,
    Greedy,
    Beam,
    Evolve,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Objective {
    /// Operations just before layout assignment, where the program is legal for the CPU.
    Legal,
    /// Operations of the final program.
    Kernels,
    /// Operations at the end of the order, whatever the pipeline makes of it later.
    Operations,
}

/// How many of the best by operations go through the pipeline.
const FINALISTS: usize = 12;

/// How long the answer may be shortened; each try is a run of XLA's pipeline.
const SHORTENING: Duration = Duration::from_secs(15);

/// What tidies up after passes that make a program legal.
const CLEANING: [&str; 4] = ["algsimp", "constant_folding", "cse", "dce"];

/// What to do with the program, and what speaks for it.
#[derive(Serialize)]
struct Recipe {
    engine: String,
    file: String,
    /// Of the program that it is for.
    fingerprint: Fingerprint,
    normalised: bool,
    /// Empty if XLA's own order is the best.
    passes: Vec<String>,
    /// What goes into `xla_disable_hlo_passes`.
    replaced_passes: Vec<String>,
    order: Ratio,
    order_ratio: Option<f64>,
    legal: Ratio,
    legal_ratio: Option<f64>,
    kernels_default: u64,
    kernels: u64,
    outputs: Option<Report>,
    /// The best by operations: operations, the same before layout assignment, kernels.
    finalists: Vec<(u64, u64, u64)>,
    /// Candidates that were dropped, with the reason.
    dropped: Vec<String>,
    searched_passes: u64,
    searched: Duration,
    stopped: StopReason,
}

/// A candidate after XLA's pipeline without its optional passes.
struct Finalist {
    passes: Vec<PassId>,
    operations: u64,
    legal: u64,
    kernels: u64,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    // The first Ctrl-C ends the search, or keeps it from beginning; the second ends the program.
    signal_hook::flag::register_conditional_default(SIGINT, stop.clone())?;
    signal_hook::flag::register(SIGINT, stop.clone())?;
    let config = WorldConfig {
        engine: context.engine_config()?,
        start: if args.as_emitted { Start::Emitted } else { Start::Normalised },
        passes: Vec::new(),
        cache: CacheConfig { disk: args.cache.clone(), ..CacheConfig::default() },
    };
    let progress = context.progress();
    progress.doing("reading the program");
    let found = Benchmarks::find([&args.file])?;
    if found.programs.len() != 1 {
        return Err(anyhow!(
            "{} stands for {} programs; name one",
            args.file,
            found.programs.len()
        ));
    }
    let source = found.programs[0].source()?;
    let world = Arc::new(World::with_programs(config, found)?);
    let mut original = world.engine().load(&source)?;

    progress.doing("XLA's own pipeline");
    let default = run_default(&mut original, &[])?;
    let bare = run_default(&mut original, &optional())?;
    let own_order = default_passes(&original, &default)?;
    let mut by_default = Walk::begin(&world, 0)?;
    for &pass in &own_order {
        by_default.step(pass)?;
    }
    let legalising = legalising(&world, &bare);
    let found = look_for(&world, &args, &own_order, &legalising, &stop, &progress)?;

    progress.doing("sending the best through XLA's pipeline");
    let cleaning = world.engine().passes(CLEANING)?;
    let mut dropped = Vec::new();
    let mut finalists = Vec::new();
    for candidate in found.candidates.iter().take(FINALISTS) {
        let number = candidate.passes.len();
        let mut consider = |passes: Vec<PassId>| match finalist(&world, passes) {
            Ok((finalist, legalising)) => {
                finalists.push(finalist);
                legalising
            }
            Err(error) => {
                dropped.push(format!("{number} passes: {error}"));
                Vec::new()
            }
        };
        let legalising = consider(candidate.passes.clone());
        if !legalising.is_empty() {
            // What the pipeline has to add in order to make the program legal can be added before,
            // and cleaned up after.
            consider([&candidate.passes[..], &legalising, &cleaning].concat());
        }
    }
    let figures = finalists.iter().map(|f| (f.operations, f.legal, f.kernels)).collect();
    finalists.sort_by_key(|finalist| match args.objective {
        Objective::Legal => (finalist.legal, finalist.kernels),
        Objective::Kernels => (finalist.kernels, finalist.legal),
        Objective::Operations => (finalist.operations, finalist.legal),
    });
    let better = |finalist: &Finalist| match args.objective {
        Objective::Legal => finalist.legal <= default.middle.operations,
        Objective::Kernels => finalist.kernels <= default.end.operations,
        Objective::Operations => finalist.operations <= by_default.state().counts.operations,
    };

    progress.doing("running the original");
    let options = Options { trials: args.trials, seed: args.seed };
    let reference = Reference::new(&mut original, options)?;
    let mut chosen = None;
    for finalist in finalists.into_iter().filter(better) {
        progress.doing("leaving out what can be left out");
        let finalist = shorten(&world, finalist)?;
        progress.doing("running the result");
        let mut walk = walk_to(&world, &finalist.passes)?;
        let report = reference.compare(walk.session()?, &optional())?;
        match &report.verdict {
            Verdict::Equal | Verdict::NotComparable { .. } => {
                chosen = Some((finalist, walk, report));
                break;
            }
            _ => dropped.push(format!("{} passes: {}", finalist.passes.len(), describe(&report))),
        }
    }
    drop(progress);

    let start = world.start_state(0)?.counts.operations;
    let order =
        |result| Ratio { initial: start, default: by_default.state().counts.operations, result };
    let legal = |result| Ratio {
        initial: bare.middle.operations,
        default: default.middle.operations,
        result,
    };
    let name = |pass: &PassId| world.engine().pass_name(*pass).to_owned();
    let recipe = Recipe {
        engine: world.engine().name(),
        file: args.file.clone(),
        fingerprint: original.fingerprint()?,
        normalised: !args.as_emitted,
        passes: chosen.iter().flat_map(|(finalist, ..)| finalist.passes.iter().map(name)).collect(),
        replaced_passes: if chosen.is_some() { optional() } else { Vec::new() },
        order: order(
            chosen.as_ref().map_or(by_default.state().counts.operations, |c| c.0.operations),
        ),
        order_ratio: None,
        legal: legal(chosen.as_ref().map_or(default.middle.operations, |c| c.0.legal)),
        legal_ratio: None,
        kernels_default: default.end.operations,
        kernels: chosen.as_ref().map_or(default.end.operations, |c| c.0.kernels),
        outputs: chosen.as_ref().map(|c| c.2.clone()),
        finalists: figures,
        dropped,
        searched_passes: found.passes,
        searched: found.time,
        stopped: found.stopped,
    };
    let recipe =
        Recipe { order_ratio: recipe.order.value(), legal_ratio: recipe.legal.value(), ..recipe };
    if let Some(output) = &args.output {
        let session = match &mut chosen {
            Some((_, walk, _)) => walk.session()?,
            None => &mut original,
        };
        output.write(&session.print(output.form())?)?;
    }
    if let Some(path) = &args.recipe {
        write_whole(path, (serde_json::to_string_pretty(&recipe)? + "\n").as_bytes())?;
    }
    if context.json() {
        context.print_json(&recipe)?;
    } else {
        context.print(&render(&recipe, &default))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn optional() -> Vec<String> {
    OPTIONAL.iter().map(|&name| name.to_owned()).collect()
}

fn look_for(
    world: &Arc<World>,
    args: &Args,
    own_order: &[PassId],
    legalising: &[PassId],
    stop: &Arc<AtomicBool>,
    progress: &crate::progress::Progress,
) -> Result<Found> {
    // From the start, and from the program made legal first: what the pipeline adds later cannot be
    // tidied up any more, but it is not always needed.
    let prefixes: Vec<Vec<PassId>> = match args.objective {
        Objective::Operations => vec![Vec::new()],
        _ if legalising.is_empty() => vec![Vec::new()],
        _ => vec![Vec::new(), legalising.to_vec()],
    };
    let parts = prefixes.len() as u64;
    let method = match args.method {
        MethodName::Random => Method::Random,
        MethodName::Greedy => Method::Greedy,
        MethodName::Beam => Method::Beam,
        MethodName::Evolve => Method::Evolve,
    };
    progress.counting(args.budget, "passes");
    let mut all: Option<Found> = None;
    for prefix in prefixes {
        let time = args.seconds.map(|seconds| seconds / parts as f64);
        let task = Search {
            world,
            benchmark: 0,
            budget: Budget {
                passes: Some(args.budget / parts),
                time: time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            },
            seed: args.seed,
            prefix,
            first: vec![own_order.to_vec()],
            stop: stop.clone(),
        };
        let before = all.as_ref().map_or(0, |found| found.passes);
        let found = search(&task, &*method.optimizer(), &|charged, fewest| {
            if fewest < u64::MAX {
                progress.doing(&format!("searching, {} operations", grouped(fewest)));
            }
            progress.set(before + charged);
        })?;
        all = Some(match all {
            None => found,
            Some(first) => together(first, found),
        });
    }
    progress.spinning();
    all.ok_or_else(|| anyhow!("nothing was searched"))
}

/// The best of each search in turn.
fn together(first: Found, second: Found) -> Found {
    let mut candidates = Vec::new();
    let (mut a, mut b) = (first.candidates.into_iter(), second.candidates.into_iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => break,
            (one, other) => candidates.extend(one.into_iter().chain(other)),
        }
    }
    Found {
        candidates,
        passes: first.passes + second.passes,
        time: first.time + second.time,
        stopped: first.stopped.max(second.stopped),
    }
}

/// What the pipeline does to a program in order to make it legal, as passes of ours.
fn legalising(world: &World, run: &DefaultRun) -> Vec<PassId> {
    run.passes[..run.passes_before_layout]
        .iter()
        .filter(|pass| pass.changed)
        .filter_map(|pass| world.engine().pass(&pass.pass).ok())
        .collect()
}

fn walk_to(world: &Arc<World>, passes: &[PassId]) -> Result<Walk> {
    let mut walk = Walk::begin(world, 0)?;
    for &pass in passes {
        walk.step(pass)?;
    }
    Ok(walk)
}

/// A candidate after XLA's pipeline without its optional passes, and what that did before layout
/// assignment.
fn finalist(world: &Arc<World>, passes: Vec<PassId>) -> Result<(Finalist, Vec<PassId>)> {
    let mut walk = walk_to(world, &passes)?;
    let run: DefaultRun = run_default(walk.session()?, &optional())?;
    let legalising = legalising(world, &run);
    let finalist = Finalist {
        // Without those that do nothing.
        passes: walk.path().collect(),
        operations: walk.state().counts.operations,
        legal: run.middle.operations,
        kernels: run.end.operations,
    };
    Ok((finalist, legalising))
}

/// The same with fewer passes, if they give no more operations here nor later.
fn shorten(world: &Arc<World>, finalist: Finalist) -> Result<Finalist> {
    let begin = Instant::now();
    let most = (finalist.operations, finalist.legal, finalist.kernels);
    let good = |walk: &mut Walk| {
        if walk.state().counts.operations > most.0 || begin.elapsed() > SHORTENING {
            return Ok(false);
        }
        Ok(match run_default(walk.session()?, &optional()) {
            Ok(run) => run.middle.operations <= most.1 && run.end.operations <= most.2,
            Err(_) => false,
        })
    };
    let passes = minimise(world, 0, &finalist.passes, good)?;
    Ok(self::finalist(world, passes)?.0)
}

fn render(recipe: &Recipe, default: &DefaultRun) -> String {
    let mut table = Table::new(&[&recipe.file, ">start", ">default", ">optimised", ">ratio"]);
    for (name, ratio) in
        [("operations: order", recipe.order), ("operations: legal, before layout", recipe.legal)]
    {
        table.row([
            name.to_owned(),
            grouped(ratio.initial),
            grouped(ratio.default),
            grouped(ratio.result),
            ratio.value().map_or_else(|| "undefined".to_owned(), |value| format!("{value:.3}")),
        ]);
    }
    table.row([
        "kernels".to_owned(),
        String::new(),
        grouped(recipe.kernels_default),
        grouped(recipe.kernels),
        format!("{:.3}", recipe.kernels_default as f64 / recipe.kernels.max(1) as f64),
    ]);
    let mut out = table.render();
    let why = match recipe.stopped {
        StopReason::Interrupted => ", interrupted",
        StopReason::Time => ", out of time",
        _ => "",
    };
    out.push_str(&format!(
        "\nSearched {} passes in {}{why}; XLA's own pipeline took {}.\n",
        grouped(recipe.searched_passes),
        time(recipe.searched),
        time(default.time),
    ));
    for dropped in &recipe.dropped {
        out.push_str(&format!("Dropped: {dropped}\n"));
    }
    match &recipe.outputs {
        None => {
            out.push_str("Nothing beats XLA's own order here: keep it.\n");
            if let Some((operations, legal, kernels)) = recipe.finalists.first() {
                out.push_str(&format!(
                    "The fewest operations found: {}, which become {} before layout assignment \
                     and {} kernels.\n",
                    grouped(*operations),
                    grouped(*legal),
                    grouped(*kernels),
                ));
            }
        }
        Some(report) => {
            out.push_str(&format!("XLA's verifier accepts it. Outputs: {}\n", describe(report)));
            let normal = if recipe.normalised { ", after normalising" } else { "" };
            out.push_str(&format!("\nPasses{normal}:\n  {}\n", recipe.passes.join(",")));
            out.push_str(&format!("instead of:\n  {}\n", recipe.replaced_passes.join(",")));
        }
    }
    out
}
