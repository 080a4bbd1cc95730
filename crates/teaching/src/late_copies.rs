//! Orders in which functions are copied as late as possible.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use xla_gym_agents::Demonstration;
use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk, World};
use xla_gym_profile::Inlining;
use xla_gym_proof::Outputs;

use crate::{
    Setting, TeachError,
    by_program::{by_program, read_sorted},
    program::{ids, prefix},
    proof::prove,
};

/// What came of postponing, in this call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Postponed {
    /// Orders that copied functions.
    pub copied: usize,
    /// Those that do without now.
    pub without: usize,
    /// Those that do it later.
    pub late: usize,
}

/// Orders in which functions are copied as late as possible: everything else comes first.
///
/// Inlining a function that is called more than once pays on some programs and not on others, and
/// cannot be taken back. Who has done everything else before has lost nothing by it: the fewest
/// operations on the way count. Orders that need the copies early stay as they are, and so do those
/// whose outputs would not be found equal. `lenient` operations more of a thousand are no reason to
/// keep an order.
pub fn late_copies(
    orders: &[&Path],
    output: &Path,
    lenient: u64,
    trials: u32,
    setting: &Setting<'_>,
) -> Result<Postponed, TeachError> {
    let orders = read_sorted(orders)?;
    let [copied, without, late] = [(); 3].map(|()| AtomicUsize::new(0));
    by_program(&orders, output, trials, setting, |program, prover, order| {
        let Some(inlining) = setting.profile.spec().inlining else { return Ok(order.clone()) };
        if !order.passes.iter().any(|pass| pass == inlining.copies) {
            return Ok(order.clone());
        }
        copied.fetch_add(1, Ordering::Relaxed);
        let world = program.world()?;
        let most = order.operations + order.operations * lenient / 1000;
        let Some((passes, operations, copies)) = postponed(world, inlining, order, most)? else {
            return Ok(order.clone());
        };
        let mut other = Demonstration { passes, operations, ..order.clone() };
        prove(world, prover, &mut other)?;
        if other.outputs != Outputs::Equal || other.operations > most {
            return Ok(order.clone());
        }
        (if copies { &late } else { &without }).fetch_add(1, Ordering::Relaxed);
        Ok(other)
    })?;
    let [copied, without, late] = [copied, without, late].map(AtomicUsize::into_inner);
    Ok(Postponed { copied, without, late })
}

/// An order that copies nothing, or copies after everything else, if it leaves no more operations
/// than `most`; with its operations, and whether it copies.
fn postponed(
    world: &Arc<World>,
    inlining: Inlining,
    order: &Demonstration,
    most: u64,
) -> Result<Option<(Vec<String>, u64, bool)>, EnvError> {
    let Some(first) = order.passes.iter().position(|pass| pass == inlining.copies) else {
        return Ok(None);
    };
    let engine = world.engine();
    let prefix = prefix(world, order)?;
    let own = ids(world, &order.passes)?;
    let (copies, moves) = (engine.pass(inlining.copies)?, engine.pass(inlining.moves)?);
    let other = |pass: &PassId| if *pass == copies { moves } else { *pass };
    let everything_else: Vec<PassId> = own.iter().map(other).collect();
    for (tail, copies) in [(&own[..0], false), (&own[first..], true)] {
        let mut walk = Walk::begin_after(world, 0, &prefix)?;
        let (mut path, mut best) = (Vec::new(), (walk.state().counts.primary(), 0));
        for &pass in everything_else.iter().chain(tail) {
            if walk.step(pass)?.changed {
                path.push(engine.pass_name(pass).to_owned());
                best = best.min((walk.state().counts.primary(), path.len()));
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
    use crate::program::{demonstration, world_of};

    const COPIES: &str = "call-inliner";

    #[test]
    fn functions_are_copied_last_or_not_at_all() {
        let name = "hlo-v1/gpt2/train-1l-adamw";
        let order = demonstration(name, &[COPIES, "algsimp", "cse"]);
        let world = world_of(name);
        let inlining = world.profile().spec().inlining.unwrap();
        let (passes, operations, copies) =
            postponed(&world, inlining, &order, u64::MAX).unwrap().unwrap();
        assert!(!copies && !passes.iter().any(|pass| pass == COPIES), "{passes:?}");
        if let Some((passes, fewer, copies)) =
            postponed(&world, inlining, &order, operations - 1).unwrap()
        {
            let at = passes.iter().position(|pass| pass == COPIES).unwrap();
            assert!(copies && at > 0 && fewer < operations, "{passes:?}");
        }
        assert!(postponed(&world, inlining, &order, 0).unwrap().is_none());
        let none = demonstration(name, &["algsimp"]);
        assert!(postponed(&world, inlining, &none, u64::MAX).unwrap().is_none());
    }
}
