//! `xla-gym show`

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::protocol::{Fingerprint, Finish, MemoryEstimate, Observe};

use crate::{
    context::{Context, count, time},
    named::{Named, costs, counts},
};

/// Show the size, cost and opcodes of a program.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: PathBuf,

    /// Also compile it, for the memory it needs.
    #[arg(long)]
    memory: bool,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    fingerprint: Option<Fingerprint>,
    counts: Option<Named<u64>>,
    cost: Option<Named<f64>>,
    cost_error: Option<String>,
    opcodes: BTreeMap<String, u32>,
    memory: Option<MemoryEstimate>,
    compile_nanos: Option<u64>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine(&args.file)?;
    let mut session = context.load(&engine, &args.file)?;
    let seen = session
        .observe(Observe::COUNTS | Observe::COST | Observe::OPCODES | Observe::FINGERPRINT)?;
    let compiled = if args.memory {
        let progress = context.progress();
        progress.doing("compiling");
        Some(
            session
                .scratch()?
                .compile(&Finish::default())
                .with_context(|| session.source().name.to_string())?,
        )
    } else {
        None
    };
    let (cost, cost_error) = match seen.cost {
        Some(Ok(cost)) => (Some(costs(engine.hello(), &cost)), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let shown = Shown {
        file: session.source().name.to_string(),
        fingerprint: seen.fingerprint,
        counts: seen.counts.map(|seen| counts(engine.hello(), &seen)),
        cost,
        cost_error,
        opcodes: engine.name_opcodes(seen.opcodes.unwrap_or_default()).collect(),
        memory: compiled.and_then(|compiled| compiled.memory),
        compile_nanos: compiled.map(|compiled| compiled.nanos),
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(shown: &Shown) -> String {
    let mut table = Table::new(&[&shown.file, ">"]);
    let mut line = |name: &str, value: String| table.row([name.to_owned(), value]);
    for (name, value) in shown.counts.iter().flat_map(Named::iter) {
        line(name, grouped(value));
    }
    for (name, value) in shown.cost.iter().flat_map(Named::iter) {
        line(name, count(value));
    }
    if let Some(error) = &shown.cost_error {
        line("cost", format!("not known: {error}"));
    }
    if let Some(memory) = shown.memory {
        line("peak memory (bytes)", count(memory.peak as f64));
        line("temporaries (bytes)", count(memory.temporaries as f64));
    }
    if let Some(nanos) = shown.compile_nanos {
        line("compile time", time(Duration::from_nanos(nanos)));
    }
    if let Some(fingerprint) = shown.fingerprint {
        line("fingerprint", fingerprint.to_string());
    }
    let mut opcodes: Vec<(&String, &u32)> = shown.opcodes.iter().collect();
    opcodes.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let mut by_opcode = Table::new(&["opcode", ">instructions"]);
    for (name, count) in opcodes {
        by_opcode.row([name.clone(), grouped(*count)]);
    }
    format!("{}\n{}", table.render(), by_opcode.render())
}
