//! `xla-gym check`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use xla_gym_oracle::{Options, Reference, Verdict};

use crate::{commands::score::describe, context::Context};

/// Check whether two programs give the same outputs on seeded inputs.
///
/// Both are compiled by XLA and run on the CPU. Integers and booleans must be equal. Floats may
/// differ by T × (|a| + root mean square of the output), with T = 1e-9 for f64, 1e-4 for f32,
/// 1e-2 for f16 and 4e-2 for bf16.
#[derive(clap::Args)]
pub struct Args {
    /// The first program.
    a: PathBuf,

    /// The second program.
    b: PathBuf,

    /// Sets of inputs.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine()?;
    let mut a = context.load(&engine, &args.a)?;
    let mut b = context.load(&engine, &args.b)?;
    let progress = context.progress();
    progress.doing("running the first program");
    let options = Options { trials: args.trials, seed: args.seed };
    let reference = Reference::new(&mut a, options)?;
    progress.doing("running the second program");
    let report = reference.compare(&mut b, &[])?;
    drop(progress);
    if context.json() {
        context.print_json(&report)?;
    } else {
        context.print(&format!("{}\n", describe(&report)))?;
    }
    Ok(ExitCode::from(match report.verdict {
        Verdict::Equal => 0,
        Verdict::Different { .. } => 4,
        Verdict::NotComparable { .. } => 5,
        Verdict::Rejected { .. } => 1,
    }))
}
