//! A better pass order for one graph: random orders, then small changes to the best.

use std::path::PathBuf;

use anyhow::Result;
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    Session,
    protocol::{Observe, PassId},
};
use xla_gym_profile::{apply_all, finish};

use crate::graphs;

/// A better pass order for one graph: random orders, then small changes to the best, then
/// without what is not needed.
#[derive(clap::Args)]
pub struct Args {
    /// The graph.
    file: PathBuf,

    /// How many orders.
    #[arg(long, default_value_t = 200)]
    tries: u32,

    /// Passes in each.
    #[arg(long, default_value_t = 30)]
    length: usize,

    /// Count operations just before layout assignment (slow) instead of at the end of the order.
    #[arg(long)]
    legal: bool,

    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: Args) -> Result<()> {
    let engine = graphs::engine(10)?;
    let mut session = engine.load_file(&args.file)?;
    let mut start = graphs::start_session(&mut session, "emitted")?;
    let passes: Vec<PassId> = graphs::usable_passes(&engine)
        .into_iter()
        .filter(|pass| {
            let pass = &engine.hello().passes[usize::from(pass.0)];
            matches!(pass.kind.as_str(), "simplifier" | "call graph" | "loop" | "normaliser")
        })
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let mut best: Option<(u64, Vec<PassId>)> = None;
    let bar = graphs::progress(args.tries.into(), "orders");
    for attempt in 0..args.tries {
        let order = match &best {
            Some((_, order)) if attempt > args.tries / 3 => mutate(order, &passes, &mut rng),
            _ => {
                let length = rng.random_range(args.length / 2..=args.length);
                (0..length).filter_map(|_| passes.choose(&mut rng).copied()).collect()
            }
        };
        let mut session = start.fork()?;
        apply_all(&mut session, &order)?;
        if let Some(value) = value(&mut session, args.legal)
            && best.as_ref().is_none_or(|(least, _)| value <= *least)
        {
            if best.as_ref().is_none_or(|(least, _)| value < *least) {
                eprintln!("try {attempt}: {value} operations after {} passes", order.len());
            }
            best = Some((value, session.steps().to_vec()));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Some((least, mut order)) = best else { anyhow::bail!("no order gave a valid program") };
    // Leave out whatever is not needed for the result.
    let mut index = 0;
    while index < order.len() {
        let mut shorter = order.clone();
        shorter.remove(index);
        let mut session = start.fork()?;
        apply_all(&mut session, &shorter)?;
        if value(&mut session, args.legal).is_some_and(|value| value <= least) {
            order = shorter;
        } else {
            index += 1;
        }
    }
    let names: Vec<&str> = order.iter().map(|&pass| engine.pass_name(pass)).collect();
    println!("{least} operations: {}", names.join(","));
    Ok(())
}

/// One to three insertions, removals, replacements or swaps.
fn mutate(order: &[PassId], passes: &[PassId], rng: &mut ChaCha8Rng) -> Vec<PassId> {
    let mut order = order.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        let at = rng.random_range(0..=order.len());
        let Some(&pass) = passes.choose(rng) else { break };
        match rng.random_range(0..4) {
            0 => order.insert(at, pass),
            1 if at < order.len() => drop(order.remove(at)),
            2 if at < order.len() => order[at] = pass,
            3 if at + 1 < order.len() => order.swap(at, at + 1),
            _ => {}
        }
    }
    order
}

/// Operations, if the state is valid.
fn value(session: &mut Session, legal: bool) -> Option<u64> {
    if legal {
        let finished = finish(session, &graphs::without_optional()).ok()?;
        return Some(finished.counts[graphs::MIDDLE].primary());
    }
    let seen = session.observe(Observe::COUNTS | Observe::VERDICT).ok()?;
    seen.verdict?.ok()?;
    Some(seen.counts?.primary())
}
