//! Good orders for training graphs, by search.

use std::{collections::HashMap, ops::Range, path::Path, sync::Arc};

use xla_gym_agents::{Demonstration, TrainedPolicy};
use xla_gym_common::on_all_cores;
use xla_gym_data::{Benchmark, Benchmarks};
use xla_gym_engine::{Engine, EngineConfig, protocol::PassId};
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_profile::Figures;
use xla_gym_proof::{Options, Prover};
use xla_gym_rows::{Appender, read_if_any};
use xla_gym_search::{Budget, Goal, Method, Policy, Search, search};

use crate::{
    Setting, TeachError,
    astray::go_astray,
    program::{along, start_of, world},
    proof::prove,
    starts,
};

/// How to look for demonstrations.
#[derive(Clone, Debug)]
pub struct Searches {
    /// Which programs.
    pub benchmarks: Vec<String>,
    /// Larger graphs are left out (instructions).
    pub largest: u64,
    /// What each search may cost. With a limit of time, results depend on the machine.
    pub budget: Budget,
    /// Seed.
    pub seed: u64,
    /// On how many kinds of inputs at least orders are proven.
    pub trials: u32,
    /// A policy whose walk each search begins with and whose word it heeds, or which goes astray.
    pub policy: Option<TrainedPolicy>,
    /// Searches for each program and start, each after a few steps that the policy takes by chance,
    /// now and then a pass that it would never take.
    pub astray: Option<u64>,
}

/// Searches from each program as emitted, and from where the compiler's pipeline leads in any
/// case; or, if it is to go astray, from where the policy may stand after some steps of its own.
/// Each order is run beside the program as emitted; one that is not found equal is cut before the
/// pass to blame, and where nothing can be proven the row has no passes, so that nobody learns from
/// it. Rows are written as they come; what is in the file is not searched for again.
pub fn demonstrations(
    how: &Searches,
    output: &Path,
    setting: &Setting<'_>,
) -> Result<(), TeachError> {
    let files = setting.profile.spec().files;
    let found = Benchmarks::find_files(&how.benchmarks, &files).map_err(EnvError::from)?;
    let mut programs = found.programs;
    programs.retain(|program| match program {
        Benchmark::Graph(graph) => graph.size() <= how.largest && graph.default.is_ok(),
        _ => true,
    });
    if programs.is_empty() {
        return Err(TeachError::config("there is no program to search on that is small enough"));
    }
    let done = Done::read(how, output)?;
    let starts = starts(setting.profile.spec());
    programs.retain(|program| {
        starts.iter().any(|start| !done.missing(&program.name(), start).is_empty())
    });
    if programs.is_empty() {
        return Ok(());
    }
    let passes = match &how.policy {
        // Who goes astray does so by passes that it knows, and comes back by the same.
        Some(policy) if how.astray.is_some() => {
            lossless(&setting.engine, &policy.interface.passes)?
        }
        _ => Vec::new(),
    };
    let file = Appender::open(output)?;
    setting.watch.counting(programs.len() as u64, "graphs");
    on_all_cores(programs.len(), |index| {
        setting.go_on()?;
        let name = programs[index].name();
        let of = TeachError::of(&name);
        let found = Benchmarks { programs: vec![programs[index].clone()], skipped: Vec::new() };
        let world = world(&setting.profile, &setting.engine, found, &passes).map_err(&of)?;
        let prover = Prover::new(Options { trials: how.trials, ..Options::default() });
        for start in &starts {
            for number in done.missing(&name, start) {
                let mut order =
                    demonstrate(&world, start.clone(), number as u64, how, setting).map_err(&of)?;
                // A search that was cut short is done anew next time.
                setting.go_on()?;
                if let Some(words) = prove(&world, &prover, &mut order).map_err(&of)? {
                    setting.watch.say(&format!("{name}: {words}"));
                }
                file.add(&order)?;
            }
        }
        setting.watch.advance();
        Ok::<(), TeachError>(())
    })?;
    Ok(())
}

/// How many searches of each program and start are done.
struct Done {
    searches: usize,
    done: HashMap<(String, Option<String>), usize>,
}

