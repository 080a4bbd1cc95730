//! `xla-gym exec`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use xla_gym_common::{Table, fnv128};
use xla_gym_engine::{
    Session,
    protocol::{Array, Finish, InputSet, MemoryEstimate, Signature},
};
use xla_gym_optimize::compare_speed;
use xla_gym_oracle::{Calm, inputs, too_large};

use crate::context::{Context, count, time};

/// Compile a program, run it on seeded inputs, print timings and a digest of the outputs; or find out
/// which of two programs is faster.
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

    /// Leave out these passes of the compiler's own pipeline (names separated by commas).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    disable: Vec<String>,

    /// Another program, which takes the same inputs: run both in turn, compiled anew several times, until
    /// it is clear which is faster. On programs of a few milliseconds 2% are told from noise; the longer a
    /// run takes, the more time that needs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "disable"])]
    against: Option<PathBuf>,

    /// How long that may take.
    #[arg(long, default_value_t = 60.0, requires = "against", value_parser = seconds)]
    seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("seconds are a number over 0".to_owned()),
    }
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
    let engine = context.engine(&args.file)?;
    let mut session = context.load(&engine, &args.file)?;
    let signature = session.signature()?;
    check_that_it_runs(&args.file, &signature)?;
    let calm = if args.positive { Calm::FLOATS } else { Calm::NOT };
    let inputs = inputs(&signature, args.seed, 0, calm);
    if let Some(file) = &args.against {
        let mut other = context.load(&engine, file)?;
        check_that_it_runs(file, &other.signature()?)?;
        return compare(context, session, other, &inputs, args.seconds);
    }

    let progress = context.progress();
    progress.doing("compiling");
    let mut scratch = session.scratch()?;
    let finish = Finish { disabled: args.disable.clone(), ..Finish::default() };
    let compiled = scratch.compile(&finish).with_context(|| session.source().name.to_string())?;
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
        digest: format!("{:032x}", fnv128(total)),
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what waits for others, calls what is not here, or is too large.
fn check_that_it_runs(file: &Path, signature: &Signature) -> Result<()> {
    if !signature.collectives.is_empty() {
        bail!(
            "{} says how devices talk ({}) and not which devices there are",
            file.display(),
            signature.collectives.join(", ")
        );
    }
    let waits = ["infeed", "outfeed", "recv", "send"];
    if let Some(what) = signature.not_comparable.iter().find(|what| waits.contains(&&***what)) {
        bail!("{} waits for another program, by {what}, and would wait for ever", file.display());
    }
    if !signature.unknown_calls.is_empty() {
        bail!(
            "{} calls functions that are not here: {}",
            file.display(),
            signature.unknown_calls.join(", ")
        );
    }
    if let Some(reason) = too_large(signature) {
        bail!("{} cannot be run: {reason}", file.display());
    }
    Ok(())
}

/// Which of two programs is faster.
fn compare(
    context: &Context,
    mut first: Session,
    mut second: Session,
    inputs: &InputSet,
    seconds: f64,
) -> Result<ExitCode> {
    let names = [&first, &second].map(|session| session.source().name.to_string());
    if first.signature()?.inputs != second.signature()?.inputs {
        bail!("{} and {} do not take the same inputs", names[0], names[1]);
    }
    let progress = context.progress();
    progress.doing(&format!("running both in turn, {seconds:.0} s at most"));
    let patience = Duration::from_secs_f64(seconds);
    let measured = compare_speed(first, &mut second, inputs, patience, &|| false)?;
    drop(progress);
    let timing = match measured {
        Ok(timing) => timing,
        Err(reason) => bail!("{} or {} does not run: {reason}", names[0], names[1]),
    };
    if context.json() {
        context.print_json(&timing)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        Table::new(&["", &names[0], &names[1], "times as fast", "95% interval", "alone"]);
    for (what, paired) in [("run", &timing.run), ("compile", &timing.compile)] {
        let of = |nanos: f64| time(Duration::from_nanos(nanos.max(0.0) as u64));
        table.row([
            what.to_owned(),
            of(paired.default.median),
            of(paired.result.median),
            format!("{:.3}", paired.speedup),
            format!("{:.3} to {:.3}", paired.interval.0, paired.interval.1),
            paired.controls.iter().map(|control| format!("{:.3}", control.speedup)).collect(),
        ]);
    }
    let verdict = match &timing.run {
        run if run.within_noise => "no difference in run time beyond the noise",
        run if run.speedup > 1.0 => "the second runs faster",
        _ => "the first runs faster",
    };
    context.print(&format!(
        "{}\n{verdict} ({} runs of each; alone: the first beside a second compilation of itself)\n",
        table.render(),
        timing.run.default.count
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// To compare by eye.
fn digest(array: &Array) -> u128 {
    fnv128(array.bytes.iter().copied())
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
