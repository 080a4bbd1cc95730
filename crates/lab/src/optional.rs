//! Which passes of XLA's own pipeline can be left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Mutex,
};

use anyhow::{Result, anyhow};
use serde::Serialize;
use xla_gym_common::on_all_cores;
use xla_gym_data::{Graph, Library, Side};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session,
    protocol::{Finish, Limits, Observe, PipelineOptions, StageReport},
};
use xla_gym_oracle::{Options, Reference, Verdict};
use xla_gym_profile::{Finished, finish};
use xla_gym_xla_profile::{OPTIONAL, optional as optional_passes};

use crate::graphs::{self, END, MIDDLE};

/// Which passes of XLA's own pipeline can be left out: each pass that changes a graph is switched
/// off on it by itself, then all that did no harm at once.
///
/// What is left must go through the pipeline, compile, run, and give the outputs of the untouched
/// compiler. Only training graphs are looked at, so that what is learnt here was not learnt from
/// a test.
#[derive(clap::Args)]
pub struct Args {
    /// Every how manieth of the graphs.
    #[arg(long, default_value_t = 2)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 1200)]
    up_to: u64,

    /// Seconds for the pipeline, for a compilation and for a run; more counts as a rejection.
    #[arg(long, default_value_t = 60)]
    limit: u64,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Write the result as JSON.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

/// The pass between the two halves of the pipeline.
const LAYOUT_ASSIGNMENT: &str = "layout-assignment";

/// With equal outputs on fewer graphs than this a pass may have done no harm by luck.
const ENOUGH: usize = 3;

/// A graph by position, and the passes to leave out on it.
type Plan = (usize, Vec<String>);

/// A graph, with what the untouched compiler makes of it.
struct Subject<'a> {
    graph: &'a Graph,
    session: Mutex<Session>,
    reference: Reference,
    default: Finished,
    /// Whether the untouched compiler generates code for it. Some graphs whose outputs cannot be
    /// compared still can be compiled.
    compiles: bool,
}

/// What became of a graph without some passes.
struct Trial {
    verdict: Verdict,
    /// The worst difference, in units of the tolerance.
    worst: f64,
    /// Unless the pipeline refused: at the end, and before layout assignment if that took place.
    counts: Option<(u64, Option<u64>)>,
}

#[derive(Serialize)]
struct Findings {
    engine: String,
    command: String,
    graphs: Vec<String>,
    /// Graphs on which the untouched compiler does not agree with itself; they are not used.
    unsteady: Vec<String>,
    /// In the order of the table.
    passes: Vec<Row>,
    /// All optional passes at once.
    joint: Joint,
    /// The list that the scores use, at once.
    score: Joint,
    /// As many of the optional passes as do no harm at once, found by dropping one by one.
    together: Vec<String>,
    /// What was dropped for that, in this order, and how many graphs each repaired by itself.
    dropped: Vec<(String, usize)>,
}

/// What is known of one pass.
#[derive(Serialize)]
struct Row {
    pass: String,
    /// Where it runs: `before layout`, `after layout` or `both`.
    place: &'static str,
    /// Equal outputs on enough graphs, and never harm.
    optional: bool,
    /// Whether the list that the scores use has it.
    in_score: bool,
    #[serde(flatten)]
    tally: Tally,
}

/// What leaving out several passes at once does.
#[derive(Serialize)]
struct Joint {
    passes: Vec<String>,
    #[serde(flatten)]
    tally: Tally,
    /// By super-family.
    groups: BTreeMap<String, Tally>,
}

/// Some trials in figures.
#[derive(Serialize)]
struct Tally {
    /// Graphs; by itself a pass is tried on every graph that it changes by default.
    tried: usize,
    /// By the pipeline.
    accepted: usize,
    equal: usize,
    not_comparable: usize,
    /// Graph, and the first line of the reason.
    rejected: Vec<(String, String)>,
    /// Graph, and the worst difference in units of the tolerance.
    different: Vec<(String, f64)>,
    /// Mean change where the pipeline accepts, in operations and in per cent.
    kernels: Option<f64>,
    kernels_percent: Option<f64>,
    /// Likewise before layout assignment.
    legal: Option<f64>,
}

