//! `xla-gym eval`

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::SIGINT;
use xla_gym_agents::TrainedPolicy;
use xla_gym_common::{lock, on_all_cores, plain};
use xla_gym_contest::{Contest, Contestant, Options, Outputs, Records, Way, header};
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_env::CacheConfig;
use xla_gym_report::results::{Outcome, summary, summary_text};
use xla_gym_rows::{self as rows, Appender};
use xla_gym_search::Method;

use crate::context::Context;

/// Compare policies and searches with XLA's own order, at equal numbers of pass runs.
///
/// Each policy walks once over every graph, always taking what it puts first; `--guided` also lets it
/// guide a search. The figures are geometric means with 95% intervals over graphs and seeds: the order
/// ratio (operations removed beside what XLA's own order removes), the legal ratio and the kernels
/// (after XLA's real pipeline, by a second attempt from the program made legal); then the share of
/// graphs that are not worse than by XLA's own order, as a mean over seeds, and of those that never
/// are, by no seed.
///
/// A gain counts only if it is one: what is to count is run beside the program as emitted, on several
/// kinds of inputs. What is not found equal, or cannot be compared, counts as if nothing had been
/// done; it is counted, and listed at the end with the reason and the pass to blame.
///
/// Graphs on which XLA's own order removes nothing are counted and shown. With
/// `-o`, outcomes are written as they come, and a call that is made again goes on where it ended.
#[derive(clap::Args)]
pub struct Args {
    /// Policies: NAME=PATH or PATH, a file, the folder of a run, or one that comes along (general,
    /// gpt2). Those with one name are seeds of one contestant.
    policies: Vec<String>,

    /// Which graphs. Can be given several times.
    #[arg(long = "benchmarks", value_name = "BENCHMARKS", default_values_t = ["hlo-v1:gpt2/test".to_owned()])]
    benchmarks: Vec<String>,

    /// Every how manieth of them.
    #[arg(long, default_value_t = 1)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    largest: u64,

    /// Runs of passes for each graph.
    #[arg(long, value_delimiter = ',', default_value = "64")]
    budget: Vec<u64>,

    /// Who else takes part: default, random, greedy, beam, mcts, evolve, coreset, coreset+evolve, or
    /// luck (one walk by luck with the passes of the first policy).
    #[arg(long, value_delimiter = ',', default_value = "default,random,greedy,beam,coreset")]
    against: Vec<String>,

    /// An order that takes part as it is: NAME=PASS,PASS,... Can be given several times.
    #[arg(long = "order", value_name = "NAME=PASSES")]
    orders: Vec<String>,

    /// Let policies guide searches by these methods too: beam, mcts, evolve. They begin with the
    /// policy's walk, then come the orders of the coreset.
    #[arg(long, value_delimiter = ',')]
    guided: Vec<String>,

    /// Seeds of the searches.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2")]
    seeds: Vec<u64>,

    /// Do not send results through the compiler's real pipeline, which takes most of the time.
    #[arg(long, alias = "no-legal")]
    no_pipeline: bool,

    /// On how many kinds of inputs at least results are run and compared.
    #[arg(long, default_value_t = Options::default().trials,
          value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Take results at their word and do not run them: their outcomes say "unchecked".
    #[arg(long, conflicts_with = "trials")]
    no_check: bool,

    /// A file in which the effects of passes are remembered, shared between runs.
    #[arg(long, value_name = "PATH")]
    cache: Option<PathBuf>,