impl Done {
    fn read(how: &Searches, output: &Path) -> Result<Done, TeachError> {
        let before: Vec<Demonstration> = read_if_any(output)?;
        if how.astray.is_none() && before.iter().any(|order| !order.after.is_empty()) {
            let message =
                format!("{}: its orders begin astray; name another file", output.display());
            return Err(TeachError::config(message));
        }
        let mut done = Done { searches: how.astray.unwrap_or(1) as usize, done: HashMap::new() };
        for order in before {
            *done.done.entry((order.benchmark, order.start)).or_default() += 1;
        }
        Ok(done)
    }

    fn missing(&self, name: &str, start: &Option<String>) -> Range<usize> {
        self.done.get(&(name.to_owned(), start.clone())).copied().unwrap_or_default()..self.searches
    }
}

/// Those of some passes that keep what programs compute.
fn lossless(engine: &EngineConfig, names: &[String]) -> Result<Vec<String>, TeachError> {
    let engine = Engine::start(EngineConfig { quarantine: None, ..engine.clone() })
        .map_err(EnvError::from)?;
    let lossy = |name: &String| engine.hello().passes.iter().any(|p| p.lossy && p.name == **name);
    Ok(names.iter().filter(|name| !lossy(name)).cloned().collect())
}

/// The shortest order that a search finds for the only graph of a world.
fn demonstrate(
    world: &Arc<World>,
    start: Option<String>,
    number: u64,
    how: &Searches,
    setting: &Setting<'_>,
) -> Result<Demonstration, EnvError> {
    let at = start_of(world, start.as_deref())?;
    let prepared = world.start_passes(0, at)?.to_vec();
    // Other luck for each program; seed 0 and its search 1 have that of seed 1 and its search 0.
    let name = world.benchmark_name(0).bytes().map(u64::from);
    let seed = match how.astray {
        Some(_) => name.fold(how.seed.wrapping_add(number), |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(byte)
        }),
        None => how.seed,
    };
    let guide = how.policy.as_ref().map(|policy| policy.guide(world)).transpose();
    let guide = guide.map_err(|error| EnvError::Config(error.to_string()))?;
    let (mut first, mut after, mut heeded) = (world.first_orders(0)?, Vec::new(), None);
    match guide {
        Some(guide) if how.astray.is_some() => {
            // In the search it would not know what it did before, so it is not heeded there.
            let own;
            (after, own) = go_astray(world, &prepared, &guide, seed)?;
            first.retain(|order| order.iter().all(|pass| world.actions().contains(pass)));
            first.insert(0, own);
        }
        guide => heeded = guide.map(|guide| Arc::new(guide) as Arc<dyn Policy>),
    }
    let prefix = [prepared, after.clone()].concat();
    let task = Search {
        world,
        benchmark: 0,
        budget: how.budget,
        seed,
        goal: Goal::default(),
        policy: heeded,
        prefix: prefix.clone(),
        first,
        costs: Arc::default(),
        stop: setting.stop.clone(),
    };
    let found = search(&task, &*Method::Evolve.optimizer(), &|_, _| {})?;
    let best = &found.candidates[0];
    let operations = best.state.counts.primary();
    let passes = shorten(world, &prefix, &best.passes, operations)?;
    let baseline = world.baseline(0)?;
    let figure = world.profile().spec().starts[at].counts_as;
    let of = |figures: &Figures| figures.get(figure).unwrap_or_default() as u64;
    let (initial, default) = (of(&baseline.initial), of(&baseline.default));
    let names = |passes: &[PassId]| {
        passes.iter().map(|pass| world.engine().pass_name(*pass).to_owned()).collect()
    };
    Ok(Demonstration {
        start,
        benchmark: world.benchmark_name(0).to_owned(),
        after: names(&after),
        passes: names(&passes),
        initial,
        default,
        operations,
        ..Demonstration::default()
    })
}

/// Leaves out single passes, the last first, while no operation is added.
fn shorten(
    world: &Arc<World>,
    prefix: &[PassId],
    order: &[PassId],
    operations: u64,
) -> Result<Vec<PassId>, EnvError> {
    // The way that a search returns includes what it was told to begin with.
    let given = Walk::begin_after(world, 0, prefix)?.path().len();
    let mut order = order[given..].to_vec();
    for at in (0..order.len()).rev() {
        let mut rest = order.clone();
        rest.remove(at);
        if along(world, prefix, &rest)?.state().counts.primary() <= operations {
            order = rest;
        }
    }
    Ok(order)
}
