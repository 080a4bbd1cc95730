//! Random pass orders on random graphs.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::{Result, anyhow};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use xla_gym_common::on_all_cores;
use xla_gym_engine::{
    Engine, EngineError, PassFailure, Session,
    protocol::{Finish, Observe, PassId},
};
use xla_gym_oracle::{Options, Reference, Report, Verdict};
use xla_gym_proof::first_wrong;
use xla_gym_xla_profile::{INSTRUCTIONS, NORMALIZED};

use crate::graphs;

/// Random pass orders on random graphs: what fails, and whether what is left still computes the
/// same.
#[derive(clap::Args)]
pub struct Args {
    /// How many episodes.
    #[arg(long, default_value_t = 10_000)]
    episodes: u64,

    /// Most passes in one.
    #[arg(long, default_value_t = 40)]
    length: usize,

    /// How many of the final states that verify are compiled, run and compared with the start.
    #[arg(long, default_value_t = 300)]
    checks: u64,

    /// Graphs with more instructions than this are not compiled for a check (code generation
    /// takes a minute for the largest).
    #[arg(long, default_value_t = 4000)]
    check_up_to: u64,

    /// Start from the normal form.
    #[arg(long, alias = "normalise")]
    normalize: bool,

    /// Seed of everything.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Time limit for one pass, in seconds.
    #[arg(long, default_value_t = 10)]
    pass_limit: u64,

    /// Write the result as JSON.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Tally {
    episodes: u64,
    steps: u64,
    changed: u64,
    /// By kind of failure, then by pass.
    failures: BTreeMap<String, BTreeMap<String, u64>>,
    /// The distinct messages, shortened, with their number.
    messages: BTreeMap<String, u64>,
    episodes_with_failure: u64,
    final_states_verified: u64,
    /// By the pass after which the verifier refused.
    invalid_after: BTreeMap<String, u64>,
    checks: BTreeMap<String, u64>,
    mismatches: Vec<Mismatch>,
    seconds: f64,
}

#[derive(Serialize)]
struct Mismatch {
    graph: String,
    passes: Vec<String>,
    /// The pass after which the outputs first differ.
    guilty: String,
    what: String,
}

struct Lab {
    args: Args,
    engine: Engine,
    graphs: Vec<(String, PathBuf)>,
    passes: Vec<PassId>,
    starts: Vec<Mutex<Start_>>,
    checks_begun: AtomicU64,
    tally: Mutex<Tally>,
}

/// A graph's start state, and its reference outputs once needed.
struct Start_ {
    session: Session,
    reference: Option<Reference>,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(args.pass_limit)?;
    let graphs = graphs::all()?;
    let start = if args.normalize { NORMALIZED } else { "emitted" };
    let starts = graphs
        .iter()
        .map(|(_, file)| {
            let mut session = engine.load_file(file)?;
            let session = graphs::start_session(&mut session, start)?;
            Ok(Mutex::new(Start_ { session, reference: None }))
        })
        .collect::<Result<_>>()?;
    let lab = Lab {
        passes: graphs::usable_passes(&engine),
        args,
        engine,
        graphs,
        starts,
        checks_begun: AtomicU64::new(0),
        tally: Mutex::default(),
    };
    let bar = graphs::progress(lab.args.episodes, "episodes");
    let begin = Instant::now();
    on_all_cores(lab.args.episodes as usize, |number| {
        lab.episode(number as u64)?;
        bar.inc(1);
        anyhow::Ok(())
    })?;
    bar.finish_and_clear();
    let mut tally = lab.tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    tally.seconds = begin.elapsed().as_secs_f64();
    print(&tally);
    if let Some(path) = &lab.args.output {
        std::fs::write(path, serde_json::to_string_pretty(&tally)? + "\n")?;
    }
    Ok(())
}

