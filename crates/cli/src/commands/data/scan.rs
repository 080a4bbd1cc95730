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
use xla_gym_profile::{Figure, Finished, Profile, Spec, finish};

use crate::{
    context::Context,
    named::{self, Named},
};

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
    counts: Named<u64>,
    /// By the compiler's own pipeline, stage by stage of its profile, or why it made nothing of it.
    default: Option<Result<BTreeMap<&'static str, u64>, String>>,
    fingerprint: Fingerprint,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let profile = context.profile_of(&args.what);
    let found = Benchmarks::find_files(&args.what, &profile.spec().files)?;
    let engine = Engine::start(context.engine_config(&*profile)?)?;
    let progress = context.progress();
    progress.doing("reading");
    progress.counting(found.programs.len() as u64, "programs");
    let looked_at = on_all_cores(found.programs.len(), |index| {
        let benchmark = &found.programs[index];
        let program = look_at(&engine, &*profile, benchmark, !args.no_default);
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
        context.print(&render(profile.spec(), &scanned))?;
    }
    Ok(ExitCode::from(u8::from(scanned.programs.is_empty())))
}

fn look_at(
    engine: &Engine,
    profile: &dyn Profile,
    benchmark: &Benchmark,
    default: bool,
) -> Result<Program> {
    let mut session = engine.load(&benchmark.source()?)?;
    let counts = session.observe(Observe::COUNTS)?.counts.unwrap_or_default();
    let spec = profile.spec();
    let default = default.then(|| match finish(&mut session, &spec.usual) {
        Ok(run) => Ok(after_pipeline(spec, &run)),
        Err(error) => Err(error.to_string()),
    });
    Ok(Program {
        name: benchmark.name(),
        counts: named::counts(engine.hello(), &counts),
        default,
        fingerprint: session.fingerprint()?,
    })
}

/// What is known after the pipeline alone, of the figures that are compared.
fn after_pipeline(spec: &Spec, run: &Finished) -> BTreeMap<&'static str, u64> {
    let figures = run.figures(spec, 0);
    let compared = spec.stages.iter().map(|stage| stage.figure);
    let known = compared.filter(|figure| !spec.is_of_order(*figure));
    let value = |figure: Figure| Some((spec.figure_name(figure), figures.get(figure)? as u64));
    known.filter_map(value).collect()
}

fn render(spec: &Spec, scanned: &Scanned) -> String {
    // The last stage is where it ends.
    let last = spec.stages.last().map_or("", |stage| spec.figure_name(stage.figure));
    let names: Vec<String> = scanned
        .programs
        .iter()
        .flat_map(|program| program.counts.names())
        .take(2)
        .map(|name| format!(">{name}"))
        .collect();
    let by_default = format!(">{last} by default");
    let mut header = vec!["program"];
    header.extend(names.iter().map(String::as_str));
    header.push(&by_default);
    let mut table = Table::new(&header);
    for program in &scanned.programs {
        let mut cells = vec![program.name.clone()];
        cells.extend(program.counts.iter().take(2).map(|(_, value)| grouped(value)));
        cells.push(match &program.default {
            None => "–".to_owned(),
            Some(Ok(figures)) => figures.get(last).copied().map_or_else(String::new, grouped),
            Some(Err(reason)) => format!("refused: {reason}"),
        });
        table.row(cells);
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
