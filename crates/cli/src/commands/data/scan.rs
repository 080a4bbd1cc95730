//! `xla-gym data scan`

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{Table, grouped, on_all_cores};
use xla_gym_data::{Benchmark, Benchmarks, Skipped};
use xla_gym_engine::{
    Engine,
    protocol::{Fingerprint, Observe},
};
use xla_gym_score::run_default;

use crate::context::Context;

/// Look at your own graphs: which can be used, how large they are, what XLA makes of them.
#[derive(clap::Args)]
pub struct Args {
    /// Files, quoted patterns such as 'models/*.hlo', folders (of a folder that XLA dumped into
    /// by `--xla_dump_to`, the modules before optimisation), ids or `hlo-v1:SPLIT/SIDE`.
    #[arg(required = true)]
    what: Vec<String>,

    /// Do not run XLA's own pipeline on them.
    #[arg(long)]
    no_default: bool,
}

#[derive(Serialize)]
struct Scanned {
    programs: Vec<Program>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Program {
    name: String,
    instructions: u64,
    operations: u64,
    /// After XLA's own pipeline, or why it made nothing of it.
    kernels: Option<Result<u64, String>>,
    fingerprint: Fingerprint,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let found = Benchmarks::find(&args.what)?;
    let engine = context.engine()?;
    let progress = context.progress();
    progress.doing("reading");
    progress.counting(found.programs.len() as u64, "programs");
    let looked_at = on_all_cores(found.programs.len(), |index| {
        let benchmark = &found.programs[index];
        let program = look_at(&engine, benchmark, !args.no_default);
        progress.advance();
        anyhow::Ok(
            program
                .map_err(|error| Skipped { name: benchmark.name(), reason: format!("{error:#}") }),
        )
    })?;
    drop(progress);
    let mut scanned = Scanned { programs: Vec::new(), skipped: found.skipped };
    for program in looked_at {
        match program {
            Ok(program) => scanned.programs.push(program),
            Err(skipped) => scanned.skipped.push(skipped),
        }
    }
    if context.json() {
        context.print_json(&scanned)?;
    } else {
        context.print(&render(&scanned))?;
    }
    Ok(ExitCode::from(u8::from(scanned.programs.is_empty())))
}

fn look_at(engine: &Engine, benchmark: &Benchmark, default: bool) -> Result<Program> {
    let mut session = engine.load(&benchmark.source()?)?;
    let counts = session.observe(Observe::COUNTS)?.counts.unwrap_or_default();
    let kernels = default.then(|| match run_default(&mut session, &[]) {
        Ok(run) => Ok(run.end.operations),
        Err(error) => Err(error.to_string()),
    });
    Ok(Program {
        name: benchmark.name(),
        instructions: counts.instructions,
        operations: counts.operations,
        kernels,
        fingerprint: session.fingerprint()?,
    })
}

fn render(scanned: &Scanned) -> String {
    let mut table = Table::new(&["program", ">instructions", ">operations", ">kernels by default"]);
    for program in &scanned.programs {
        table.row([
            program.name.clone(),
            grouped(program.instructions),
            grouped(program.operations),
            match &program.kernels {
                None => "–".to_owned(),
                Some(Ok(kernels)) => grouped(*kernels),
                Some(Err(reason)) => format!("refused: {reason}"),
            },
        ]);
    }
    let mut text = format!(
        "{}\n{} programs can be used, {} files were passed over\n",
        table.render(),
        scanned.programs.len(),
        scanned.skipped.len()
    );
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &scanned.skipped {
        // Errors of the engine begin with the name of the input.
        let reason = skipped.reason.strip_prefix(&format!("{}: ", skipped.name));
        by_reason.entry(reason.unwrap_or(&skipped.reason)).or_default().push(&skipped.name);
    }
    for (reason, names) in by_reason {
        match names[..] {
            [name] => text.push_str(&format!("  {name}: {reason}\n")),
            [first, ..] => {
                text.push_str(&format!("  {} × {reason}, such as {first}\n", names.len()));
            }
            [] => {}
        }
    }
    text
}
