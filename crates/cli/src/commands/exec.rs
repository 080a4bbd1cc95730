//! `xla-gym exec`

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use xla_gym_engine::protocol::{Array, MemoryEstimate};
use xla_gym_oracle::{Calm, inputs, too_large};

use crate::{
    context::{Context, count, time},
    table::Table,
};

/// Compile a program, run it on seeded inputs, print timings and a digest of the outputs.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: PathBuf,

    /// How often to run it.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Draw positive floats only, for programs that take roots or logarithms of their inputs.
    #[arg(long)]
    positive: bool,

    /// Leave out these passes of XLA's own pipeline (names separated by commas).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    disable: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    compile: Duration,
    memory: Option<MemoryEstimate>,
    runs: u32,
    fastest: Duration,
    median: Duration,
    slowest: Duration,
    outputs: Vec<Output>,
    digest: String,
}

#[derive(Serialize)]
struct Output {
    dtype: String,
    dims: Vec<i64>,
    digest: String,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine()?;
    let mut session = context.load(&engine, &args.file)?;
    let signature = session.signature()?;
    if !signature.collectives.is_empty() {
        bail!(
            "{} says how devices talk ({}) and not which devices there are",
            args.file.display(),
            signature.collectives.join(", ")
        );
    }
    let waits = ["infeed", "outfeed", "recv", "send"];
    if let Some(what) = signature.not_comparable.iter().find(|what| waits.contains(&&***what)) {
        bail!(
            "{} waits for another program, by {what}, and would wait for ever",
            args.file.display()
        );
    }
    if !signature.unknown_calls.is_empty() {
        bail!(
            "{} calls functions that are not here: {}",
            args.file.display(),
            signature.unknown_calls.join(", ")
        );
    }
    if let Some(reason) = too_large(&signature) {
        bail!("{} cannot be run: {reason}", args.file.display());
    }
    let calm = if args.positive { Calm::FLOATS } else { Calm::NOT };
    let inputs = inputs(&signature, args.seed, 0, calm);

    let progress = context.progress();
    progress.doing("compiling");
    let mut scratch = session.scratch()?;
    let compiled =
        scratch.compile(&args.disable).with_context(|| session.source().name.to_string())?;
    scratch.make_inputs(&compiled, &inputs)?;
    // The first run pays for what later ones find ready.
    scratch.execute(&compiled, 1, false)?;
    progress.doing("running");
    progress.counting(args.runs.into(), "runs");
    let mut times = Vec::new();
    let mut outputs = Vec::new();
    for run in 1..=args.runs {
        let (nanos, last) = scratch.execute(&compiled, 1, run == args.runs)?;
        times.extend(nanos);
        outputs = last;
        progress.advance();
    }
    drop(progress);
    times.sort_unstable();

    let digests: Vec<u128> = outputs.iter().map(digest).collect();
    let total: Vec<u8> = digests.iter().flat_map(|digest| digest.to_le_bytes()).collect();
    let shown = Shown {
        file: session.source().name.to_string(),
        compile: Duration::from_nanos(compiled.nanos),
        memory: compiled.memory,
        runs: args.runs,
        fastest: Duration::from_nanos(times[0]),
        median: Duration::from_nanos(times[times.len() / 2]),
        slowest: Duration::from_nanos(times[times.len() - 1]),
        outputs: outputs
            .iter()
            .zip(&digests)
            .map(|(array, digest)| Output {
                dtype: array.dtype.clone(),
                dims: array.dims.clone(),
                digest: format!("{digest:032x}"),
            })
            .collect(),
        digest: format!("{:032x}", fnv(&total)),
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn digest(array: &Array) -> u128 {
    fnv(&array.bytes)
}

/// FNV-1a: a digest to compare by eye, not a guard against malice.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62272e07bb014262b821756295c58d, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000000001000000000000000000013b)
    })
}

fn render(shown: &Shown) -> String {
    let mut table = Table::new(&[&shown.file, ">"]);
    let mut line = |name: &str, value: String| table.row([name.to_owned(), value]);
    line("compile time", time(shown.compile));
    line("fastest run", time(shown.fastest));
    line("median run", time(shown.median));
    line("slowest run", time(shown.slowest));
    if let Some(memory) = shown.memory {
        line("peak memory (bytes)", count(memory.peak as f64));
    }
    line("outputs", shown.outputs.len().to_string());
    line("digest of all outputs", shown.digest.clone());
    table.render()
}
