//! Good orders for training graphs, by search, for agents to learn by heart.

use std::{
    collections::HashMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use rand::{
    Rng, SeedableRng,
    distr::{Distribution, weighted::WeightedIndex},
};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use xla_gym_agents::{Guide, TrainedPolicy};
use xla_gym_common::on_all_cores;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{EngineConfig, protocol::PassId};
use xla_gym_env::{Walk, World, WorldConfig};
use xla_gym_optimize::coreset;
use xla_gym_proof::{Options, Outputs, Pipeline, Prover};
use xla_gym_search::{Budget, Goal, Method, Policy, Search, search};

use crate::graphs;

/// Good orders for training graphs, by search, for agents to learn by heart.
///
/// Searches from the program as emitted, and from the program made legal by XLA's own passes; with
/// `--astray`, from where a policy may stand after some steps of its own, to learn how to go on
/// from there. Each order is run beside the program as emitted; one that is not found equal is cut
/// before the pass to blame, and where nothing can be proven the row has no passes, so that nobody
/// learns from it. Results are written as they come; a run that is started again goes on where it
/// ended.
#[derive(clap::Args)]
pub struct Args {
    /// Which graphs.
    #[arg(default_values_t = ["hlo-v1:all/train".to_owned()])]
    benchmarks: Vec<String>,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 5000)]
    up_to: u64,

    /// Passes of each search.
    #[arg(long, default_value_t = 1000)]
    budget: u64,

    /// A policy whose walk each search begins with and whose word it heeds, or which goes astray: a
    /// name or a file.
    #[arg(long)]
    policy: Option<String>,

    /// Searches for each program and start, each after a few steps that the policy takes by chance,
    /// now and then a pass that it would never take.
    #[arg(long, requires = "policy", value_name = "SEARCHES",
          value_parser = clap::value_parser!(u64).range(1..))]
    astray: Option<u64>,

    /// On how many kinds of inputs at least orders are proven.
    #[arg(long, default_value_t = Options::default().trials)]
    trials: u32,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where to write the orders, one line of JSON each.
    #[arg(long, short)]
    output: PathBuf,
}

/// An order that a search found.
#[derive(Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub benchmark: String,
    /// Whether the order begins at the program made legal.
    #[serde(default)]
    pub legal: bool,
    /// Passes before the order begins, which nobody recommends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The passes, each of which changes the program.
    pub passes: Vec<String>,
    /// Operations of the program as emitted or made legal.
    pub initial: u64,
    /// Operations after XLA's own order.
    pub default: u64,
    /// Operations after this one.
    pub operations: u64,
    /// Whether what it makes of the program was run and found equal.
    #[serde(default)]
    pub outputs: Outputs,
}

impl Row {
    /// Reads orders, one line of JSON each.
    pub fn read(path: &Path) -> Result<Vec<Row>> {
        let named = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(named)?;
        let parse = |(number, line)| {
            let at = || format!("{}, line {}", named(), number + 1);
            serde_json::from_str(line).with_context(at)
        };
        text.lines().enumerate().map(parse).collect()
    }

    /// Writes orders, one line of JSON each.
    pub fn write(rows: &[Row], path: &Path) -> Result<()> {
        let lines: Vec<String> =
            rows.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        let named = || path.display().to_string();
        std::fs::write(path, lines.join("\n") + "\n").with_context(named)
    }

    /// A world in which its program is the only one.
    pub fn world(&self) -> Result<Arc<World>> {
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..EngineConfig::xla()? },
            ..WorldConfig::xla()?
        };
        Ok(Arc::new(World::with_programs(config, Benchmarks::find([&self.benchmark])?)?))
    }

    /// The passes after which it begins, those that make its program legal among them.
    pub fn prefix(&self, world: &World) -> Result<Vec<PassId>> {
        let legalising = if self.legal { world.legalising(0)?.to_vec() } else { Vec::new() };
        let after = world.engine().passes(self.after.iter().map(String::as_str))?;
        Ok([legalising, after].concat())
    }
}

