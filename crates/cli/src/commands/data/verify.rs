//! `xla-gym data verify`

use std::{path::Path, process::ExitCode, sync::Mutex};

use anyhow::{Result, anyhow};
use serde::Serialize;
use xla_gym_common::{lock, on_all_cores};
use xla_gym_data::{Graph, Library};
use xla_gym_engine::{Engine, EngineError, protocol::Observe};
use xla_gym_oracle::typical_inputs;
use xla_gym_profile::{Finish, Profile, finish};

use crate::context::Context;

/// Check every graph against the real compiler: it parses, XLA's verifier accepts it, its
/// identity, counts and default are those of the manifest, and it runs on the CPU unless it
/// calls foreign functions or needs several devices.
#[derive(clap::Args)]
pub struct Args {
    /// Only graphs whose id contains this.
    filter: Option<String>,

    /// Of which data set.
    #[arg(long, default_value = "hlo-v1")]
    pub set: String,

    /// Do not compile and run (which takes most of the time).
    #[arg(long)]
    no_exec: bool,

    /// Graphs with more instructions are not compiled.
    #[arg(long, default_value_t = u64::MAX)]
    exec_up_to: u64,
}

#[derive(Default, Serialize)]
struct Verified {
    graphs: usize,
    default_checked: usize,
    executed: usize,
    not_executable: usize,
    problems: Vec<String>,
}

pub fn run(context: &Context, library: &Library, args: Args) -> Result<ExitCode> {
    let profile = context.usual_profile();
    let engine = context.engine(Path::new(""))?;
    let graphs: Vec<&Graph> = library
        .manifest()
        .graphs
        .iter()
        .filter(|graph| args.filter.as_ref().is_none_or(|text| graph.id.contains(text.as_str())))
        .collect();
    let progress = context.progress();
    progress.doing("checking");
    progress.counting(graphs.len() as u64, "graphs");
    let verified: Mutex<Verified> = Mutex::default();
    on_all_cores(graphs.len(), |index| {
        let graph = graphs[index];
        let outcome = check(&engine, &*profile, library, graph, &args);
        let mut verified = lock(&verified);
        verified.graphs += 1;
        match outcome {
            Ok(checked) => {
                verified.default_checked += usize::from(checked.default);
                verified.executed += usize::from(checked.executed);
                verified.not_executable += usize::from(checked.not_executable);
            }
            Err(error) => verified.problems.push(format!("{}: {error:#}", graph.id)),
        }
        progress.advance();
        anyhow::Ok(())
    })?;
    drop(progress);
    let mut verified = verified.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    verified.problems.sort();
    if context.json() {
        context.print_json(&verified)?;
    } else {
        let mut text = format!(
            "{} graphs parse and verify with the identity and counts of the manifest; {} have the \
             default of the manifest; {} ran on the CPU; {} call foreign functions or need several \
             devices\n",
            verified.graphs - verified.problems.len(),
            verified.default_checked,
            verified.executed,
            verified.not_executable,
        );
        for problem in &verified.problems {
            text.push_str(&format!("PROBLEM {problem}\n"));
        }
        context.print(&text)?;
    }
    Ok(ExitCode::from(u8::from(!verified.problems.is_empty())))
}

struct Checked {
    default: bool,
    executed: bool,
    not_executable: bool,
}

fn check(
    engine: &Engine,
    profile: &dyn Profile,
    library: &Library,
    graph: &Graph,
    args: &Args,
) -> Result<Checked> {
    // Loading runs XLA's verifier.
    let mut session = engine.load(&library.source(graph)?)?;
    let seen = session.observe(Observe::COUNTS | Observe::FINGERPRINT)?;
    same("fingerprint", &seen.fingerprint, &Some(graph.fingerprint))?;
    let hello = engine.hello();
    for (metric, found) in hello.counts.iter().zip(seen.counts.iter().flat_map(|seen| seen.iter()))
    {
        same(&metric.name, &Some(found), &graph.counts.get(&metric.name))?;
    }
    let default = match (finish(&mut session, &Finish::default()), &graph.default) {
        (Ok(run), Ok(known)) => {
            let spec = profile.spec();
            let (figures, known) = (run.figures(spec, 0), profile.known_baseline(&known.0));
            for figure in spec.stages.iter().map(|stage| stage.figure) {
                let known = known.and_then(|known| known.default.get(figure));
                if !spec.is_of_order(figure) {
                    same(spec.figure_name(figure), &figures.get(figure), &known)?;
                }
            }
            true
        }
        (Err(EngineError::Refused { .. } | EngineError::Died { .. }), Err(_)) => false,
        (Ok(_), Err(_)) => return Err(anyhow!("the compiler takes it, against the manifest")),
        (Err(error), _) => return Err(error.into()),
    };
    let signature = session.signature()?;
    let not_executable = !signature.collectives.is_empty();
    let wanted = !args.no_exec && graph.size() <= args.exec_up_to;
    let executed = wanted && !not_executable;
    if executed {
        let mut scratch = session.scratch()?;
        let compiled = scratch.compile(&Finish::default())?;
        scratch.make_inputs(&compiled, &typical_inputs(&signature, 0))?;
        let (_, outputs) = scratch.execute(&compiled, 1, true)?;
        same("number of outputs", &outputs.len(), &signature.outputs.len())?;
    }
    Ok(Checked { default, executed, not_executable })
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, known: &T) -> Result<()> {
    if found == known {
        Ok(())
    } else {
        Err(anyhow!("{what}: {found:?}, in the manifest {known:?}"))
    }
}
