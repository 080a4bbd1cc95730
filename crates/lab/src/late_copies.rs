//! Orders in which functions are copied as late as possible.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use xla_gym_common::on_all_cores;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{Walk, World};
use xla_gym_proof::Outputs;

use crate::{demonstrations::Row, graphs};

/// Orders in which functions are copied as late as possible: everything else comes first.
///
/// Inlining a function that is called more than once pays on some programs and not on others, and
/// cannot be taken back. Who has done everything else before has lost nothing by it: the fewest
/// operations on the way count. Orders that need the copies early stay as they are.
#[derive(clap::Args)]
pub struct Args {
    /// Orders, as `xla-gym-lab demonstrations` writes them.
    orders: PathBuf,

    /// How many operations more than before are no reason to keep an order, for a thousand of them.
    #[arg(long, default_value_t = 5)]
    lenient: u64,

    /// Where to write them.
    #[arg(long, short)]
    output: PathBuf,
}

/// Copies functions that are called more than once.
const COPIES: &str = "call-inliner";

/// Inlines those that are called once.
const MOVES: &str = "call-inliner:single-call-site";

pub fn run(args: Args) -> Result<()> {
    let mut rows = Row::read(&args.orders)?;
    let mut by_program: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        if row.passes.iter().any(|pass| pass == COPIES) {
            by_program.entry(&row.benchmark).or_default().push(number);
        }
    }
    let programs: Vec<(&str, Vec<usize>)> = by_program.into_iter().collect();
    let bar = graphs::progress(programs.len() as u64, "programs");
    let (without, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let changed = on_all_cores(programs.len(), |index| {
        let (name, numbers) = &programs[index];
        let world = rows[numbers[0]].world()?;
        let mut changed = Vec::new();
        for &number in numbers {
            let row = &rows[number];
            let most = row.operations + row.operations * args.lenient / 1000;
            if let Some((passes, operations, copies)) =
                postponed(&world, row, most).with_context(|| (*name).to_owned())?
            {
                (if copies { &late } else { &without }).fetch_add(1, Ordering::Relaxed);
                changed.push((number, passes, operations));
            }
        }
        bar.inc(1);
        Ok::<_, anyhow::Error>(changed)
    })?;
    bar.finish_and_clear();
    let affected: usize = programs.iter().map(|(_, numbers)| numbers.len()).sum();
    for (number, passes, operations) in changed.into_iter().flatten() {
        (rows[number].passes, rows[number].operations) = (passes, operations);
        // Nobody has run this one: `xla-gym-lab recheck --keep-equal` does.
        rows[number].outputs = Outputs::Unchecked;
    }
    Row::write(&rows, &args.output)?;
    let (without, late) = (without.into_inner(), late.into_inner());
    println!(
        "of {affected} orders that copy functions, {without} do without and {late} do it later"
    );
    Ok(())
}

/// An order that copies nothing, or copies after everything else, if it leaves no more operations
/// than `most`; with its operations, and whether it copies.
fn postponed(world: &Arc<World>, row: &Row, most: u64) -> Result<Option<(Vec<String>, u64, bool)>> {
    let Some(first) = row.passes.iter().position(|pass| pass == COPIES) else { return Ok(None) };
    let engine = world.engine();
    let prefix = row.prefix(world)?;
    let own = engine.passes(row.passes.iter().map(String::as_str))?;
    let (copies, moves) = (engine.pass(COPIES)?, engine.pass(MOVES)?);
    let other = |pass: &PassId| if *pass == copies { moves } else { *pass };
    let everything_else: Vec<PassId> = own.iter().map(other).collect();
    for (tail, copies) in [(&own[..0], false), (&own[first..], true)] {
        let mut walk = Walk::begin_after(world, 0, &prefix)?;
        let (mut path, mut best) = (Vec::new(), (walk.state().counts.operations, 0));
        for &pass in everything_else.iter().chain(tail) {
            if walk.step(pass)?.changed {
                path.push(engine.pass_name(pass).to_owned());
                best = best.min((walk.state().counts.operations, path.len()));
            }
        }
        if best.0 <= most {
            path.truncate(best.1);
            return Ok(Some((path, best.0, copies)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_copied_last_or_not_at_all() {
        let name = "hlo-v1/gpt2/train-1l-adamw";
        let row = |passes: &[&str]| Row {
            benchmark: name.to_owned(),
            legal: false,
            after: Vec::new(),
            passes: passes.iter().map(|pass| (*pass).to_owned()).collect(),
            initial: 0,
            default: 0,
            operations: 0,
            outputs: Outputs::Unchecked,
        };
        let order = row(&[COPIES, "algsimp", "cse"]);
        let world = order.world().unwrap();
        let (passes, operations, copies) = postponed(&world, &order, u64::MAX).unwrap().unwrap();
        assert!(!copies && !passes.iter().any(|pass| pass == COPIES), "{passes:?}");
        if let Some((passes, fewer, copies)) = postponed(&world, &order, operations - 1).unwrap() {
            let at = passes.iter().position(|pass| pass == COPIES).unwrap();
            assert!(copies && at > 0 && fewer < operations, "{passes:?}");
        }
        assert!(postponed(&world, &order, 0).unwrap().is_none());
        assert!(postponed(&world, &row(&["algsimp"]), u64::MAX).unwrap().is_none());
    }
}
