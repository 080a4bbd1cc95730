//! A small set of orders that together do well on the training graphs.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result};
use xla_gym_data::{Benchmarks, Library, Side};
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{Walk, World};
use xla_gym_profile::Baseline;
use xla_gym_proof::{Options, Outputs, Pipeline, Prover};
use xla_gym_search::{Budget, Goal, Method, Search, minimise, search};
use xla_gym_xla_profile::{Coreset, Covering, NORMALIZING};

use crate::graphs;

/// A small set of orders that together do well on the training graphs.
///
/// Searches on graphs that are on the training side of every split (from the program as emitted, and
/// from its normal form), shortens the best order of each, runs what it makes of its graph beside the
/// program as emitted and drops it unless outputs are found equal, tries every other order on every
/// graph, and picks greedily those that raise the mean order ratio most.
#[derive(clap::Args)]
pub struct Args {
    /// Every how manieth of the graphs.
    #[arg(long, default_value_t = 3)]
    every: usize,

    /// Larger graphs are left out (instructions).
    #[arg(long, default_value_t = 1500)]
    up_to: u64,

    /// Passes of each search.
    #[arg(long, default_value_t = 3000)]
    budget: u64,

    /// The most orders to pick.
    #[arg(long, default_value_t = 16)]
    orders: usize,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where to write the set.
    #[arg(long, short)]
    output: PathBuf,
}

