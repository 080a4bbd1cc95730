//! `xla-gym default`

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::protocol::{
    Cost, Fingerprint, Finish, Hello, Observe, PipelineOptions, PipelinePass,
};
use xla_gym_profile::{Finished, Profile, finish};

use crate::{
    context::{Context, time},
    named::{Named, counts},
    outfile::OutFile,
};

/// Show what the compiler itself does with a program.
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

    /// Write the program at the pipeline's first stage (of XLA's: just before layout assignment).
    #[arg(long, value_name = "OUT", value_parser = OutFile::parser())]
    middle_output: Option<OutFile>,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    start: Option<Named<u64>>,
    /// What was counted at each stage, by its name.
    stages: Vec<Stage>,
    finals: Option<Cost>,
    end_fingerprint: Option<Fingerprint>,
    passes: Vec<PipelinePass>,
    time: Duration,
}

#[derive(Serialize)]
struct Stage {
    name: String,
    /// How many passes had run.
    passes: usize,
    counts: Named<u64>,
}

impl Shown {
    fn new(file: String, start: Option<Named<u64>>, hello: &Hello, run: Finished) -> Shown {
        let names = hello.pipelines[0].stages.iter();
        let stages = names.zip(&run.counts).zip(&run.passes_before);
        Shown {
            file,
            start,
            stages: stages
                .map(|((name, seen), passes)| Stage {
                    name: name.clone(),
                    passes: *passes,
                    counts: counts(hello, seen),
                })
                .collect(),
            finals: run.finals,
            end_fingerprint: run.fingerprint,
            passes: run.passes,
            time: run.time,
        }
    }
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let outputs: Vec<(OutFile, bool)> = [(args.middle_output, true), (args.output, false)]
        .into_iter()
        .filter_map(|(output, middle)| Some((output?, middle)))
        .collect();
    let engine = context.engine(&args.file)?;
    let profile = context.profile(&args.file.to_string_lossy());
    let how = Finish { disabled: args.disable, ..profile.spec().usual.clone() };
    let mut session = context.load(&engine, &args.file)?;
    let progress = context.progress();
    progress.doing("running the compiler's own pipeline");
    let start = session.observe(Observe::COUNTS)?.counts;
    let shown = Shown::new(
        session.source().name.to_string(),
        start.map(|seen| counts(engine.hello(), &seen)),
        engine.hello(),
        finish(&mut session, &how)?,
    );
    if !outputs.is_empty() {
        let mut scratch = session.scratch()?;
        let options =
            PipelineOptions { finish: how, stages: true, keep: true, ..PipelineOptions::default() };
        let report = scratch.pipeline(&options, Observe::NOTHING)?;
        for (output, middle) in &outputs {
            let stage = if *middle { report.stages.first() } else { report.stages.last() };
            let program = stage.and_then(|stage| stage.as_ref()?.program);
            let Some(program) = program else { bail!("the compiler kept no such state") };
            output.write(&scratch.print(program, output.form(&engine)?)?)?;
        }
    }
    drop(progress);
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(&*profile, &shown, args.all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(profile: &dyn Profile, shown: &Shown, all: bool) -> String {
    let names: Vec<String> =
        shown.start.iter().flat_map(Named::names).take(2).map(|name| format!(">{name}")).collect();
    let mut header = vec![&*shown.file];
    header.extend(names.iter().map(String::as_str));
    let mut states = Table::new(&header);
    let mut state = |name: &str, counts: &Named<u64>| {
        let values = counts.iter().take(2).map(|(_, value)| grouped(value));
        states.row(std::iter::once(name.to_owned()).chain(values).collect::<Vec<_>>());
    };
    if let Some(start) = &shown.start {
        state("start", start);
    }
    for stage in &shown.stages {
        state(&stage.name, &stage.counts);
    }

    let mut passes = Table::new(&[">#", "pipeline", "pass", "changed", "role"]);
    for (index, pass) in shown.passes.iter().enumerate() {
        if pass.pass == "pipeline-start" || !(all || pass.changed) {
            continue;
        }
        let before = shown.stages.first().is_none_or(|stage| index < stage.passes);
        let role = match () {
            () if !before => "later",
            () if !profile.own_order(std::slice::from_ref(pass)).is_empty() => "optimizes",
            () => "prepares",
        };
        passes.row([
            index.to_string(),
            pass.pipeline.clone(),
            pass.pass.clone(),
            if pass.changed { "yes" } else { "no" }.to_owned(),
            role.to_owned(),
        ]);
    }
    let changed = shown.passes.iter().filter(|pass| pass.changed).count();
    format!(
        "{}\n{}\n{} passes in {}, {changed} changed the program{}\n",
        states.render(),
        passes.render(),
        shown.passes.len(),
        time(shown.time),
        if all { "" } else { " (--all lists the others too)" },
    )
}
