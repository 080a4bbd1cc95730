//! `xla-gym recipes`

use std::{
    io::{self, BufRead},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, anyhow};
use clap::Subcommand;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::protocol::Fingerprint;
use xla_gym_recipe::{Store, StoreLimit};

use crate::context::{Context, warn};

/// The best recipes that are known.
///
/// `xla-gym optimize` looks here first and leaves its results here. Exported as lines of JSON, they
/// can be merged into the store of another machine, where they count as not tried until `optimize`
/// has tried them.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    /// The store [default: recipes.db in the state folder].
    #[arg(long, value_name = "PATH", global = true)]
    store: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// List them.
    List,
    /// Write all of them, one line of JSON each.
    Export {
        /// Where to; `-` is standard output.
        file: PathBuf,
    },
    /// Merge what was exported elsewhere; the better recipe stays.
    Import {
        /// Where from; `-` is standard input.
        file: PathBuf,
    },
    /// Forget those of a program.
    Forget {
        /// Its fingerprint, as `xla-gym show` prints it.
        fingerprint: String,
    },
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let path = args.store.map_or_else(Store::default_path, Ok)?;
    let store = Store::open(&path, StoreLimit::default())?;
    if let Some(aside) = store.moved_aside() {
        warn(&format!("a broken store was moved to {}", aside.display()));
    }
    match args.command {
        Command::List => list(context, &store)?,
        Command::Export { file } => {
            let mut bytes = Vec::new();
            let count = store.export(&mut bytes)?;
            if file == Path::new("-") {
                context.print(&String::from_utf8_lossy(&bytes))?;
            } else {
                xla_gym_rows::write_text(&file, &String::from_utf8_lossy(&bytes))?;
                context.print(&format!("{} recipes written\n", grouped(count as u64)))?;
            }
        }
        Command::Import { file } => {
            let reader: Box<dyn BufRead> = if file == Path::new("-") {
                Box::new(io::stdin().lock())
            } else {
                xla_gym_rows::reader(&file)?
            };
            let imported = store.import(reader)?;
            for (line, reason) in &imported.refused {
                warn(&format!("{}, line {line}: {reason}", file.display()));
            }
            context.print(&format!(
                "{} recipes read, {} of them better than what was known, {} refused\n",
                imported.offered,
                imported.taken,
                imported.refused.len()
            ))?;
            if !imported.refused.is_empty() {
                return Ok(ExitCode::from(1));
            }
        }
        Command::Forget { fingerprint } => {
            let parsed: Fingerprint = fingerprint.parse().map_err(|_| {
                anyhow!("{fingerprint:?} is no fingerprint (32 hexadecimal digits)")
            })?;
            let count = store.forget(parsed)?;
            context.print(&format!("{count} recipes forgotten\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, store: &Store) -> Result<()> {
    let recipes = store.list()?;
    if context.json() {
        return context.print_json(&recipes);
    }
    let mut table = Table::new(&[
        "program",
        "fingerprint",
        "objective",
        ">gain",
        ">passes",
        ">left out",
        "tried here",
    ]);
    for recipe in &recipes {
        table.row([
            recipe.program.name.clone(),
            recipe.program.fingerprint.to_string(),
            recipe.objective.clone(),
            format!("{:.3}", recipe.gain),
            recipe.passes.len().to_string(),
            recipe.disabled_passes.len().to_string(),
            if recipe.imported { "no" } else { "yes" }.to_owned(),
        ]);
    }
    context.print(&format!("{}\n{} recipes\n", table.render(), recipes.len()))
}