    /// Where to write outcomes, one line of JSON each.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_default(SIGINT, stop.clone())?;
    signal_hook::flag::register(SIGINT, stop.clone())?;
    let profile = context.profile_of(&args.benchmarks);
    let contestants = contestants(&args, profile.spec().engine)?;
    let mut programs = Benchmarks::find_files(&args.benchmarks, &profile.spec().files)?;
    let mut seen = HashSet::new();
    programs.programs.retain(|program| seen.insert(program.name()));
    programs.programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= args.largest && graph.default.is_ok(),
        _ => true,
    });
    programs.programs = programs.programs.into_iter().step_by(args.every.max(1)).collect();
    let cache = CacheConfig { disk: args.cache.clone(), ..CacheConfig::default() };
    let check = (!args.no_check).then(|| Options { trials: args.trials, ..Options::default() });
    let contest =
        Contest::new(profile.clone(), context.engine_config(&*profile)?, programs, cache, check);
    let header = contest.header();
    let mut records = Records { header: Some(header.clone()), ..Records::default() };
    if let Some(path) = args.output.as_ref().filter(|path| path.exists()) {
        add_records(context, &mut records, path)?;
    }
    let mut outcomes = records.outcomes;
    // What lacks a stage or a check that is wanted now is done again.
    outcomes.retain(|outcome| args.no_pipeline || contest.went_through(outcome));
    outcomes.retain(|outcome| {
        args.no_check || outcome.verdicts().all(|(_, outputs)| *outputs != Outputs::Unchecked)
    });
    let done: HashSet<Key> = outcomes.iter().map(key).collect();
    let file = args.output.as_deref().map(Appender::open).transpose()?;
    if let (Some(file), Some(path)) = (&file, &args.output)
        && rows::text(path)?.is_empty()
    {
        // What the figures are stands first.
        file.add(&Records::first_row(&header))?;
    }
    let progress = context.progress();
    progress.doing("competing");
    progress.counting(contest.len() as u64, "graphs");
    let fresh: Mutex<Vec<Outcome>> = Mutex::default();
    let failures: Mutex<Vec<String>> = Mutex::default();
    on_all_cores(contest.len(), |graph| {
        for contestant in &contestants {
            for &budget in &args.budget {
                let key = (
                    contest.name(graph),
                    contestant.name.clone(),
                    contestant.kind().to_string(),
                    contestant.seed,
                    contestant.weights(),
                    budget,
                );
                if done.contains(&key) || stop.load(Ordering::Relaxed) {
                    continue;
                }
                // A graph that cannot be done does not end the others.
                let outcome = match contest.compete(graph, contestant, budget, !args.no_pipeline) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        let name = contest.name(graph);
                        lock(&failures).push(format!("{name}, {}: {error}", contestant.name));
                        continue;
                    }
                };
                if let Some(file) = &file {
                    file.add(&outcome)?;
                }
                lock(&fresh).push(outcome);
            }
        }
        contest.leave(graph);
        progress.advance();
        Ok::<(), anyhow::Error>(())
    })?;
    drop(progress);
    outcomes.extend(fresh.into_inner().unwrap_or_else(PoisonError::into_inner));
    let rows = summary(&header, &outcomes);
    if context.json() {
        context.print_json(&rows)?;
    } else {
        context.print(&summary_text(&header, &rows))?;
    }
    let unproven = unproven(&outcomes);
    if context.json() {
        eprint!("{}", plain(&unproven));
    } else {
        context.print(&unproven)?;
    }
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failure in &failures {
        eprintln!("{failure}");
    }
    if stop.load(Ordering::Relaxed) {
        eprintln!("Interrupted: these are the outcomes so far.");
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What does not count, each with the reason.
fn unproven(outcomes: &[Outcome]) -> String {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let wrong: Vec<(&str, &Outputs)> =
            outcome.verdicts().filter(|(_, outputs)| !outputs.count()).collect();
        let Some((_, first)) = wrong.first() else { continue };
        let parts: Vec<&str> = wrong.iter().map(|(part, _)| *part).collect();
        let reason = match (&outcome.refused, &outcome.why) {
            (_, Some(why)) => why.clone(),
            (Some(refused), None) => format!("the compiler rejects it: {refused}"),
            (None, None) => first.to_string(),
        };
        let guilty = outcome.guilty.as_ref().map(|pass| format!(", after {pass}"));
        lines.push(format!(
            "  {}, {}, seed {}, budget {} ({}): {reason}{}\n",
            outcome.graph,
            outcome.contestant,
            outcome.seed,
            outcome.budget,
            parts.join(", "),
            guilty.unwrap_or_default()
        ));
    }
    if lines.is_empty() {
        return String::new();
    }
    lines.sort();
    format!("\nNot found equal, and so counted as if nothing had been done:\n{}", lines.concat())
}