pub fn run(args: Args) -> Result<()> {
    let engine = engine(args.limit)?;
    let library = Library::hlo_v1()?;
    let (subjects, unsteady) = prepare(&engine, library, &args)?;

    let plan: Vec<Plan> = subjects
        .iter()
        .enumerate()
        .flat_map(|(index, own)| own.changing().into_iter().map(move |pass| (index, vec![pass])))
        .collect();
    let trials = attempt_all(&subjects, &plan, "passes")?;
    let mut by_pass: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for ((index, pass), trial) in plan.iter().zip(&trials) {
        by_pass.entry(&pass[0]).or_default().push((&subjects[*index], trial));
    }
    let mut passes: Vec<Row> = by_pass
        .into_iter()
        .map(|(pass, own)| {
            let (tally, place) = (Tally::of(&own), place(&subjects, pass));
            let harm = own.iter().any(|(_, trial)| is_harm(trial));
            let optional = !harm && tally.equal >= ENOUGH;
            let in_score = OPTIONAL.contains(&pass);
            Row { pass: pass.to_owned(), place, optional, in_score, tally }
        })
        .collect();
    passes.sort_by_key(|row| !row.optional);
    print_passes(&passes);

    let optional = passes.iter().filter(|row| row.optional).map(|row| row.pass.clone());
    let mut optional: Vec<String> = optional.collect();
    let (joint, failing) = together(&subjects, &optional)?;
    let (score, _) = together(&subjects, &optional_passes())?;
    println!("| *all optional at once* | | | | {} |", joint.tally);
    println!("| *all in score at once* | | | | {} |", score.tally);
    let dropped = largest(&subjects, &mut optional, failing)?;
    let findings = Findings {
        engine: engine.name(),
        command: command(&args),
        graphs: subjects.iter().map(|subject| subject.graph.id.clone()).collect(),
        unsteady,
        passes,
        joint,
        score,
        together: optional,
        dropped,
    };
    println!("\nTogether harmless: {}", findings.together.join(", "));
    for (pass, repairs) in &findings.dropped {
        println!("* without `{pass}`, which repairs {repairs} graphs");
    }
    if let Some(path) = &args.output {
        std::fs::write(path, serde_json::to_string_pretty(&findings)? + "\n")?;
    }
    Ok(())
}

/// The command, with what it would do by default said.
fn command(Args { every, up_to, limit, seed, output }: &Args) -> String {
    let settings = format!("--every {every} --up-to {up_to} --limit {limit} --seed {seed}");
    let output = output.as_ref().map(|path| format!(" -o {}", path.display()));
    format!("xla-gym-lab optional {settings}{}", output.unwrap_or_default())
}

fn engine(seconds: u64) -> Result<Engine> {
    let millis = seconds * 1000;
    let config = EngineConfig {
        limits: Limits { pass_millis: millis, request_millis: millis, memory_bytes: 6 << 30 },
        ..graphs::fresh()?
    };
    Ok(Engine::start(config)?)
}

