//! `xla-gym passes`

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use anyhow::Result;
use xla_gym_common::Table;
use xla_gym_engine::protocol::Pass;

use crate::context::{Context, warn};

/// List the passes.
#[derive(clap::Args)]
pub struct Args {
    /// Only passes of this kind.
    #[arg(long)]
    kind: Option<String>,

    /// Only passes whose name contains this.
    filter: Option<String>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine(Path::new(""))?;
    let kinds: BTreeSet<&str> = engine.hello().passes.iter().map(|pass| &*pass.kind).collect();
    if let Some(kind) = &args.kind
        && !kinds.contains(&**kind)
    {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        warn(&format!("there is no kind {kind:?}; there are: {}", kinds.join(", ")));
        return Ok(ExitCode::from(2));
    }
    let wanted = |pass: &&Pass| {
        args.kind.as_ref().is_none_or(|kind| pass.kind == *kind)
            && args.filter.as_ref().is_none_or(|text| pass.name.contains(text.as_str()))
    };
    let passes: Vec<&Pass> = engine.hello().passes.iter().filter(wanted).collect();
    if context.json() {
        context.print_json(&passes)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["pass", "kind", "what it does"]);
    for pass in &passes {
        let mut description = pass.description.clone();
        if pass.lossy {
            description.push_str(" [may change results]");
        } else if !pass.is_default_action {
            description.push_str(" [only if named]");
        }
        table.row([pass.name.clone(), pass.kind.clone(), description]);
    }
    context.print(&table.render())?;
    Ok(ExitCode::SUCCESS)
}
