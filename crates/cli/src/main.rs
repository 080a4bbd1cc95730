//! The command line of XLA Gym.

#![forbid(unsafe_code)]

mod commands;
mod context;
mod named;
mod outfile;
mod progress;
mod start;

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use xla_gym_agents::AgentError;
use xla_gym_contest::ContestError;
use xla_gym_engine::EngineError;
use xla_gym_env::EnvError;
use xla_gym_optimize::OptimizeError;

use context::Context;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the compiler refused or died, some passes did not take place, or a file cannot be written
  2  wrong usage
  3  the input cannot be read, or is no program
  4  `check`, `apply --verify`: the outputs differ
  5  `check`, `apply --verify`: the programs cannot be compared
  6  the engine is not set up";

/// Run a real compiler's passes in any order, see what each one does, and compare with what the
/// compiler itself would have done.
///
/// FILE is a program: for XLA, HLO text, an HloModuleProto or HloProto, or StableHLO text or bytecode;
/// each also compressed by gzip or zstd; `-` is standard input; or the id of a graph of the benchmark
/// library (`xla-gym data list`). Which compiler it is for is told by the file's ending, or by --engine.
#[derive(Parser)]
#[command(name = "xla-gym", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    global: Global,
}

#[derive(clap::Args)]
struct Global {
    /// Which compiler [default: by the file's ending; xla if that says nothing].
    #[arg(long, global = true, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(xla_gym_compilers::NAMES))]
    engine: Option<String>,

    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,

    /// Show no progress.
    #[arg(long, short, global = true)]
    quiet: bool,

    /// Time limit for one pass, in seconds [default: 30; where the time for everything is limited, a
    /// 25th of it].
    #[arg(long, global = true, value_name = "SECONDS", value_parser = positive)]
    pass_limit: Option<f64>,

    /// Time limit for anything else that the compiler does, in seconds.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 300.0, value_parser = positive)]
    request_limit: f64,

    /// Memory limit for each compiler process, in GiB [default: two thirds of the machine's, at most
    /// 14; 8 where many run at a time].
    #[arg(long, global = true, value_name = "GIB", value_parser = positive)]
    memory_limit: Option<f64>,

    /// Where failures of passes are remembered [default: quarantine.jsonl in the state folder].
    #[arg(long, global = true, value_name = "PATH")]
    quarantine: Option<PathBuf>,

    /// Neither consult nor fill the quarantine.
    #[arg(long, global = true, conflicts_with = "quarantine")]
    no_quarantine: bool,
}

#[derive(Subcommand)]
enum Command {
    /// List the passes.
    Passes(commands::passes::Args),
    /// Show the size, cost and opcodes of a program.
    Show(commands::show::Args),
    /// Run passes on a program, one row each.
    Run(commands::run::Args),
    /// Show what the compiler itself does with a program.
    Default(commands::default::Args),
    /// Find a better pass order than the compiler's own.
    Optimize(commands::optimize::Args),
    /// Do to a program what a recipe says.
    Apply(commands::apply::Args),
    /// Find the shortest part of an order that gives the same.
    Minimize(commands::explain::MinimizeArgs),
    /// Find out which passes of an order did it.
    Attribute(commands::explain::AttributeArgs),
    /// The best recipes that are known: list, export, import, forget.
    Recipes(commands::recipes::Args),
    /// Train a policy that orders passes.
    Train(commands::train::Args),
    /// Teach a policy: search for good orders, learn them, search where it goes astray, learn again.
    Teach(commands::teach::Args),
    /// Compare policies and searches with the compiler's own order, at equal numbers of pass runs.
    Eval(commands::eval::Args),
    /// Turn outcomes of `eval` and logs of `train` into a page with figures.
    Report(commands::report::Args),
    /// Compare a pass order with the compiler's own.
    Score(commands::score::Args),
    /// Show what differs between two programs, by opcode and by function.
    Diff(commands::diff::Args),
    /// Compile a program, run it on seeded inputs, print timings and a digest of the outputs; or find out
    /// which of two programs is faster.
    Exec(commands::exec::Args),
    /// Check whether two programs give the same outputs on seeded inputs.
    Check(commands::check::Args),
    /// The benchmark library: real programs, with the compiler's own result for each.
    Data(commands::data::Args),
    /// Show the failures of passes that are remembered.
    Quarantine(commands::quarantine::Args),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("a number greater than 0 is needed".to_owned()),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = Context::new(cli.global);
    let result = match cli.command {
        Command::Passes(args) => commands::passes::run(&context, args),
        Command::Show(args) => commands::show::run(&context, args),
        Command::Run(args) => commands::run::run(&context, args),
        Command::Default(args) => commands::default::run(&context, args),
        Command::Optimize(args) => commands::optimize::run(&context, args),
        Command::Apply(args) => commands::apply::run(&context, args),
        Command::Minimize(args) => commands::explain::run_minimize(&context, args),
        Command::Attribute(args) => commands::explain::run_attribute(&context, args),
        Command::Recipes(args) => commands::recipes::run(&context, args),
        Command::Train(args) => commands::train::run(&context, args),
        Command::Teach(args) => commands::teach::run(&context, args),
        Command::Eval(args) => commands::eval::run(&context, args),
        Command::Report(args) => commands::report::run(&context, args),
        Command::Score(args) => commands::score::run(&context, args),
        Command::Diff(args) => commands::diff::run(&context, args),
        Command::Exec(args) => commands::exec::run(&context, args),
        Command::Check(args) => commands::check::run(&context, args),
        Command::Data(args) => commands::data::run(&context, args),
        Command::Quarantine(args) => commands::quarantine::run(&context, args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "xla-gym", &mut script);
            context.print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|error| {
        if context::is_broken_pipe(&error) {
            // The reader has seen enough; `xla-gym passes | head` is no error.
            return ExitCode::SUCCESS;
        }
        context::warn(&format!("{error:#}"));
        ExitCode::from(exit_code(&error))
    })
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if matches!(error.downcast_ref(), Some(OptimizeError::Objective(_)))
        || error.is::<start::NoStart>()
    {
        return 2;
    }
    let agent = error.downcast_ref::<AgentError>();
    let env = match (agent, error.downcast_ref::<ContestError>()) {
        (Some(AgentError::Env(env)), _) | (_, Some(ContestError::Env(env))) => Some(env),
        _ => error.downcast_ref::<EnvError>(),
    };
    let engine = match env {
        Some(EnvError::Engine(engine)) => Some(engine),
        _ => error.downcast_ref::<EngineError>(),
    };
    match engine {
        Some(EngineError::Source(_) | EngineError::Load { .. }) => return 3,
        Some(EngineError::UnknownPass { .. }) => return 2,
        Some(EngineError::WorkerNotFound { .. } | EngineError::WorkerStart { .. }) => return 6,
        _ => {}
    }
    match agent {
        Some(AgentError::Config(_)) => return 2,
        Some(AgentError::Read { .. } | AgentError::Format { .. } | AgentError::Rows(_)) => {
            return 3;
        }
        _ => {}
    }
    let input = matches!(env, Some(EnvError::Benchmark(_)))
        || error.is::<xla_gym_engine::SourceError>()
        || error.is::<xla_gym_recipe::RecipeError>()
        || error.is::<xla_gym_data::BenchmarkError>()
        || error.is::<xla_gym_data::LibraryError>();
    if input { 3 } else { 1 }
}