/// The graphs with their reference outputs, and the ids of those that are of no use.
fn prepare<'a>(
    engine: &Engine,
    library: &'a Library,
    args: &Args,
) -> Result<(Vec<Subject<'a>>, Vec<String>)> {
    let graphs: Vec<&Graph> = library
        .manifest()
        .graphs
        .iter()
        .filter(|graph| !graph.splits.values().any(|side| *side == Side::Test))
        .filter(|graph| graph.size() <= args.up_to && graph.default.is_ok())
        .step_by(args.every.max(1))
        .collect();
    let bar = graphs::progress(graphs.len() as u64, "graphs");
    let prepared = on_all_cores(graphs.len(), |index| {
        let graph = graphs[index];
        let mut session = engine.load(&library.source(graph)?)?;
        let default = finish(&mut session, &Finish::default())?;
        let options = Options { trials: 1, seed: args.seed, ..Options::default() };
        let reference = graphs::reference(&mut session, options)?;
        let compiles = session.scratch()?.compile(&Finish::default()).is_ok();
        let session = Mutex::new(session);
        let subject = Subject { graph, session, reference, default, compiles };
        // A graph that differs without any change would blame every pass.
        let harm = is_harm(&subject.attempt(&[])?);
        bar.inc(1);
        anyhow::Ok(if harm { Err(graph.id.clone()) } else { Ok(subject) })
    })?;
    bar.finish_and_clear();
    let (steady, unsteady): (Vec<_>, Vec<_>) = prepared.into_iter().partition(Result::is_ok);
    let unsteady = unsteady.into_iter().filter_map(Result::err).collect();
    Ok((steady.into_iter().flatten().collect(), unsteady))
}

impl Subject<'_> {
    /// The passes that change the graph, by name. Names of whole pipelines are left out: to
    /// switch one off says nothing of its passes.
    fn changing(&self) -> BTreeSet<String> {
        let passes = &self.default.passes;
        let pipelines: BTreeSet<&str> = passes.iter().map(|pass| &*pass.pipeline).collect();
        passes
            .iter()
            .filter(|pass| pass.changed && !pipelines.contains(&*pass.pass))
            .map(|pass| pass.pass.clone())
            .collect()
    }

    /// Leaves passes out. A compiler that refuses, dies or takes too long is a finding.
    fn attempt(&self, disable: &[String]) -> Result<Trial> {
        // A copy, so that other cores can work on the same graph.
        let mut session = self.session.lock().map_err(|_| anyhow!("a thread panicked"))?.fork()?;
        let counts = match counts(&mut session, disable) {
            Ok(counts) => Some(counts),
            Err(error) => {
                return Ok(Trial { verdict: rejected(error)?, worst: 0.0, counts: None });
            }
        };
        let finish = graphs::without(disable);
        let report = self.reference.compare(&mut session, &finish)?;
        let mut verdict = report.verdict;
        if self.compiles
            && matches!(verdict, Verdict::NotComparable { .. })
            && let Err(error) = session.scratch()?.compile(&finish)
        {
            verdict = rejected(error)?;
        }
        Ok(Trial { verdict, worst: report.worst, counts })
    }
}

/// Kernels and legal operations of the pipeline without some passes. Without layout assignment
/// there is no middle to count at.
fn counts(session: &mut Session, disable: &[String]) -> Result<(u64, Option<u64>), EngineError> {
    let stages = disable.iter().all(|pass| pass != LAYOUT_ASSIGNMENT);
    let finish = graphs::without(disable);
    let options = PipelineOptions { finish, stages, ..PipelineOptions::default() };
    let report = session.scratch()?.pipeline(&options, Observe::COUNTS)?;
    let operations = |stage: &StageReport| Some(stage.observation.counts?.primary());
    let end = report
        .end()
        .and_then(operations)
        .ok_or_else(|| EngineError::Internal("the worker gave no counts".to_owned()))?;
    Ok((end, report.stages[MIDDLE].as_ref().and_then(operations)))
}

/// The compiler's reason; anything that is not the compiler's doing remains an error.
fn rejected(error: EngineError) -> Result<Verdict> {
    if !matches!(error, EngineError::Refused { .. } | EngineError::Died { .. }) {
        return Err(error.into());
    }
    Ok(Verdict::Rejected { reason: error.to_string() })
}

fn is_harm(trial: &Trial) -> bool {
    matches!(
        trial.verdict,
        Verdict::Rejected { .. } | Verdict::Different { .. } | Verdict::OtherSignature { .. }
    )
}

