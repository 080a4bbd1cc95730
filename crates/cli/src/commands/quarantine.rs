//! `xla-gym quarantine`

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use xla_gym_common::Table;
use xla_gym_engine::Quarantine;

use crate::context::Context;

/// Show the failures of passes that are remembered.
///
/// A pair of program state and pass that made the compiler abort, hang or fail is refused from
/// then on without being tried. It is tried again under a longer --pass-limit (if it hung), a larger
/// --memory-limit (if it ran out of memory), by
/// another version of the compiler, or after --clear.
#[derive(clap::Args)]
pub struct Args {
    /// Forget everything; with --json, print what was forgotten.
    #[arg(long)]
    clear: bool,

    /// Print where it is kept.
    #[arg(long, conflicts_with = "clear")]
    path: bool,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let Some(path) = context.quarantine_path() else {
        bail!("there is nothing to show where nothing is remembered");
    };
    if args.path && context.json() {
        context.print_json(&path)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.path {
        context.print(&format!("{}\n", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = || path.display().to_string();
    let entries = Quarantine::read(&path).with_context(named)?;
    if args.clear {
        if path.exists() {
            std::fs::remove_file(&path).with_context(named)?;
        }
        if context.json() {
            context.print_json(&entries)?;
        } else {
            context.print(&format!("forgot {} of {}\n", entries.len(), path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if context.json() {
        context.print_json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        context.print(&format!("nothing is in quarantine ({})\n", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["pass", "how", "state", "what happened"]);
    for entry in &entries {
        table.row([
            entry.pass.clone(),
            entry.kind.clone(),
            entry.state.to_string(),
            entry.what.chars().take(120).collect(),
        ]);
    }
    context.print(&table.render())?;
    Ok(ExitCode::SUCCESS)
}
