//! `xla-gym optimize`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use signal_hook::consts::SIGINT;
use xla_gym_agents::TrainedPolicy;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::default_limits;
use xla_gym_env::{Start, World};
use xla_gym_optimize::{
    Answer, Figures, Judge, MEMORY_GROWTH, Objective, Remembered, Task, optimize,
    optimize_with_store, summary,
};
use xla_gym_oracle::{Options, Report};
use xla_gym_recipe::{Paired, Recipe, Store, StoreLimit};
use xla_gym_score::NORMALISING;
use xla_gym_search::{Budget, Method, Policy, Predictions};

use super::{one_program, score::describe};
use crate::{
    context::{Context, count, or_none, time, warn},
    outfile::{OutFile, writable, write_whole},
};

/// A pass may take so many milliseconds if nobody says how long everything may take.
const LONGEST_PASS: u64 = 10_000;

/// Or so small a part of that.
const PASSES_AT_LEAST: f64 = 25.0;

/// Find a better pass order than XLA's own.
///
/// Searches for an order that leaves few operations, sends the best through XLA's real pipeline
/// without its optional passes, and takes the one that does best there. The answer is verified,
/// compiled, and run beside the original; where nothing beats XLA's own order, that is the answer.
/// Ctrl-C ends the search and keeps the best so far.
///
/// Exit code: 0 an answer that was found equal, or XLA's own order; 5 an answer that is not proven,
/// which is given only with --unproven.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: String,

    /// How to search.
    #[arg(long, value_enum, default_value_t = MethodName::Evolve)]
    method: MethodName,

    /// Runs of passes, at most [default: 2000, unless seconds are given or usual].
    #[arg(long, value_name = "PASSES", allow_negative_numbers = true)]
    budget: Option<u64>,

    /// Seconds for everything together, proof included. With it, results depend on the machine
    /// [default: none; 120 if time is the objective; 240 for large programs, 480 if XLA's own
    /// pipeline takes long on them].
    #[arg(long, value_name = "SECONDS", value_parser = crate::positive, allow_negative_numbers = true)]
    seconds: Option<f64>,

    /// What is to be made small: operations (at the end of the order), legal (operations before
    /// layout assignment), kernels, flops, bytes, memory (what the final program needs beside inputs
    /// and outputs), run-time or compile-time; a weighted sum such as 0.7*kernels+0.3*bytes; or several
    /// with commas, for a front. Where it is legal or kernels, the other may not grow either.
    #[arg(long, default_value = "legal")]
    objective: Objective,

    /// By which factor the memory that the final program needs may grow, where it is not the
    /// objective.
    #[arg(long, value_name = "FACTOR", default_value_t = MEMORY_GROWTH, value_parser = crate::positive)]
    memory_growth: f64,

    /// Start from a normal form of the program on which passes rarely crash, not from the program as
    /// emitted.
    #[arg(long)]
    normalise: bool,

    /// Seed of the search and of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Sets of inputs on which outputs are compared.
    #[arg(long, default_value_t = Options::default().trials, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Take an answer that could not be compared with the original, too (exit code 5).
    #[arg(long)]
    unproven: bool,

    /// Do not begin with orders that did well on other programs.
    #[arg(long)]
    no_coreset: bool,

    /// A trained policy that guides the search: general, gpt2, none, or a file that `train` wrote.
    #[arg(long, default_value = "general", value_name = "POLICY")]
    policy: String,

    /// Measure run time and compile time of the result beside XLA's own, for so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "10", value_parser = crate::positive)]
    measure: Option<f64>,

    /// A file in which the effects of passes are remembered, shared between runs.
    #[arg(long, value_name = "PATH")]
    cache: Option<PathBuf>,

    /// The store of recipes: consulted first, and given the result [default: recipes.db in the
    /// state folder].
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,

    /// Neither consult nor fill the store.
    #[arg(long, conflicts_with = "store")]
    no_store: bool,

    /// Write the program after the passes.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,

    /// Write the recipe, as JSON.
    #[arg(long, value_name = "OUT", value_parser = writable())]
    recipe: Option<PathBuf>,

    /// Write a report that explains the result, as one HTML file.
    #[arg(long, value_name = "OUT", value_parser = writable())]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodName {
    /// Random orders.
    Random,
    /// The best next pass, again and again.
    Greedy,
    /// The best few states of each length.
    Beam,
    /// A tree of states, searched by Monte Carlo.
    Mcts,
    /// Orders that are mutated and crossed.
    Evolve,
    /// Only orders that did well on other programs.
    Coreset,
}