/// The results in the order of the plan.
fn attempt_all(subjects: &[Subject], plan: &[Plan], what: &str) -> Result<Vec<Trial>> {
    let bar = graphs::progress(plan.len() as u64, what);
    let trials = on_all_cores(plan.len(), |item| {
        let (subject, disable) = &plan[item];
        let trial = subjects[*subject].attempt(disable)?;
        bar.inc(1);
        anyhow::Ok(trial)
    });
    bar.finish_and_clear();
    trials
}

/// In which half of the pipeline a pass runs.
fn place(subjects: &[Subject], pass: &str) -> &'static str {
    let (mut before, mut after) = (false, false);
    for default in subjects.iter().map(|own| &own.default) {
        let (first, second) = default.passes.split_at(default.passes_before[MIDDLE]);
        before |= first.iter().any(|own| own.pass == pass);
        after |= second.iter().any(|own| own.pass == pass);
    }
    match (before, after) {
        (true, true) => "both",
        (true, false) => "before layout",
        _ => "after layout",
    }
}

impl Tally {
    fn of(trials: &[(&Subject, &Trial)]) -> Tally {
        let (mut equal, mut not_comparable) = (0, 0);
        let (mut rejected, mut different) = (Vec::new(), Vec::new());
        let (mut kernels, mut kernels_percent, mut legal) = (Vec::new(), Vec::new(), Vec::new());
        for (subject, trial) in trials {
            let id = subject.graph.id.clone();
            match &trial.verdict {
                Verdict::Equal => equal += 1,
                Verdict::NotComparable { .. } => not_comparable += 1,
                Verdict::Rejected { reason } => rejected.push((id, first_line(reason))),
                Verdict::Different { .. } | Verdict::OtherSignature { .. } => {
                    different.push((id, rounded(trial.worst)));
                }
            }
            let Some((end, middle)) = trial.counts else { continue };
            let default = subject.default.counts[END].primary() as f64;
            kernels.push(end as f64 - default);
            kernels_percent.push(100.0 * (end as f64 / default.max(1.0) - 1.0));
            let default = subject.default.counts[MIDDLE].primary() as f64;
            legal.extend(middle.map(|middle| middle as f64 - default));
        }
        Tally {
            tried: trials.len(),
            accepted: kernels.len(),
            equal,
            not_comparable,
            rejected,
            different,
            kernels: mean(&kernels),
            kernels_percent: mean(&kernels_percent),
            legal: mean(&legal),
        }
    }
}

/// The start of a message, without addresses, which differ from run to run.
fn first_line(message: &str) -> String {
    let line: String = message.lines().next().unwrap_or_default().chars().take(200).collect();
    let mut parts = line.split("0x");
    let start = parts.next().unwrap_or_default().to_owned();
    let digits = |c: char| c.is_ascii_hexdigit();
    parts.fold(start, |start, part| start + "0x…" + part.trim_start_matches(digits))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| rounded(values.iter().sum::<f64>() / values.len() as f64))
}

/// To two places. What is infinite on one side only is as far apart as numbers can be, and stays.
fn rounded(value: f64) -> f64 {
    if value.abs() < 1e9 { (value * 100.0).round() / 100.0 } else { value }
}

/// Leaves passes out at once on every graph; also the graphs on which that does harm.
fn together(subjects: &[Subject], passes: &[String]) -> Result<(Joint, Vec<usize>)> {
    let all: Vec<_> = (0..subjects.len()).map(|index| (index, passes.to_vec())).collect();
    let trials = attempt_all(subjects, &all, "all at once")?;
    let trials: Vec<_> = subjects.iter().zip(&trials).collect();
    let mut groups: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for &(subject, trial) in &trials {
        groups.entry(&subject.graph.super_family).or_default().push((subject, trial));
    }
    let joint = Joint {
        passes: passes.to_vec(),
        tally: Tally::of(&trials),
        groups: groups.iter().map(|(group, own)| ((*group).to_owned(), Tally::of(own))).collect(),
    };
    let harmed = (0..trials.len()).filter(|&index| is_harm(trials[index].1)).collect();
    Ok((joint, harmed))
}

