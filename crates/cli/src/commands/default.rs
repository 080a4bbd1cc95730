//! `xla-gym default`

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::protocol::{Counts, Observe, PipelineOptions};
use xla_gym_score::{DefaultRun, is_optimisation, run_default};

use crate::{
    context::{Context, time},
    outfile::OutFile,
};

/// Show what XLA's own CPU compiler does with a program.
///
/// The pass list, the counts and the time come from a run of the real compiler, without code
/// generation.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: PathBuf,

    /// List every pass, not only those that changed the program.
    #[arg(long)]
    all: bool,

    /// Leave out these passes of the pipeline (names separated by commas).
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    disable: Vec<String>,

    /// Write the final program.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,

    /// Write the program from just before layout assignment.
    #[arg(long, value_name = "OUT", value_parser = OutFile::parser())]
    middle_output: Option<OutFile>,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    start: Option<Counts>,
    #[serde(flatten)]
    default: DefaultRun,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let outputs: Vec<(OutFile, bool)> = [(args.middle_output, true), (args.output, false)]
        .into_iter()
        .filter_map(|(output, middle)| Some((output?, middle)))
        .collect();
    let engine = context.engine()?;
    let mut session = context.load(&engine, &args.file)?;
    let progress = context.progress();
    progress.doing("running XLA's own pipeline");
    let shown = Shown {
        file: session.source().name.to_string(),
        start: session.observe(Observe::COUNTS)?.counts,
        default: run_default(&mut session, &args.disable)?,
    };
    if !outputs.is_empty() {
        let mut scratch = session.scratch()?;
        let options = PipelineOptions {
            disable: args.disable,
            middle: true,
            keep: true,
            ..PipelineOptions::default()
        };
        let report = scratch.pipeline(&options, Observe::NOTHING)?;
        for (output, middle) in &outputs {
            let program = if *middle { report.middle_program } else { report.end_program };
            let Some(program) = program else { bail!("the compiler kept no such state") };
            output.write(&scratch.print(program, output.form())?)?;
        }
    }
    drop(progress);
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&shown, args.all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(shown: &Shown, all: bool) -> String {
    let default = &shown.default;
    let mut states = Table::new(&[&shown.file, ">operations", ">instructions"]);
    let mut state = |name: &str, counts: Counts| {
        states.row([name.to_owned(), grouped(counts.operations), grouped(counts.instructions)]);
    };
    if let Some(start) = shown.start {
        state("start", start);
    }
    state("before layout assignment", default.middle);
    state("end (kernels)", default.end);

    let mut passes = Table::new(&[">#", "pipeline", "pass", "changed", "role"]);
    for (index, pass) in default.passes.iter().enumerate() {
        if pass.pass == "pipeline-start" || !(all || pass.changed) {
            continue;
        }
        let role = match () {
            () if index >= default.passes_before_layout => "after layout",
            () if is_optimisation(&pass.pass) => "optimisation",
            () => "legalisation",
        };
        passes.row([
            index.to_string(),
            pass.pipeline.clone(),
            pass.pass.clone(),
            if pass.changed { "yes" } else { "no" }.to_owned(),
            role.to_owned(),
        ]);
    }
    let changed = default.passes.iter().filter(|pass| pass.changed).count();
    format!(
        "{}\n{}\n{} passes in {}, {changed} changed the program{}\n",
        states.render(),
        passes.render(),
        default.passes.len(),
        time(default.time),
        if all { "" } else { " (--all lists the others too)" },
    )
}
