//! The manifest of the data set: what the engine says of every graph.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use xla_gym_common::on_all_cores;
use xla_gym_data::{Baseline, Candidate, Graph, Shingles, Side, Split, assign, unpack};
use xla_gym_engine::{
    Engine, EngineError, Session, Source,
    protocol::{Metric, Observe},
};
use xla_gym_profile::{Finish, apply_all, finish};

use crate::graphs::{self, END, MIDDLE};

/// The manifest of a data set: what the engine says of every graph.
#[derive(clap::Args)]
pub struct Args {
    /// The folder with the archives and the generator's list.
    #[arg(long, default_value = "data/hlo-v1")]
    folder: PathBuf,
}

/// What the generator says of a graph.
#[derive(Deserialize)]
struct Generated {
    id: String,
    family: String,
    super_family: String,
    archive: String,
    member: String,
    what: String,
    kind: String,
    framework: serde_json::Value,
    options: BTreeMap<String, serde_json::Value>,
    sha256: String,
    opcode_sequence: String,
}

pub fn run(args: Args) -> Result<()> {
    let list = args.folder.join("graphs.json");
    let list = std::fs::read(&list).with_context(|| list.display().to_string())?;
    let generated: Vec<Generated> = serde_json::from_slice(&list)?;
    let texts = read_archives(&args.folder, &generated)?;
    let engine = graphs::engine(120)?;

    let bar = graphs::progress(generated.len() as u64, "graphs");
    let mut graphs: Vec<Graph> = on_all_cores(generated.len(), |index| {
        let graph = describe(&engine, &generated[index], &texts[index])
            .with_context(|| generated[index].id.clone())?;
        bar.inc(1);
        anyhow::Ok(graph)
    })?;
    bar.finish_and_clear();

    let candidates: Vec<Candidate> = graphs
        .iter()
        .zip(&texts)
        .map(|(graph, text)| Candidate {
            id: &graph.id,
            super_family: &graph.super_family,
            shingles: Shingles::of(&String::from_utf8_lossy(text)),
        })
        .collect();
    let name = args.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let sides = match &*name {
        "hlo-v1" => assign(&candidates),
        _ => vec![BTreeMap::from([(Split::FullSize, Side::Test)]); candidates.len()],
    };
    drop(candidates);
    for (graph, sides) in graphs.iter_mut().zip(sides) {
        graph.splits = sides;
    }
    write(&args.folder.join("manifest.json"), &name, &engine.name(), &graphs)
}

fn read_archives(folder: &Path, generated: &[Generated]) -> Result<Vec<Vec<u8>>> {
    let mut archives: HashMap<&str, HashMap<String, Vec<u8>>> = HashMap::new();
    for graph in generated {
        if !archives.contains_key(&*graph.archive) {
            let path = folder.join(&graph.archive);
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            archives.insert(&graph.archive, unpack(&bytes)?);
        }
    }
    generated
        .iter()
        .map(|graph| {
            let member = archives[&*graph.archive].get(&graph.member);
            Ok(member.ok_or_else(|| anyhow!("{} is not in its archive", graph.id))?.clone())
        })
        .collect()
}

fn describe(engine: &Engine, generated: &Generated, text: &[u8]) -> Result<Graph> {
    let source = Source { name: generated.id.as_str().into(), bytes: text.into() };
    let mut session = engine.load(&source)?;
    let seen = session
        .observe(Observe::COUNTS | Observe::COST | Observe::OPCODES | Observe::FINGERPRINT)?;
    let default = match baseline(&mut session) {
        Ok(baseline) => Ok(baseline),
        Err(error @ (EngineError::Refused { .. } | EngineError::Died { .. })) => {
            Err(error.to_string().lines().next().unwrap_or_default().chars().take(200).collect())
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Graph {
        id: generated.id.clone(),
        family: generated.family.clone(),
        super_family: generated.super_family.clone(),
        what: generated.what.clone(),
        kind: generated.kind.clone(),
        framework: match &generated.framework {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        },
        options: generated.options.clone(),
        sha256: generated.sha256.clone(),
        opcode_sequence: generated.opcode_sequence.clone(),
        fingerprint: seen.fingerprint.context("no fingerprint")?,
        counts: named(&engine.hello().counts, &seen.counts.context("no counts")?),
        cost: seen.cost.and_then(Result::ok).map(|cost| named(&engine.hello().costs, &cost)),
        opcodes: engine.name_opcodes(seen.opcodes.unwrap_or_default()).collect(),
        bf16: String::from_utf8_lossy(text).contains("bf16["),
        splits: BTreeMap::new(),
        default,
        archive: generated.archive.clone(),
        member: generated.member.clone(),
    })
}

/// Values by the names of their metrics.
fn named<T: Copy>(metrics: &[Metric], values: &[T]) -> BTreeMap<String, T> {
    metrics.iter().zip(values).map(|(metric, value)| (metric.name.clone(), *value)).collect()
}

/// Under the names that XLA's profile reads.
fn baseline(session: &mut Session) -> Result<Baseline, EngineError> {
    let default = finish(session, &Finish::default())?;
    let bare = finish(session, &graphs::without_optional())?;
    let mut optimized = session.fork()?;
    apply_all(&mut optimized, &graphs::own_order(session, &default)?)?;
    let counted = [
        ("initial", graphs::counts(session)?),
        ("optimised", graphs::counts(&mut optimized)?),
        ("legal_initial", bare.counts[MIDDLE]),
        ("legal_default", default.counts[MIDDLE]),
        ("kernels", default.counts[END]),
        ("kernels_without_optional", bare.counts[END]),
    ];
    let counted = counted.map(|(name, counts)| (name.to_owned(), counts.primary() as f64));
    let millis = (default.time.as_secs_f64() * 1e4).round() / 10.0;
    Ok(Baseline(counted.into_iter().chain([("millis".to_owned(), millis)]).collect()))
}

/// One graph a line, so that changes can be read.
fn write(path: &Path, name: &str, engine: &str, graphs: &[Graph]) -> Result<()> {
    let mut text = String::new();
    writeln!(
        text,
        r#"{{"name": {}, "engine": {}, "graphs": ["#,
        serde_json::to_string(name)?,
        serde_json::to_string(engine)?
    )?;
    for (index, graph) in graphs.iter().enumerate() {
        let comma = if index + 1 < graphs.len() { "," } else { "" };
        writeln!(text, "{}{comma}", serde_json::to_string(graph)?)?;
    }
    text.push_str("]}\n");
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    println!("{} graphs in {}", graphs.len(), path.display());
    Ok(())
}