/// Drops passes from a set until it does no harm: each time the one that by itself repairs the
/// most graphs; of several, one that the scores do not want left out, and the first by name.
fn largest(
    subjects: &[Subject],
    passes: &mut Vec<String>,
    mut failing: Vec<usize>,
) -> Result<Vec<(String, usize)>> {
    let mut dropped = Vec::new();
    while !failing.is_empty() && !passes.is_empty() {
        let plan: Vec<Plan> = passes
            .iter()
            .flat_map(|pass| failing.iter().map(|&graph| (graph, without(passes, pass))))
            .collect();
        let trials = attempt_all(subjects, &plan, "repairs")?;
        let harmed: Vec<Vec<usize>> = trials
            .chunks(failing.len())
            .map(|own| failing.iter().zip(own).filter(|(_, trial)| is_harm(trial)))
            .map(|own| own.map(|(graph, _)| *graph).collect())
            .collect();
        let mut guilty = (0..passes.len())
            .min_by_key(|&pass| (harmed[pass].len(), OPTIONAL.contains(&&*passes[pass])))
            .unwrap_or_default();
        if harmed[guilty].len() == failing.len() {
            // On every graph several passes must stay before it is repaired.
            guilty = needed(&subjects[failing[0]], passes)?;
        }
        dropped.push((passes.remove(guilty), failing.len() - harmed[guilty].len()));
        failing.clone_from(&harmed[guilty]);
        if failing.is_empty() {
            // A set that is smaller may do harm where the larger one did none.
            failing = together(subjects, passes)?.1;
        }
    }
    // What was dropped early may have become harmless by what was dropped later.
    for index in (0..dropped.len().saturating_sub(1)).rev() {
        let (pass, _): &(String, usize) = &dropped[index];
        let more = [&**passes, std::slice::from_ref(pass)].concat();
        if together(subjects, &more)?.1.is_empty() {
            *passes = more;
            dropped.remove(index);
        }
    }
    passes.sort();
    Ok(dropped)
}

fn without(passes: &[String], pass: &str) -> Vec<String> {
    passes.iter().filter(|own| *own != pass).cloned().collect()
}

/// Makes a set that fails as small as it still fails; the position of the last that remains.
fn needed(subject: &Subject, passes: &[String]) -> Result<usize> {
    let mut rest = passes.to_vec();
    for pass in passes {
        let fewer = without(&rest, pass);
        if is_harm(&subject.attempt(&fewer)?) {
            rest = fewer;
        }
    }
    Ok(passes.iter().rposition(|pass| rest.contains(pass)).unwrap_or_default())
}

/// What is known of each pass; printed before the rest is begun, which takes as long again.
fn print_passes(passes: &[Row]) {
    println!(
        "| pass | runs | optional | in score | tried | accepted | equal | not comparable | \
         rejected | different | kernels | legal operations |\n|{}",
        "---|".repeat(12)
    );
    let mark = |value: bool| if value { "yes" } else { "" };
    for Row { pass, place, optional, in_score, tally } in passes {
        let (optional, score) = (mark(*optional), mark(*in_score));
        println!("| `{pass}` | {place} | {optional} | {score} | {tally} |");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { tried, accepted, equal, not_comparable, rejected, different, .. } = self;
        let (rejected, different) = (rejected.len(), different.len());
        write!(f, "{tried} | {accepted} | {equal} | {not_comparable} | {rejected} | {different}")?;
        for (value, unit) in [(self.kernels_percent, "%"), (self.legal, "")] {
            match value {
                Some(value) => write!(f, " | {value:+.1}{unit}")?,
                None => write!(f, " | –")?,
            }
        }
        Ok(())
    }
}