pub fn run(args: Args) -> Result<()> {
    let library = Library::hlo_v1()?;
    let training: Vec<String> = library
        .manifest()
        .graphs
        .iter()
        .filter(|graph| graph.size() <= args.up_to && graph.default.is_ok())
        .filter(|graph| graph.splits.values().all(|side| *side == Side::Train))
        .map(|graph| graph.id.clone())
        .step_by(args.every.max(1))
        .collect();
    let found = Benchmarks::find(&training)?;
    let world = Arc::new(World::with_programs(graphs::world("emitted")?, found)?);

    let prover = Prover::new(Options::default());
    let bar = graphs::progress(world.len() as u64, "graphs searched");
    let mut orders: Vec<(Vec<PassId>, usize)> = Vec::new();
    let mut baselines: Vec<Baseline> = Vec::new();
    for graph in 0..world.len() {
        let baseline = world.baseline(graph)?;
        // From the program as emitted, and from its normal form.
        let normalizing = world.engine().passes(NORMALIZING.iter().copied())?;
        for prefix in [Vec::new(), normalizing] {
            let (order, operations) = best_order(&world, graph, prefix, &args)
                .with_context(|| world.benchmark_name(graph).to_owned())?;
            bar.suspend(|| {
                println!(
                    "{}: {} → default {}, found {operations} by {} passes",
                    world.benchmark_name(graph),
                    baseline.initial.primary(),
                    baseline.default.primary(),
                    order.len()
                );
            });
            if order.is_empty() || orders.iter().any(|(other, _)| *other == order) {
                continue;
            }
            let mut walk = Walk::begin(&world, graph)?;
            for &pass in &order {
                walk.step(pass)?;
            }
            let proof = prover.prove(&mut walk, Pipeline::Whole)?;
            if proof.outputs == Outputs::Equal {
                orders.push((order, graph));
            } else {
                bar.suspend(|| println!("  which is dropped: {}", proof.words));
            }
        }
        prover.forget(graph);
        baselines.push(baseline);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let bar = graphs::progress(world.len() as u64, "graphs compared");
    // By graph, by order: the logarithm of the order ratio.
    let mut ratios: Vec<Vec<f64>> = Vec::new();
    for (graph, baseline) in baselines.iter().enumerate() {
        let mut of_graph = Vec::new();
        for (order, _) in &orders {
            let mut walk = Walk::begin(&world, graph)?;
            for &pass in order {
                walk.step(pass)?;
            }
            of_graph.push(log_ratio(baseline, walk.state().counts.primary()));
        }
        ratios.push(of_graph);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let picked = pick(&ratios, orders.len(), args.orders);
    let name = |pass: &PassId| world.engine().pass_name(*pass).to_owned();
    let coreset = Coreset {
        command: format!(
            "xla-gym-lab coreset --every {} --up-to {} --budget {} --orders {} --seed {} -o {}",
            args.every,
            args.up_to,
            args.budget,
            args.orders,
            args.seed,
            args.output.display()
        ),
        graphs: world.len(),
        orders: picked
            .into_iter()
            .map(|(index, covered)| Covering {
                passes: orders[index].0.iter().map(name).collect(),
                covered,
                found_on: world.benchmark_name(orders[index].1).to_owned(),
                outputs: Some(Outputs::Equal.to_string()),
            })
            .collect(),
    };
    for order in &coreset.orders {
        println!("{:.4} with {} ({})", order.covered, order.passes.join(","), order.found_on);
    }
    std::fs::write(&args.output, serde_json::to_string_pretty(&coreset)? + "\n")?;
    Ok(())
}

/// The shortest order that a search finds, and the operations that it leaves.
fn best_order(
    world: &Arc<World>,
    graph: usize,
    prefix: Vec<PassId>,
    args: &Args,
) -> Result<(Vec<PassId>, u64)> {
    let task = Search {
        world,
        benchmark: graph,
        budget: Budget::passes(args.budget),
        seed: args.seed,
        goal: Goal::default(),
        policy: None,
        prefix,
        first: Vec::new(),
        costs: Arc::default(),
        stop: Arc::default(),
    };
    let found = search(&task, &*Method::Evolve.optimizer(), &|_, _| {})?;
    let best = &found.candidates[0];
    let operations = best.state.counts.primary();
    let good = |walk: &mut Walk| Ok(walk.state().counts.primary() <= operations);
    Ok((minimise(world, graph, &best.passes, good, || false)?, operations))
}

/// Zero where XLA's own order removes nothing, so that the ratio means nothing.
fn log_ratio(baseline: &Baseline, operations: u64) -> f64 {
    let reduction = |end: f64| baseline.initial.primary() - end;
    let default = reduction(baseline.default.primary());
    if default <= 0.0 {
        return 0.0;
    }
    (reduction(operations as f64) / default).max(1e-3).ln()
}

/// Picks orders one by one, each time the one that helps most; with the geometric mean so far.
fn pick(ratios: &[Vec<f64>], orders: usize, most: usize) -> Vec<(usize, f64)> {
    let mut best = vec![f64::NEG_INFINITY; ratios.len()];
    let mut picked: Vec<(usize, f64)> = Vec::new();
    while picked.len() < most {
        let with = |order: usize| -> f64 {
            let best = ratios.iter().zip(&best).map(|(of_graph, best)| best.max(of_graph[order]));
            best.sum::<f64>() / ratios.len() as f64
        };
        let free = (0..orders).filter(|order| !picked.iter().any(|(other, _)| other == order));
        let Some(order) = free.max_by(|a, b| with(*a).total_cmp(&with(*b))) else { break };
        let covered = with(order).exp();
        // A quarter of a thousandth is not worth the passes.
        if picked.last().is_some_and(|(_, before)| covered < before + 2.5e-4) {
            break;
        }
        for (of_graph, best) in ratios.iter().zip(&mut best) {
            *best = best.max(of_graph[order]);
        }
        picked.push((order, covered));
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::pick;

    #[test]
    fn orders_that_complement_each_other_are_picked() {
        // The second is best alone; the third helps where the second does not.
        let ratios = vec![vec![0.1, 0.3, 0.0], vec![0.1, 0.3, 0.0], vec![0.1, -0.1, 0.3]];
        let picked: Vec<usize> = pick(&ratios, 3, 9).into_iter().map(|(order, _)| order).collect();
        assert_eq!(picked, [1, 2]);
    }
}
