//! `xla-gym optimize`

use std::{
    collections::BTreeMap,
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
use xla_gym_env::World;
use xla_gym_optimize::{
    Answer, Judge, MEMORY_GROWTH, Objective, Remembered, Task, optimize, optimize_with_store,
    summary,
};
use xla_gym_oracle::{Options, Report};
use xla_gym_profile::{Commands, Figures, Spec};
use xla_gym_recipe::{Paired, Recipe, Store, StoreLimit};
use xla_gym_search::{Budget, Method, Policy, Predictions};

use super::{
    apply::{commands, render_commands},
    one_program,
    score::describe,
};
use crate::{
    context::{Context, count, or_none, time, warn},
    outfile::{OutFile, writable, write_whole},
    start::StartArg,
};

/// A pass may take so many milliseconds if nobody says how long everything may take.
const LONGEST_PASS: u64 = 10_000;

/// Or so small a part of that.
const PASSES_AT_LEAST: f64 = 25.0;

/// Find a better pass order than the compiler's own.
///
/// Searches for an order that leaves little of the program, sends the best through the compiler's real
/// pipeline in the place of its own passes, and takes the one that does best there. The answer is verified,
/// compiled, and run beside the original; where nothing beats the compiler's own order, that is the answer.
/// Ctrl-C ends the search and keeps the best so far.
///
/// Exit code: 0 an answer that was found equal, or the compiler's own order; 5 an answer that is not proven,
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
    /// [default: none; 120 if time is the objective; 240 for large programs, 480 if the
    /// compiler's own pipeline takes long on them].
    #[arg(long, value_name = "SECONDS", value_parser = crate::positive, allow_negative_numbers = true)]
    seconds: Option<f64>,

    /// What is to be made small: run-time, compile-time, or what is counted. Of XLA: operations (at the
    /// end of the order), legal (operations before layout assignment), kernels, flops, bytes, memory (what
    /// the final program needs beside inputs and outputs). Or a weighted sum such as
    /// 0.7*kernels+0.3*bytes; or several with commas, for a front. Where it is legal or kernels, the other
    /// may not grow either [default: of XLA, legal].
    #[arg(long)]
    objective: Option<String>,

    /// By which factor the memory that the final program needs may grow, where it is not the
    /// objective.
    #[arg(long, value_name = "FACTOR", default_value_t = MEMORY_GROWTH, value_parser = crate::positive)]
    memory_growth: f64,

    #[command(flatten)]
    start: StartArg,

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

    /// A trained policy that guides the search: one that comes along for this compiler (of XLA: general,
    /// gpt2), none, or a file that `train` wrote [default: general, if it is for this compiler].
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    /// Measure run time and compile time of the result beside the compiler's own, for so many seconds.
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
fn guide(name: Option<&str>, world: &World) -> Result<Option<Arc<dyn Policy>>> {
    let name = match name {
        Some("none") => return Ok(None),
        Some(name) => name,
        None => match world.profile().spec().usual_policy {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let guide = TrainedPolicy::find(name, world.profile().spec().engine)?.guide(world)?;
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
    /// How the compiler's own tools do the same: what each line does, and the line.
    commands: Vec<(String, String)>,
}

#[derive(Serialize)]
struct FrontMember {
    passes: Vec<String>,
    disabled_passes: Vec<String>,
    figures: BTreeMap<&'static str, f64>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let began = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    // The first Ctrl-C ends the search, or keeps it from beginning; the second ends the program.
    signal_hook::flag::register_conditional_default(SIGINT, stop.clone())?;
    signal_hook::flag::register(SIGINT, stop.clone())?;
    let progress = context.progress();
    let pass_millis = args.seconds.map_or(LONGEST_PASS, |seconds| {
        ((seconds * 1e3 / PASSES_AT_LEAST) as u64).clamp(1000, default_limits().pass_millis)
    });
    let cache = args.cache.clone();
    let world = one_program::world_with(
        context,
        &args.file,
        args.start.name(),
        cache,
        pass_millis,
        &progress,
    )?;
    let spec = world.profile().spec();
    let objective = match &args.objective {
        Some(text) => Objective::parse(text, spec)?,
        None => Objective::usual(spec),
    };
    progress.doing("the compiler's own pipeline");
    let judge = Judge::new(&world, 0)?;
    let store = open_store(&args)?;
    let task = Task {
        objective,
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
        policy: guide(args.policy.as_deref(), &world)?,
        trials: args.trials,
        measuring: args.measure.and_then(seconds),
        unproven: args.unproven,
        stop,
        ..Task::usual(spec)
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
            disabled_passes: proven.judged.plan.finish.disabled.clone(),
            figures: judge.spec().named(&proven.judged.figures).collect(),
        });
        let shown = Shown {
            recipe: &answer.recipe,
            front: front.collect(),
            predictions: judge.costs.predictions(),
            commands: commands(world, &answer.recipe).lines,
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
        let write = || {
            output.write(&judge.session(&answer.plan)?.print(output.form(judge.world.engine())?)?)
        };
        done("Program", output.path(), write());
    }
    if let Some(path) = &args.report {
        let progress = context.progress();
        let command =
            format!("xla-gym optimize {} --objective {}", args.file, answer.recipe.objective);
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
    let mut table = Table::new(&[file, ">start", ">default", ">optimized", ">ratio"]);
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
        out.push_str("undefined: the compiler's own passes remove nothing here.\n");
    }
    let search = &recipe.evidence.search;
    let why = match search.stopped.as_str() {
        "interrupted" => ", interrupted",
        "time" => ", out of time",
        _ => "",
    };
    out.push_str(&format!(
        "\nSearched {} passes, {} runs of the whole pipeline, in {}{why}; the compiler's own pipeline took {}.\n",
        grouped(search.passes),
        grouped(search.pipelines),
        time(Duration::from_secs_f64(search.seconds)),
        time(judge.default.time),
    ));
    let spec = judge.spec();
    if let Some(memory) = spec.memory
        && let (Some(now), Some(before)) = (answer.figures.get(memory), answer.default.get(memory))
        && now > before
    {
        let (what, own) = (spec.figure_name(memory), spec.words.baseline_short);
        out.push_str(&format!(
            "The final program needs {} more {what} than {own}.\n",
            count(now - before)
        ));
    }
    if let Some(timing) = &recipe.evidence.timing {
        out.push_str(&format!("Run time: {}\n", sentence(spec, &timing.run)));
        out.push_str(&format!("Compile time: {}\n", sentence(spec, &timing.compile)));
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
        out.push_str(&front(spec, answer));
    }
    match &recipe.evidence.outputs {
        None => {
            out.push_str(&format!("Nothing beats {} here: keep it.\n", spec.words.baseline));
            let objective = spec.figure(&recipe.objective);
            let guarded = objective.is_some_and(|figure| spec.guarded.contains(&figure));
            if let Some(figures) = answer.nearest.as_ref().filter(|_| guarded) {
                out.push_str(&nearest(judge, answer, figures));
            }
        }
        Some(report) => {
            let title = spec.words.title;
            out.push_str(&format!(
                "The verifier of {title} accepts it. Outputs: {}\n",
                describe(report)
            ));
            if !report.is_equal() {
                out.push_str("NOT PROVEN: nobody knows whether it computes the same.\n");
            }
            let first = spec.start(&recipe.start) == Some(0);
            let from = if first { String::new() } else { format!(", from {}", recipe.start) };
            out.push_str(&format!("\nPasses{from}:\n  {}\n", or_none(&recipe.passes)));
            if answer.plan.finish == spec.usual {
                out.push_str(&format!("before {}, untouched.\n", spec.words.pipeline));
            } else if !recipe.disabled_passes.is_empty() {
                let names = recipe.disabled_passes.join(",");
                out.push_str(&format!("and left out of {}:\n  {names}\n", spec.words.pipeline));
            }
            let Commands { lines, approximated } = commands(&judge.world, recipe);
            out.push('\n');
            out.push_str(&render_commands(&lines, &approximated));
        }
    }
    out
}

/// What the best by the primary figure comes to, where that was not good enough.
fn nearest(judge: &Judge, answer: &Answer, figures: &Figures) -> String {
    let spec = judge.spec();
    let value = |figures: &Figures, figure| grouped(figures.get(figure).unwrap_or(0.0) as u64);
    let compared: Vec<String> = spec
        .guarded
        .iter()
        .map(|figure| {
            let (now, own) = (value(figures, *figure), value(&answer.default, *figure));
            format!("{now} {} ({} {own})", spec.label(*figure), spec.words.baseline_short)
        })
        .collect();
    format!(
        "The best order found leaves {} {}, which come to {}; none of these may grow.\n",
        grouped(figures.primary() as u64),
        judge.world.engine().hello().primary(),
        compared.join(" and "),
    )
}

fn front(spec: &Spec, answer: &Answer) -> String {
    let figures: Vec<&str> = answer.recipe.objective.split(',').collect();
    let mut header: Vec<String> = vec!["front".to_owned()];
    header.extend(figures.iter().map(|name| format!(">{name}")));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    let mut row = |label: String, values: &Figures| {
        let value = |name: &&str| {
            let figure = spec.figure(name).and_then(|figure| values.get(figure));
            figure.map_or_else(String::new, |value| count(value.round()))
        };
        table.row(std::iter::once(label).chain(figures.iter().map(value)));
    };
    row(spec.words.baseline_short.to_owned(), &answer.default);
    for proven in &answer.front {
        let plan = &proven.judged.plan;
        let chosen = if *plan == answer.plan { ", chosen" } else { "" };
        let label = format!(
            "{} passes, {} left out{chosen}",
            plan.passes.len(),
            plan.finish.disabled.len()
        );
        row(label, &proven.judged.figures);
    }
    format!("\n{}\n", table.render())
}

fn sentence(spec: &Spec, paired: &Paired) -> String {
    let own = spec.words.baseline_short;
    let of = |nanos: f64| time(Duration::from_nanos(nanos.max(0.0) as u64));
    let controls: Vec<String> =
        paired.controls.iter().map(|control| format!("{:.3}", control.speedup)).collect();
    format!(
        "{} instead of {}, {:.3}× as fast (95% interval {:.3} to {:.3}; {own} beside itself {}){}",
        of(paired.result.median),
        of(paired.default.median),
        paired.speedup,
        paired.interval.0,
        paired.interval.1,
        controls.join(", "),
        if paired.within_noise { ": within the noise" } else { "" },
    )
}
