//! `xla-gym run`

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Cost, Counts, Observation, Observe},
};
use xla_gym_score::{Start, start_session};

use crate::{
    context::{Context, count, parse_passes, time},
    outfile::OutFile,
};

/// Run passes on a program, one row each.
///
/// A pass that fails, aborts or hangs is reported and left out; the program stays as it was
/// before it, and the next pass runs.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: PathBuf,

    /// Names separated by commas, or @FILE with a list; `xla-gym passes` shows them.
    #[arg(long, short)]
    passes: String,

    /// Write the result: .hlo, .pb, .mlir or .mlirbc, and .gz or .zst behind it.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,

    /// Have XLA's verifier look at the program after each pass.
    #[arg(long)]
    verify: bool,

    /// Stop at the first pass that does not take place.
    #[arg(long)]
    strict: bool,

    /// Bring the program into the normal form on which passes rarely crash, first.
    #[arg(long)]
    normalise: bool,
}

#[derive(Serialize)]
struct Row {
    pass: String,
    /// None if the pass did not take place.
    changed: Option<bool>,
    error: Option<String>,
    error_kind: Option<&'static str>,
    counts: Option<Counts>,
    cost: Option<Cost>,
    /// Why the verifier refuses the state, if asked and if it does.
    invalid: Option<String>,
    nanos: u64,
}

#[derive(Serialize)]
struct Ran {
    file: String,
    start: Row,
    rows: Vec<Row>,
    failed: usize,
    invalid: bool,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine()?;
    let passes = parse_passes(&engine, &args.passes)?;
    let mut session = context.load(&engine, &args.file)?;
    if args.normalise {
        session = start_session(&mut session, Start::Normalised)?;
    }

    let mut observe = Observe::COUNTS | Observe::COST;
    if args.verify {
        observe = observe | Observe::VERDICT;
    }
    let start = session.observe(observe)?;
    let mut ran = Ran {
        file: session.source().name.to_string(),
        start: row("(start)", None, 0, start),
        rows: Vec::new(),
        failed: 0,
        invalid: false,
    };
    let progress = context.progress();
    progress.counting(passes.len() as u64, "passes");
    for &pass in &passes {
        let name = engine.pass_name(pass);
        progress.doing(name);
        match session.apply(pass, observe) {
            Ok(applied) => {
                let observation = applied.observation;
                ran.rows.push(row(name, Some(applied.changed), applied.nanos, observation));
            }
            Err(EngineError::Pass(error)) => {
                ran.failed += 1;
                let mut failed = row(name, None, 0, session.observe(observe)?);
                failed.error = Some(error.failure.to_string());
                failed.error_kind = Some(error.failure.kind());
                ran.rows.push(failed);
                if args.strict {
                    break;
                }
            }
            Err(error) => return Err(error.into()),
        }
        progress.advance();
    }
    drop(progress);
    ran.invalid = ran.rows.last().is_some_and(|row| row.invalid.is_some());

    if let Some(output) = &args.output {
        output.write(&write_out(&mut session, output)?)?;
    }
    if context.json() {
        context.print_json(&ran)?;
    } else {
        context.print(&render(&ran, args.verify))?;
    }
    Ok(if ran.failed > 0 || ran.invalid { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn write_out(session: &mut Session, output: &OutFile) -> Result<Vec<u8>> {
    Ok(session.print(output.form())?)
}

fn row(pass: &str, changed: Option<bool>, nanos: u64, seen: Observation) -> Row {
    Row {
        pass: pass.to_owned(),
        changed,
        error: None,
        error_kind: None,
        counts: seen.counts,
        cost: seen.cost.and_then(Result::ok),
        invalid: seen.verdict.and_then(Result::err),
        nanos,
    }
}

fn render(ran: &Ran, verified: bool) -> String {
    let mut table =
        Table::new(&["pass", "changed", ">operations", ">instructions", ">FLOPs", ">time", ""]);
    for row in std::iter::once(&ran.start).chain(&ran.rows) {
        let changed = match (row.changed, row.error_kind) {
            (_, Some(kind)) => kind,
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, None) => "",
        };
        let remark = match (&row.error, &row.invalid) {
            (Some(error), _) => error.clone(),
            (_, Some(invalid)) => format!("INVALID: {invalid}"),
            (None, None) if verified => "valid".to_owned(),
            (None, None) => String::new(),
        };
        table.row([
            row.pass.clone(),
            changed.to_owned(),
            row.counts.map_or_else(String::new, |counts| grouped(counts.operations)),
            row.counts.map_or_else(String::new, |counts| grouped(counts.instructions)),
            row.cost.map_or_else(String::new, |cost| count(cost.flops)),
            if row.nanos > 0 { time(Duration::from_nanos(row.nanos)) } else { String::new() },
            remark,
        ]);
    }
    table.render()
}
