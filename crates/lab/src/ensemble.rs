//! One policy out of several.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use xla_gym_agents::{TrainedPolicy, together};

/// One policy out of several that were trained in the same way with different seeds: its logits are
/// the means of theirs.
#[derive(clap::Args)]
pub struct Args {
    /// Files of the policies.
    #[arg(required = true)]
    members: Vec<PathBuf>,

    /// What to call it.
    #[arg(long)]
    name: String,

    /// Where to write it.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let read = |path: &PathBuf| Ok(TrainedPolicy::read(path)?);
    let members = args.members.iter().map(read).collect::<Result<Vec<_>>>()?;
    let shown = |path: &PathBuf| path.display().to_string();
    let names: Vec<String> = args.members.iter().map(shown).collect();
    let (name, output) = (&args.name, args.output.display());
    let command = format!("xla-gym-lab ensemble {} --name {name} -o {output}", names.join(" "));
    let policy = together(name, &command, &members)
        .map_err(|message| anyhow!("{message}"))
        .with_context(|| names.join(", "))?;
    policy.write(&args.output)?;
    Ok(())
}