impl Lab {
    fn episode(&self, number: u64) -> Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.seed);
        rng.set_stream(number);
        let graph = rng.random_range(0..self.graphs.len());
        let length = rng.random_range(1..=self.args.length);
        let mut session = self.starts[graph].lock().expect("no thread panics").session.fork()?;

        let mut seen = Tally { episodes: 1, ..Tally::default() };
        for _ in 0..length {
            let Some(&pass) = self.passes.choose(&mut rng) else { break };
            seen.steps += 1;
            match session.apply(pass, Observe::NOTHING) {
                Ok(applied) => seen.changed += u64::from(applied.changed),
                Err(EngineError::Pass(error)) => {
                    let kind = match &error.failure {
                        PassFailure::Quarantined(entry) => format!("quarantined ({})", entry.kind),
                        failure => failure.kind().to_owned(),
                    };
                    *seen
                        .failures
                        .entry(kind)
                        .or_default()
                        .entry(error.pass.clone())
                        .or_default() += 1;
                    if !matches!(error.failure, PassFailure::Quarantined(_)) {
                        let message =
                            format!("{}: {}", error.pass, shorten(&error.failure.to_string()));
                        *seen.messages.entry(message).or_default() += 1;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        seen.episodes_with_failure = u64::from(!seen.failures.is_empty());
        let final_state = session.observe(Observe::COUNTS | Observe::VERDICT)?;
        match final_state.verdict {
            Some(Ok(())) => {
                seen.final_states_verified = 1;
                let missing = || anyhow!("the worker gave no counts");
                let size = final_state.counts.ok_or_else(missing)?[INSTRUCTIONS];
                if size <= self.args.check_up_to
                    && self.checks_begun.load(Ordering::Relaxed) < self.args.checks
                {
                    self.checks_begun.fetch_add(1, Ordering::Relaxed);
                    self.check(graph, &mut session, &mut seen)?;
                }
            }
            _ => {
                let guilty = self.first_invalid(graph, session.steps())?;
                *seen.invalid_after.entry(guilty).or_default() += 1;
            }
        }
        self.tally.lock().expect("no thread panics").merge(seen);
        Ok(())
    }

    /// The pass after which the verifier first refuses.
    fn first_invalid(&self, graph: usize, steps: &[PassId]) -> Result<String> {
        let mut session = self.starts[graph].lock().expect("no thread panics").session.fork()?;
        for &pass in steps {
            let applied = session.apply(pass, Observe::VERDICT)?;
            if let Some(Err(reason)) = applied.observation.verdict {
                return Ok(format!("{}: {}", self.engine.pass_name(pass), shorten(&reason)));
            }
        }
        Ok("nothing, when looked at again".to_owned())
    }

    fn check(&self, graph: usize, session: &mut Session, seen: &mut Tally) -> Result<()> {
        let report = self.compare(graph, session)?;
        let kind = match &report.verdict {
            Verdict::Equal => "equal".to_owned(),
            Verdict::Different { .. } => "different".to_owned(),
            Verdict::OtherSignature { reason } => format!("other signature: {reason}"),
            Verdict::Rejected { reason } => format!("rejected: {}", shorten(reason)),
            Verdict::NotComparable { reason } => format!("not comparable: {}", shorten(reason)),
        };
        *seen.checks.entry(kind).or_default() += 1;
        if let Verdict::Different { differences } = &report.verdict {
            let steps = session.steps().to_vec();
            seen.mismatches.push(Mismatch {
                graph: self.graphs[graph].0.clone(),
                passes: steps.iter().map(|&id| self.engine.pass_name(id).to_owned()).collect(),
                guilty: self.first_different(graph, &steps)?,
                what: format!("{:?}", differences.first()),
            });
        }
        Ok(())
    }

    /// The pass after which outputs first differ.
    fn first_different(&self, graph: usize, steps: &[PassId]) -> Result<String> {
        let wrong = first_wrong(steps.len(), |length| {
            let mut session =
                self.starts[graph].lock().expect("no thread panics").session.fork()?;
            session.multistep(&steps[..length], Observe::NOTHING, |_| {})?;
            let verdict = self.compare(graph, &mut session)?.verdict;
            anyhow::Ok(matches!(verdict, Verdict::Different { .. }))
        })?;
        Ok(self.engine.pass_name(steps[wrong - 1]).to_owned())
    }

    fn compare(&self, graph: usize, session: &mut Session) -> Result<Report> {
        let mut start = self.starts[graph].lock().expect("no thread panics");
        if start.reference.is_none() {
            let options = Options { trials: 2, seed: self.args.seed, ..Options::default() };
            start.reference = Some(graphs::reference(&mut start.session, options)?);
        }
        let reference = start.reference.as_ref().ok_or_else(|| anyhow!("no reference"))?;
        Ok(reference.compare(session, &Finish::default())?)
    }
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        self.episodes += other.episodes;
        self.steps += other.steps;
        self.changed += other.changed;
        self.episodes_with_failure += other.episodes_with_failure;
        self.final_states_verified += other.final_states_verified;
        for (kind, passes) in other.failures {
            add(self.failures.entry(kind).or_default(), passes);
        }
        add(&mut self.messages, other.messages);
        add(&mut self.invalid_after, other.invalid_after);
        add(&mut self.checks, other.checks);
        self.mismatches.extend(other.mismatches);
    }
}

fn add(into: &mut BTreeMap<String, u64>, from: BTreeMap<String, u64>) {
    for (key, count) in from {
        *into.entry(key).or_default() += count;
    }
}

/// The constant part of a message: without names and numbers that differ from case to case.
fn shorten(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out.chars().take(160).collect()
}

fn print(tally: &Tally) {
    println!(
        "{} episodes, {} steps in {:.0} s ({:.0} steps/s); {} changed the program; \
         {} episodes had a failing step; 0 host crashes",
        tally.episodes,
        tally.steps,
        tally.seconds,
        tally.steps as f64 / tally.seconds,
        tally.changed,
        tally.episodes_with_failure
    );
    for (kind, passes) in &tally.failures {
        let total: u64 = passes.values().sum();
        println!("\n{kind}: {total} steps");
        let mut sorted: Vec<_> = passes.iter().collect();
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (pass, count) in sorted {
            println!("  {count:6}  {pass}");
        }
    }
    println!("\n{} final states verify", tally.final_states_verified);
    for (guilty, count) in &tally.invalid_after {
        println!("  {count:6}  refused after {guilty}");
    }
    println!("\nOutputs against the start:");
    for (kind, count) in &tally.checks {
        println!("  {count:6}  {kind}");
    }
    for mismatch in &tally.mismatches {
        println!("  {} differs after {}: {}", mismatch.graph, mismatch.guilty, mismatch.what);
    }
}