pub fn run(args: Args) -> Result<()> {
    let mut programs = Benchmarks::find(&args.benchmarks)?.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.counts.instructions <= args.up_to && graph.default.is_ok(),
        _ => true,
    });
    let policy = args.policy.as_deref().map(TrainedPolicy::find).transpose()?;
    let before = if args.output.exists() { Row::read(&args.output)? } else { Vec::new() };
    let searches = args.astray.unwrap_or(1) as usize;
    if args.astray.is_none() && before.iter().any(|row| !row.after.is_empty()) {
        bail!("{}: its orders begin astray; name another file", args.output.display());
    }
    let mut done: HashMap<(String, bool), usize> = HashMap::new();
    for row in before {
        *done.entry((row.benchmark, row.legal)).or_default() += 1;
    }
    let missing = |name: &str, legal: bool| {
        done.get(&(name.to_owned(), legal)).copied().unwrap_or_default()..searches
    };
    programs
        .retain(|program| [false, true].iter().any(|l| !missing(&program.name(), *l).is_empty()));
    if programs.is_empty() {
        return Ok(());
    }
    let passes = match &policy {
        Some(policy) if args.astray.is_some() => graphs::lossless(&policy.interface.passes)?,
        _ => Vec::new(),
    };
    let file = Mutex::new(File::options().create(true).append(true).open(&args.output)?);
    let bar = graphs::progress(programs.len() as u64, "graphs");
    on_all_cores(programs.len(), |index| {
        // A world for each: what is remembered of one graph is of no use to another.
        let found = Benchmarks { programs: vec![programs[index].clone()], skipped: Vec::new() };
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..EngineConfig::xla()? },
            // Who goes astray does so by passes that it knows, and comes back by the same.
            passes: passes.clone(),
            ..WorldConfig::xla()?
        };
        let world = Arc::new(World::with_programs(config, found)?);
        let prover = Prover::new(Options { trials: args.trials, ..Options::default() });
        for legal in [false, true] {
            let name = world.benchmark_name(0).to_owned();
            for number in missing(&name, legal) {
                let mut row = demonstrate(&world, legal, policy.as_ref(), number as u64, &args)
                    .with_context(|| name.clone())?;
                if let Some(words) =
                    prove(&world, &prover, &mut row).with_context(|| name.clone())?
                {
                    bar.suspend(|| println!("{name}: {words}"));
                }
                let line = serde_json::to_string(&row)? + "\n";
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(line.as_bytes())?;
            }
        }
        bar.inc(1);
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// The shortest order that a search finds for the only graph of a world.
fn demonstrate(
    world: &Arc<World>,
    legal: bool,
    policy: Option<&TrainedPolicy>,
    number: u64,
    args: &Args,
) -> Result<Row> {
    let legalising = if legal { world.legalising(0)?.to_vec() } else { Vec::new() };
    // Other luck for each program; seed 0 and its search 1 have that of seed 1 and its search 0.
    let name = world.benchmark_name(0).bytes().map(u64::from);
    let seed = match args.astray {
        Some(_) => name.fold(args.seed.wrapping_add(number), |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(byte)
        }),
        None => args.seed,
    };
    let guide = policy.map(|policy| policy.guide(world));
    let (mut first, mut after, mut heeded) = (coreset(world.engine()), Vec::new(), None);
    match guide {
        Some(guide) if args.astray.is_some() => {
            // In the search it would not know what it did before, so it is not heeded there.
            let own;
            (after, own) = go_astray(world, &legalising, &guide, seed)?;
            first.retain(|order| order.iter().all(|pass| world.actions().contains(pass)));
            first.insert(0, own);
        }
        guide => heeded = guide.map(|guide| Arc::new(guide) as Arc<dyn Policy>),
    }
    let prefix = [legalising, after.clone()].concat();
    let task = Search {
        world,
        benchmark: 0,
        budget: Budget::passes(args.budget),
        seed,
        goal: Goal::default(),
        policy: heeded,
        prefix: prefix.clone(),
        first,
        costs: Arc::default(),
        stop: Arc::default(),
    };
    let found = search(&task, &*Method::Evolve.optimizer(), &|_, _| {})?;
    let best = &found.candidates[0];
    let operations = best.state.counts.operations;
    let passes = shorten(world, &prefix, &best.passes, operations)?;
    let defaults = world.defaults(0)?;
    let (initial, default) = if legal {
        (defaults.legal_initial, defaults.legal)
    } else {
        (defaults.initial, defaults.optimised)
    };
    let names = |passes: &[PassId]| {
        passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect()
    };
    Ok(Row {
        legal,
        benchmark: world.benchmark_name(0).to_owned(),
        after: names(&after),
        passes: names(&passes),
        initial,
        default,
        operations,
        outputs: Outputs::Unchecked,
    })
}

