//! `xla-gym teach`

use std::{
    io::{IsTerminal, stderr},
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};
use xla_gym_agents::Config;
use xla_gym_common::lock;
use xla_gym_common::{Table, grouped};
use xla_gym_search::Budget;
use xla_gym_teaching::{Dagger, Setting, Taught, TeachError, Teaching, Watch, teach};

use crate::{
    context::{Context, warn},
    progress::Progress,
};

use super::train::command_line;

/// Teach a policy from training graphs alone: search for good orders, learn them, search again where
/// the policy goes astray, learn those too.
///
/// This is how the shipped policies were made. Searches find good orders for each graph, and their
/// passes are named alike; from the second round on, the policy that learnt them guides the searches.
/// In rounds of DAgger, searches begin where the policy may have gone astray, and show how to go on.
/// Then functions are copied as late as possible. Policies of several seeds learn all of it by
/// behaviour cloning, and become one: policy.safetensors in the folder. Every order is run beside its
/// program, and is learnt only as far as outputs are equal.
///
/// Called again with the same options, it goes on where it ended, however it ended; each order that
/// was found is kept. Ctrl-C ends searches at once, and everything else after the order or epoch that
/// is under way.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration of the policy, such as configs/general.toml; what its [imitation] names is
    /// not read.
    config: PathBuf,

    /// The folder for everything that is made; it is made if need be.
    #[arg(long, short)]
    output: PathBuf,

    /// Training graphs, instead of the configuration's. Can be given several times.
    #[arg(long = "benchmarks", value_name = "BENCHMARKS")]
    benchmarks: Vec<String>,

    /// Larger graphs are left out (instructions), instead of the configuration's limit.
    #[arg(long)]
    largest: Option<u64>,

    /// Seed of everything that depends on chance.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Policies that become one, of as many seeds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    members: u64,

    /// Rounds of searches from the start of each program.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,

    /// Runs of passes in each of these searches.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,

    /// Seconds for each search at most. With it, results depend on the machine.
    #[arg(long, value_parser = crate::positive)]
    seconds: Option<f64>,

    /// Rounds of DAgger; 0 for none.
    #[arg(long, default_value_t = 2)]
    dagger: u64,

    /// Searches for each program and start in a round of DAgger.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    dagger_searches: u64,

    /// Runs of passes in each of those.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..))]
    dagger_budget: u64,

    /// Larger graphs take no part in DAgger (instructions).
    #[arg(long, default_value_t = 3000)]
    dagger_largest: u64,

    /// On how many kinds of inputs at least orders are run and compared.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Steps in the environments after behaviour cloning, in every lesson: the configuration's
    /// algorithm goes on with what was cloned.
    #[arg(long, default_value_t = 0)]
    steps: u64,

    /// Change anything of the configuration: imitation.epochs=20. Can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let mut changes = args.changes.clone();
    changes.push(format!("steps={}", args.steps));
    changes.extend(args.largest.map(|largest| format!("largest={largest}")));
    if !args.benchmarks.is_empty() {
        changes.push(format!("benchmarks={:?}", args.benchmarks));
    }
    let time = args.seconds.map(Duration::from_secs_f64);
    let budget = |passes| Budget { passes: Some(passes), time };
    let teaching = Teaching {
        config: Config::read(&args.config, &changes)?,
        seed: args.seed,
        members: args.members,
        rounds: args.rounds,
        budget: budget(args.budget),
        dagger: Dagger {
            rounds: args.dagger,
            searches: args.dagger_searches,
            budget: budget(args.dagger_budget),
            largest: args.dagger_largest,
        },
        trials: args.trials,
        command: command_line(),
        commit: option_env!("XLA_GYM_COMMIT").map(str::to_owned),
    };
    let stop = Arc::new(AtomicBool::new(false));
    // The first signal ends it when what is under way is done; the second ends the program.
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let watcher = Watcher {
        progress: context.progress(),
        step: Mutex::default(),
        lines: !context.quiet() && !stderr().is_terminal(),
    };
    let profile = context.profile_of(&teaching.config.benchmarks);
    let engine = context.engine_config(&*profile)?;
    let setting = Setting { profile, engine, stop, watch: &watcher };
    let taught = match teach(&teaching, &args.output, &setting) {
        Ok(taught) => taught,
        Err(TeachError::Interrupted) => {
            drop(watcher);
            let folder = args.output.display();
            context.print(&format!("Interrupted. The same command goes on from {folder}.\n"))?;
            return Ok(ExitCode::from(1));
        }
        // What these mean for the exit code is known.
        Err(TeachError::Agent(error)) => return Err(error.into()),
        Err(TeachError::Env(error)) => return Err(error.into()),
        Err(other) => return Err(other.into()),
    };
    drop(watcher);
    if context.json() {
        context.print_json(&taught)?;
    } else {
        context.print(&shown(&taught))?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Watcher {
    progress: Progress,
    /// What stands before everything that is said of a step.
    step: Mutex<String>,
    /// Whether to write a line for each step, because nobody sees the bar.
    lines: bool,
}

impl Watch for Watcher {
    fn step(&self, number: usize, of: usize, what: &str) {
        let words = format!("step {number} of {of}, {what}");
        self.progress.spinning();
        self.progress.doing(&words);
        *lock(&self.step) = words.clone();
        if self.lines {
            eprintln!("{words}");
        }
    }

    fn doing(&self, what: &str) {
        let step = lock(&self.step);
        self.progress.doing(&format!("{step}: {what}"));
    }

    fn counting(&self, total: u64, unit: &str) {
        self.progress.counting(total, unit);
    }

    fn advance(&self) {
        self.progress.advance();
    }

    fn say(&self, words: &str) {
        self.progress.above(|| warn(words));
    }
}

fn shown(taught: &Taught) -> String {
    let mut table = Table::new(&["taught", ""]);
    table.row(["demonstrations".to_owned(), grouped(taught.orders as u64)]);
    table.row(["which are in".to_owned(), taught.demonstrations.display().to_string()]);
    table.row(["policy".to_owned(), taught.policy.display().to_string()]);
    table.render()
}
