//! `xla-gym train`

use std::{
    io::{IsTerminal, stderr},
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};
use xla_gym_agents::{Config, Setting, Trained, Watch, train};
use xla_gym_common::{Table, grouped};

use crate::{
    context::{Context, warn},
    progress::Progress,
};

/// Train a policy that orders passes.
///
/// Everything goes into one folder: the configuration, progress.jsonl, event files for TensorBoard,
/// a checkpoint, and the policies as safetensors (policy.safetensors is the best on held-out
/// programs, last.safetensors the last). What a policy makes of those programs is run beside them, and
/// counts only if outputs are equal (validation.check). Called again with the same folder, it goes on where it ended,
/// however it ended, and comes to the same weights as if it had not been interrupted. Ctrl-C ends it
/// after the current update.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration, such as configs/paper/ppo.toml.
    config: PathBuf,

    /// The folder of the run; it is made if need be.
    #[arg(long, short)]
    output: PathBuf,

    /// Seed of everything that depends on chance, instead of the configuration's.
    #[arg(long)]
    seed: Option<u64>,

    /// Steps in the environments, instead of the configuration's.
    #[arg(long)]
    steps: Option<u64>,

    /// Programs to train on, instead of the configuration's. Can be given several times.
    #[arg(long = "benchmarks", value_name = "BENCHMARKS")]
    benchmarks: Vec<String>,

    /// Change anything of the configuration: network.hidden=[256,256]. Can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,

    /// Seconds between checkpoints.
    #[arg(long, default_value_t = 60.0, value_parser = crate::positive)]
    checkpoint_every: f64,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let mut changes = args.changes.clone();
    changes.extend(args.seed.map(|seed| format!("seed={seed}")));
    changes.extend(args.steps.map(|steps| format!("steps={steps}")));
    if !args.benchmarks.is_empty() {
        changes.push(format!("benchmarks={:?}", args.benchmarks));
    }
    let config = Config::read(&args.config, &changes)?;
    let stop = Arc::new(AtomicBool::new(false));
    // The first signal ends the run after the current update; the second ends the program.
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let profile = context.profile_of(&config.benchmarks);
    let setting = Setting {
        folder: &args.output,
        engine: context.engine_config(&*profile)?,
        profile,
        command: command_line(),
        commit: option_env!("XLA_GYM_COMMIT"),
        checkpoint_seconds: args.checkpoint_every,
        stop: &stop,
    };
    let mut watcher = Watcher {
        progress: context.progress(),
        counting: false,
        lines: !context.quiet() && !stderr().is_terminal(),
        validation: None,
    };
    let trained = train(&config, &setting, &mut watcher)?;
    drop(watcher);
    if context.json() {
        context.print_json(&trained)?;
    } else {
        context.print(&shown(&trained, &args))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command as it was typed, for the model card.
pub fn command_line() -> String {
    let words = std::env::args()
        .skip(1)
        .map(|word| if word.contains([' ', '[', '"']) { format!("'{word}'") } else { word });
    std::iter::once("xla-gym".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

struct Watcher {
    progress: Progress,
    counting: bool,
    /// Whether to write a line now and then, because nobody sees the bar.
    lines: bool,
    validation: Option<f64>,
}

impl Watch for Watcher {
    fn doing(&mut self, what: &str) {
        self.progress.doing(what);
    }

    fn warn(&mut self, what: &str) {
        self.progress.doing("");
        warn(what);
    }

    fn updated(&mut self, update: &xla_gym_agents::Progress, of: u64) {
        if !self.counting {
            self.progress.counting(of, "steps");
            self.counting = true;
        }
        self.validation = update.validation.or(self.validation);
        let validation = self.validation.map_or(String::new(), |v| format!(", held out {v:.3}"));
        let message = format!(
            "return {:.2}, order ratio {:.3}{validation}",
            update.episode_return, update.ratio
        );
        self.progress.doing(&message);
        self.progress.set(update.step.min(of));
        if self.lines && update.validation.is_some() {
            let rate = update.step as f64 / update.seconds.max(1e-9);
            eprintln!("{} of {} steps, {rate:.0} a second: {message}", update.step, of);
        }
    }
}

fn shown(trained: &Trained, args: &Args) -> String {
    let mut table = Table::new(&["trained", ""]);
    let seconds = |seconds: f64| format!("{seconds:.1} s");
    table.row(["steps".to_owned(), grouped(trained.steps)]);
    table.row(["time".to_owned(), seconds(trained.seconds)]);
    table.row(["in the environments".to_owned(), seconds(trained.environment_seconds)]);
    table.row(["in the learner".to_owned(), seconds(trained.learner_seconds)]);
    if let Some(validation) = trained.validation {
        table.row(["order ratio, held out".to_owned(), format!("{validation:.3}")]);
    }
    table.row(["policy".to_owned(), trained.policy.display().to_string()]);
    let mut text = table.render();
    if trained.plateau {
        text += "It ended early, because it did not get better any more.\n";
    }
    if trained.interrupted {
        let folder = args.output.display();
        text += &format!("Interrupted. The same command goes on from {folder}.\n");
    }
    text
}