/// Runs what an order makes of its program, the only one of the world, beside the program as emitted.
/// What is not found equal is cut back to the best that is, and said.
fn prove(world: &Arc<World>, prover: &Prover, row: &mut Row) -> Result<Option<String>> {
    let pipeline = if row.legal { Pipeline::Replaced } else { Pipeline::Whole };
    let prefix = row.prefix(world)?;
    let passes = world.engine().passes(row.passes.iter().map(String::as_str))?;
    let along = |passes: &[PassId]| -> Result<Walk> {
        let mut walk = Walk::begin_after(world, 0, &prefix)?;
        for &pass in passes {
            walk.step(pass)?;
        }
        Ok(walk)
    };
    let proof = prover.prove(&mut along(&passes)?, pipeline)?;
    row.outputs = proof.outputs.clone();
    if proof.outputs == Outputs::Equal {
        return Ok(None);
    }
    let mut good = 0;
    let mut words = proof.words;
    if !matches!(proof.outputs, Outputs::NotComparable(_) | Outputs::Unchecked)
        && let Some(guilty) = prover.guilty(world, 0, &prefix, &passes, pipeline)?
    {
        words = format!("{words}, after {}", guilty.pass);
        // The fewest operations before it, by the fewest passes.
        let mut walk = along(&[])?;
        let mut best = (walk.state().counts.operations, 0);
        for (number, &pass) in passes[..guilty.before].iter().enumerate() {
            walk.step(pass)?;
            best = best.min((walk.state().counts.operations, number + 1));
        }
        let proof = prover.prove(&mut along(&passes[..best.1])?, pipeline)?;
        if proof.outputs == Outputs::Equal {
            (good, row.outputs) = (best.1, proof.outputs);
        }
    }
    row.passes.truncate(good);
    row.operations = along(&passes[..good])?.state().counts.operations;
    Ok(Some(format!("{words}; {good} of {} passes are kept", passes.len())))
}

/// The most steps of a policy before an order begins.
const ASTRAY: usize = 12;

/// The most steps of a policy after that.
const GOES_ON: usize = 48;

/// Some steps of a policy, chosen by chance as a search that heeds it would, and how it would go on
/// without chance.
fn go_astray(
    world: &Arc<World>,
    prefix: &[PassId],
    guide: &Guide,
    seed: u64,
) -> Result<(Vec<PassId>, Vec<PassId>)> {
    let mut luck = ChaCha8Rng::seed_from_u64(seed);
    let steps = luck.random_range(1..=ASTRAY);
    let mut walk = Walk::begin_after(world, 0, prefix)?;
    let mut path = Vec::new();
    while path.len() < steps + GOES_ON {
        let mut weights = guide.weigh(&walk, world.actions());
        // By chance at first, then what it puts first; what does nothing is passed over.
        let pass = loop {
            let at = if path.len() < steps {
                WeightedIndex::new(&weights).ok().map(|weights| weights.sample(&mut luck))
            } else {
                (0..weights.len())
                    .filter(|at| weights[*at] > 0.0)
                    .max_by(|a, b| weights[*a].total_cmp(&weights[*b]))
            };
            let Some(at) = at else { break None };
            if walk.step(world.actions()[at])?.changed {
                break Some(world.actions()[at]);
            }
            weights[at] = 0.0;
        };
        let Some(pass) = pass else { break };
        path.push(pass);
    }
    let own = path.split_off(steps.min(path.len()));
    Ok((path, own))
}