/// Graph, contestant, kind, seed, weights, budget. A policy that was trained anew is another one.
type Key = (String, String, String, u64, Option<String>, u64);

fn key(outcome: &Outcome) -> Key {
    let Outcome { graph, contestant, kind, seed, weights, budget, .. } = outcome;
    (graph.clone(), contestant.clone(), kind.to_string(), *seed, weights.clone(), *budget)
}

/// Reads outcomes that were written before.
pub fn add_records(context: &Context, records: &mut Records, path: &Path) -> Result<()> {
    let named = || path.display().to_string();
    // Files of old are of the compiler that there was first.
    let earlier = header(context.usual_profile().spec());
    records.add(&rows::text(path)?, &earlier).with_context(named)
}

fn contestants(args: &Args, engine: &str) -> Result<Vec<Contestant>> {
    let mut all = Vec::new();
    for policy in &args.policies {
        let (name, path) = match policy.split_once('=') {
            Some((name, path)) => (Some(name.to_owned()), path),
            None => (None, policy.as_str()),
        };
        let policy = Arc::new(TrainedPolicy::find(path, engine)?);
        let name = name.unwrap_or_else(|| policy.card.name.clone());
        let seed = policy.card.seed;
        for guide in &args.guided {
            all.push(Contestant {
                name: format!("{name}+{guide}"),
                seed,
                way: Way::Guided(policy.clone(), method(guide)?),
            });
        }
        all.push(Contestant { name, seed, way: Way::Walk(policy) });
    }
    for name in &args.against {
        let (way, lucky) = match name.as_str() {
            "none" => continue,
            "default" => (Way::Default, false),
            "luck" => {
                let policy = all.iter().find_map(|contestant| match &contestant.way {
                    Way::Walk(policy) => Some(policy.clone()),
                    _ => None,
                });
                let policy = policy.context("luck needs a policy whose passes it takes")?;
                (Way::Luck(policy), true)
            }
            "coreset" => (Way::Coreset(Method::Coreset), false),
            other => match other.strip_prefix("coreset+") {
                Some(other) => (Way::Coreset(method(other)?), true),
                None => (Way::Plain(method(other)?), true),
            },
        };
        let seeds = if lucky { &args.seeds[..] } else { &[0][..] };
        for &seed in seeds {
            all.push(Contestant { name: name.clone(), seed, way: way.clone() });
        }
    }
    for order in &args.orders {
        let (name, passes) = order
            .split_once('=')
            .with_context(|| format!("--order {order}: NAME=PASS,PASS,... is needed"))?;
        let passes = passes.split(',').map(|pass| pass.trim().to_owned()).collect();
        all.push(Contestant { name: name.to_owned(), seed: 0, way: Way::Order(passes) });
    }
    let mut names = HashSet::new();
    for contestant in &all {
        if !names.insert((&contestant.name, contestant.kind(), contestant.seed)) {
            let Contestant { name, seed, .. } = contestant;
            bail!("there are two contestants {name} with seed {seed}: give them different names");
        }
    }
    if all.is_empty() {
        bail!("nobody takes part: name a policy, or somebody by --against");
    }
    Ok(all)
}

fn method(name: &str) -> Result<Method> {
    let known = Method::ALL.into_iter().find(|method| method.name() == name);
    known.with_context(|| {
        let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        format!("there is no method {name:?}; there are {}", names.join(", "))
    })
}
