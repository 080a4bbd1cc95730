//! `xla-gym check`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use xla_gym_oracle::{Options, ReferenceKind, Verdict};

use crate::{commands::score::describe, context::Context};

/// Check whether two programs give the same outputs on seeded inputs.
///
/// Both are compiled and run, as they are and, where there are floats, with all of them in f64.
/// Integers and booleans must be the same to the last bit. Floats may be off by 64 times the noise
/// that each element of the first program has by itself, which is measured: by inputs moved by one
/// unit in the last place, by a second compilation, and by the program in f64.
///
/// Programs of which a run takes seconds, or inputs and outputs a quarter of a gigabyte, are run as they
/// are alone, on as many kinds of inputs as a minute allows, unless the interpreter is asked for; the
/// answer says so.
///
/// Exit code: 0 equal, 4 different, 5 not comparable, 1 rejected by the compiler.
#[derive(clap::Args)]
pub struct Args {
    /// The first program.
    a: PathBuf,

    /// The second program.
    b: PathBuf,

    /// Kinds of inputs; more are tried where comparisons in the program fell only one way.
    #[arg(long, default_value_t = Options::default().trials, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Who says what the first program computes: compiled, interpreter (the compiler's own), both, or auto
    /// (compiled, and the interpreter where that should take under 2 s).
    #[arg(long, default_value_t = ReferenceKind::Auto, value_name = "WHO")]
    reference: ReferenceKind,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine(&args.a)?;
    let profile = context.profile(&args.a.to_string_lossy());
    let mut a = context.load(&engine, &args.a)?;
    let mut b = context.load(&engine, &args.b)?;
    let progress = context.progress();
    progress.doing("running the first program");
    let (trials, seed, reference) = (args.trials, args.seed, args.reference);
    let options = Options { trials, seed, reference, ..Options::default() };
    let reference = xla_gym_profile::reference(&*profile, &mut a, options)?;
    progress.doing("running the second program");
    let report = reference.compare(&mut b, &profile.spec().usual)?;
    drop(progress);
    if context.json() {
        context.print_json(&report)?;
    } else {
        context.print(&format!("{}\n", describe(&report)))?;
    }
    Ok(ExitCode::from(match report.verdict {
        Verdict::Equal => 0,
        Verdict::Different { .. } | Verdict::OtherSignature { .. } => 4,
        Verdict::NotComparable { .. } => 5,
        Verdict::Rejected { .. } => 1,
    }))
}