/// Leaves out single passes, the last first, while no operation is added.
fn shorten(
    world: &Arc<World>,
    prefix: &[PassId],
    order: &[PassId],
    operations: u64,
) -> Result<Vec<PassId>> {
    // The way that a search returns includes what it was told to begin with.
    let mut order = order[count_applied(world, prefix)?..].to_vec();
    for at in (0..order.len()).rev() {
        let mut rest = order.clone();
        rest.remove(at);
        let mut walk = Walk::begin_after(world, 0, prefix)?;
        for &pass in &rest {
            walk.step(pass)?;
        }
        if walk.state().counts.operations <= operations {
            order = rest;
        }
    }
    Ok(order)
}

/// How many of some passes change the program.
fn count_applied(world: &Arc<World>, passes: &[PassId]) -> Result<usize> {
    Ok(Walk::begin_after(world, 0, passes)?.path().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_astray_change_the_program_and_depend_on_the_seed_alone() {
        let policy = TrainedPolicy::find("general").unwrap();
        let config = WorldConfig {
            engine: EngineConfig { quarantine: None, ..EngineConfig::xla().unwrap() },
            passes: policy.interface.passes.clone(),
            ..WorldConfig::xla().unwrap()
        };
        let program = Benchmarks::find(["hlo-v1/mlp/classifier-forward-8l"]).unwrap();
        let world = Arc::new(World::with_programs(config, program).unwrap());
        let guide = policy.guide(&world);
        let mut walks = Vec::new();
        for seed in 0..4 {
            let (after, own) = go_astray(&world, &[], &guide, seed).unwrap();
            assert!((1..=ASTRAY).contains(&after.len()) && own.len() <= GOES_ON);
            let both = [after.clone(), own.clone()].concat();
            assert_eq!(count_applied(&world, &both).unwrap(), both.len());
            assert_eq!(go_astray(&world, &[], &guide, seed).unwrap(), (after.clone(), own));
            walks.push(after);
        }
        assert!(walks.iter().any(|walk| *walk != walks[0]));
    }

    #[test]
    fn an_order_is_cut_before_the_pass_that_makes_it_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scatter.hlo");
        std::fs::write(&file, include_str!("../../../testdata/proof/batched-scatter.hlo")).unwrap();
        let row = |passes: &[&str]| Row {
            benchmark: file.to_str().unwrap().to_owned(),
            legal: false,
            after: Vec::new(),
            passes: passes.iter().map(|pass| (*pass).to_owned()).collect(),
            initial: 0,
            default: 0,
            operations: 0,
            outputs: Outputs::Unchecked,
        };
        let mut wrong = row(&["algsimp", "scatter_determinism_expander", "dce", "algsimp"]);
        let world = wrong.world().unwrap();
        let prover = Prover::new(Options { trials: 1, ..Options::default() });
        let words = prove(&world, &prover, &mut wrong).unwrap().unwrap();
        assert!(words.contains("after scatter_determinism_expander"), "{words}");
        assert_eq!(wrong.passes, ["algsimp"]);
        assert_eq!(wrong.outputs, Outputs::Equal);
        assert!(wrong.operations < world.start_state(0).unwrap().counts.operations);
        let mut right = row(&["algsimp", "dce"]);
        assert!(prove(&world, &prover, &mut right).unwrap().is_none());
        assert_eq!((right.passes.len(), right.outputs), (2, Outputs::Equal));
        // What is wrong before it begins cannot be mended.
        let mut lost = row(&["algsimp"]);
        lost.after = vec!["scatter_determinism_expander".to_owned()];
        prove(&world, &prover, &mut lost).unwrap().unwrap();
        assert!(lost.passes.is_empty() && lost.outputs == Outputs::Different);
    }
}
