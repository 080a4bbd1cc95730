//! `xla-gym run`

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::{
    EngineError,
    protocol::{Hello, Observation, Observe},
};
use xla_gym_profile::start_session;

use crate::{
    context::{Context, count, parse_passes, time},
    named::{self, Named},
    outfile::OutFile,
    start::StartArg,
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

    /// Write the result: .hlo, .pb, .mlir or .mlirbc for XLA, and .gz or .zst behind it.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,

    /// Have the compiler's verifier look at the program after each pass.
    #[arg(long)]
    verify: bool,

    /// Stop at the first pass that does not take place.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    start: StartArg,
}

#[derive(Serialize)]
struct Row {
    pass: String,
    /// None if the pass did not take place.
    changed: Option<bool>,
    error: Option<String>,
    error_kind: Option<&'static str>,
    counts: Option<Named<u64>>,
    cost: Option<Named<f64>>,
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
    let engine = context.engine(&args.file)?;
    let hello = engine.hello();
    let profile = context.profile(&args.file.to_string_lossy());
    let first = args.start.position(profile.spec())?;
    let passes = parse_passes(&engine, &args.passes)?;
    let mut session = context.load(&engine, &args.file)?;
    if first > 0 {
        session = start_session(&*profile, &mut session, first)?;
    }

    let mut observe = Observe::COUNTS | Observe::COST;
    if args.verify {
        observe = observe | Observe::VERDICT;
    }
    let start = session.observe(observe)?;
    let mut ran = Ran {
        file: session.source().name.to_string(),
        start: row(hello, "(start)", None, 0, start),
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
                ran.rows.push(row(hello, name, Some(applied.changed), applied.nanos, observation));
            }
            Err(EngineError::Pass(error)) => {
                ran.failed += 1;
                let mut failed = row(hello, name, None, 0, session.observe(observe)?);
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
        output.write(&session.print(output.form(&engine)?)?)?;
    }
    if context.json() {
        context.print_json(&ran)?;
    } else {
        context.print(&render(&ran, args.verify))?;
    }
    Ok(if ran.failed > 0 || ran.invalid { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn row(hello: &Hello, pass: &str, changed: Option<bool>, nanos: u64, seen: Observation) -> Row {
    Row {
        pass: pass.to_owned(),
        changed,
        error: None,
        error_kind: None,
        counts: seen.counts.map(|seen| named::counts(hello, &seen)),
        cost: seen.cost.and_then(Result::ok).map(|cost| named::costs(hello, &cost)),
        invalid: seen.verdict.and_then(Result::err),
        nanos,
    }
}

fn render(ran: &Ran, verified: bool) -> String {
    // The two counts that come first, and the first of the estimates.
    let counts: Vec<&str> = ran.start.counts.iter().flat_map(Named::names).take(2).collect();
    let costs = ran.start.cost.iter().flat_map(Named::names).take(1);
    let shown: Vec<String> =
        counts.iter().copied().chain(costs).map(|name| format!(">{name}")).collect();
    let mut header = vec!["pass", "changed"];
    header.extend(shown.iter().map(String::as_str));
    header.extend([">time", ""]);
    let mut table = Table::new(&header);
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
        let mut cells = vec![row.pass.clone(), changed.to_owned()];
        let values = row.counts.iter().flat_map(Named::iter).take(2);
        cells.extend(values.map(|(_, value)| grouped(value)));
        let cost = row.cost.as_ref().and_then(Named::primary);
        if shown.len() > counts.len() {
            cells.push(cost.map_or_else(String::new, count));
        }
        cells.push(if row.nanos > 0 {
            time(Duration::from_nanos(row.nanos))
        } else {
            String::new()
        });
        cells.push(remark);
        table.row(cells);
    }
    table.render()
}