/// The policy that a name or a file stands for, tied to the program's world.
fn guide(name: &str, world: &World) -> Result<Option<Arc<dyn Policy>>> {
    if name == "none" {
        return Ok(None);
    }
    let guide = TrainedPolicy::find(name)?.guide(world);
    Ok(Some(Arc::new(guide)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    recipe: &'a Recipe,
    /// Where several objectives were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    front: Vec<FrontMember>,
    /// How well the cost of passes was predicted, where the time was limited.
    predictions: Predictions,
    /// The command for XLA's own tool.
    hlo_opt: String,
}

#[derive(Serialize)]
struct FrontMember {
    passes: Vec<String>,
    disabled_passes: Vec<String>,
    figures: Figures,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let began = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    // The first Ctrl-C ends the search, or keeps it from beginning; the second ends the program.
    signal_hook::flag::register_conditional_default(SIGINT, stop.clone())?;
    signal_hook::flag::register(SIGINT, stop.clone())?;
    let progress = context.progress();
    let start = if args.normalise { Start::Normalised } else { Start::Emitted };
    let pass_millis = args.seconds.map_or(LONGEST_PASS, |seconds| {
        ((seconds * 1e3 / PASSES_AT_LEAST) as u64).clamp(1000, default_limits().pass_millis)
    });
    let cache = args.cache.clone();
    let world = one_program::world_with(context, &args.file, start, cache, pass_millis, &progress)?;
    progress.doing("XLA's own pipeline");
    let judge = Judge::new(&world, 0)?;
    let store = open_store(&args)?;
    let task = Task {
        objective: args.objective.clone(),
        method: match args.method {
            MethodName::Random => Method::Random,
            MethodName::Greedy => Method::Greedy,
            MethodName::Beam => Method::Beam,
            MethodName::Mcts => Method::Mcts,
            MethodName::Evolve => Method::Evolve,
            MethodName::Coreset => Method::Coreset,
        },
        budget: Budget { passes: args.budget, time: args.seconds.and_then(seconds) },
        began,
        memory_growth: args.memory_growth,
        seed: args.seed,
        coreset: !args.no_coreset,
        policy: guide(&args.policy, &world)?,
        trials: args.trials,
        measuring: args.measure.and_then(seconds),
        unproven: args.unproven,
        stop,
        ..Task::default()
    };
    let (answer, remembered) = match &store {
        Some(store) => optimize_with_store(&judge, &task, store, &progress)?,
        None => (optimize(&judge, &task, &progress)?, Remembered::default()),
    };
    if let Some(problem) = &remembered.problem {
        warn(&format!("the store of recipes: {problem}"));
    }
    drop(progress);
    // The result first: a file that cannot be written, or a reader that went away, must not cost
    // the others what was found.
    let printed = print(context, &args, &judge, &answer, &remembered);
    let written = write_files(context, &args, &judge, &answer);
    if !written {
        return Ok(ExitCode::FAILURE);
    }
    printed?;
    let outputs = &answer.recipe.evidence.outputs;
    Ok(match outputs.as_ref().is_none_or(Report::is_equal) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(5),
    })
}

fn print(
    context: &Context,
    args: &Args,
    judge: &Judge,
    answer: &Answer,
    remembered: &Remembered,
) -> Result<()> {
    if context.json() {
        let world = &judge.world;
        let name = |pass: &_| world.engine().pass_name(*pass).to_owned();
        let front = answer.front.iter().map(|proven| FrontMember {
            passes: proven.judged.plan.passes.iter().map(name).collect(),
            disabled_passes: proven.judged.plan.disabled.clone(),
            figures: proven.judged.figures,
        });
        let shown = Shown {
            recipe: &answer.recipe,
            front: front.collect(),
            predictions: judge.costs.predictions(),
            hlo_opt: answer.recipe.hlo_opt_line(NORMALISING).line,
        };
        return context.print_json(&shown);
    }
    let mut text = render(&args.file, judge, answer);
    if remembered.known {
        text.push_str("A recipe from the store was tried first.\n");
    }
    if remembered.kept {
        text.push_str("The recipe is the best known now, and is in the store.\n");
    }
    context.print(&text)
}

/// Writes every file that was asked for and can be written, what is worth most first; says which
/// could not, and whether all could.
fn write_files(context: &Context, args: &Args, judge: &Judge, answer: &Answer) -> bool {
    let mut all = true;
    let mut done = |what: &str, path: &Path, result: Result<()>| match result {
        Ok(()) if context.json() => {}
        // Whether anybody reads it does not matter.
        Ok(()) => drop(context.print(&format!("{what}: {}\n", path.display()))),
        Err(error) => {
            warn(&format!("{error:#}"));
            all = false;
        }
    };
    if let Some(path) = &args.recipe {
        done("Recipe", path, answer.recipe.write(path).map_err(Into::into));
    }
    if let Some(output) = &args.output {
        let write = || output.write(&judge.session(&answer.plan)?.print(output.form())?);
        done("Program", output.path(), write());
    }
    if let Some(path) = &args.report {
        let progress = context.progress();
        let command = format!("xla-gym optimize {} --objective {}", args.file, args.objective);
        let explanation = xla_gym_optimize::explain(judge, answer, command, &progress);
        drop(progress);
        let write = || write_whole(path, explanation?.html().as_bytes());
        done("Report", path, write());
    }
    all
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

fn open_store(args: &Args) -> Result<Option<Store>> {
    if args.no_store {
        return Ok(None);
    }
    let open = || -> Result<Store> {
        let path = args.store.clone().map_or_else(Store::default_path, Ok)?;
        Ok(Store::open(&path, StoreLimit::default())?)
    };
    match open() {
        Ok(store) => Ok(Some(store)),
        // The one in the state folder is a help, not a need.
        Err(error) if args.store.is_none() => {
            warn(&format!("without the store of recipes: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn render(file: &str, judge: &Judge, answer: &Answer) -> String {
    let recipe = &answer.recipe;
    let mut table = Table::new(&[file, ">start", ">default", ">optimised", ">ratio"]);
    let timing = recipe.evidence.timing.as_ref();
    let rows = summary(judge, &answer.figures, &answer.default, timing);
    let undefined = rows.iter().any(|row| row.ratio.is_none());
    for row in rows {
        table.row([
            row.name,
            row.start.map_or_else(String::new, count),
            count(row.default.round()),
            count(row.result.round()),
            row.ratio.map_or_else(|| "undefined".to_owned(), |ratio| format!("{ratio:.3}")),
        ]);
    }
    let mut out = table.render();
    if undefined {
        out.push_str("undefined: XLA's own passes remove nothing here.\n");
    }
    let search = &recipe.evidence.search;
    let why = match search.stopped.as_str() {
        "interrupted" => ", interrupted",
        "time" => ", out of time",
        _ => "",
    };
    out.push_str(&format!(
        "\nSearched {} passes, {} runs of the whole pipeline, in {}{why}; XLA's own pipeline took {}.\n",
        grouped(search.passes),
        grouped(search.pipelines),
        time(Duration::from_secs_f64(search.seconds)),
        time(judge.default.time),
    ));
    if let (Some(now), Some(before)) = (answer.figures.memory, answer.default.memory)
        && now > before
    {
        out.push_str(&format!(
            "Memory: the final program needs {} bytes more than XLA's own.\n",
            count(now - before)
        ));
    }
    if let Some(timing) = &recipe.evidence.timing {
        out.push_str(&format!("Run time: {}\n", sentence(&timing.run)));
        out.push_str(&format!("Compile time: {}\n", sentence(&timing.compile)));
    }
    if let Some(reason) = &answer.not_measured {
        out.push_str(&format!("Times were not measured: {reason}\n"));
    }
    for dropped in recipe.evidence.dropped.iter().take(5) {
        out.push_str(&format!("Dropped: {dropped}\n"));
    }
    if recipe.evidence.dropped.len() > 5 {
        out.push_str(&format!("… and {} more\n", recipe.evidence.dropped.len() - 5));
    }
    if !answer.front.is_empty() {
        out.push_str(&front(answer));
    }
    match &recipe.evidence.outputs {
        None => {
            out.push_str("Nothing beats XLA's own order here: keep it.\n");
            let guarded = ["legal", "kernels"].contains(&&*recipe.objective);
            if let Some(figures) = answer.nearest.as_ref().filter(|_| guarded) {
                out.push_str(&format!(
                    "The fewest operations found: {}, which become {} before layout assignment \
                     and {} kernels (XLA's own: {} and {}; neither may grow).\n",
                    grouped(figures.operations),
                    grouped(figures.legal),
                    grouped(figures.kernels),
                    grouped(answer.default.legal),
                    grouped(answer.default.kernels),
                ));
            }
        }
        Some(report) => {
            out.push_str(&format!("XLA's verifier accepts it. Outputs: {}\n", describe(report)));
            if !report.is_equal() {
                out.push_str("NOT PROVEN: nobody knows whether it computes the same.\n");
            }
            let normal = if recipe.start == Start::Normalised { ", after normalising" } else { "" };
            out.push_str(&format!("\nPasses{normal}:\n  {}\n", or_none(&recipe.passes)));
            if recipe.disabled_passes.is_empty() {
                out.push_str("before XLA's untouched pipeline.\n");
            } else {
                let names = recipe.disabled_passes.join(",");
                out.push_str(&format!("with --xla_disable_hlo_passes=\n  {names}\n"));
            }
            let hlo_opt = recipe.hlo_opt_line(NORMALISING);
            out.push_str(&format!("\nThe same with XLA's own tool:\n  {}\n", hlo_opt.line));
        }
    }
    out
}

fn front(answer: &Answer) -> String {
    let figures: Vec<&str> = answer.recipe.objective.split(',').collect();
    let mut header: Vec<String> = vec!["front".to_owned()];
    header.extend(figures.iter().map(|name| format!(">{name}")));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    let mut row = |label: String, values: &Figures| {
        let value = |name: &&str| {
            let figure = name.parse().ok().and_then(|figure| values.get(figure));
            figure.map_or_else(String::new, |value| count(value.round()))
        };
        table.row(std::iter::once(label).chain(figures.iter().map(value)));
    };
    row("XLA's own".to_owned(), &answer.default);
    for proven in &answer.front {
        let plan = &proven.judged.plan;
        let chosen = if *plan == answer.plan { ", chosen" } else { "" };
        let label =
            format!("{} passes, {} left out{chosen}", plan.passes.len(), plan.disabled.len());
        row(label, &proven.judged.figures);
    }
    format!("\n{}\n", table.render())
}

fn sentence(paired: &Paired) -> String {
    let of = |nanos: f64| time(Duration::from_nanos(nanos.max(0.0) as u64));
    let controls: Vec<String> =
        paired.controls.iter().map(|control| format!("{:.3}", control.speedup)).collect();
    format!(
        "{} instead of {}, {:.3}× as fast (95% interval {:.3} to {:.3}; XLA's own beside itself {}){}",
        of(paired.result.median),
        of(paired.default.median),
        paired.speedup,
        paired.interval.0,
        paired.interval.1,
        controls.join(", "),
        if paired.within_noise { ": within the noise" } else { "" },
    )
}
