//! The best few states of each length.

use std::collections::HashSet;

use xla_gym_engine::protocol::PassId;
use xla_gym_env::{EnvError, Walk};

use crate::{
    lane::Lane,
    search::{Optimizer, walk_order},
};

/// Tries every pass on each of the best few states, and goes on with the best few of what comes
/// out. With a width of one it is greedy search. Where a state gives nothing better, the next best
/// of all states seen goes on, until the budget is spent.
pub struct Beam {
    /// How many states go on.
    pub width: usize,
    /// The longest order.
    pub length: usize,
}

impl Default for Beam {
    fn default() -> Beam {
        Beam { width: 4, length: 60 }
    }
}

impl Optimizer for Beam {
    /// The next step rests on all of the last one.
    fn lanes(&self) -> u64 {
        1
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        let mut seen = HashSet::new();
        // States to go on from, the best last.
        let mut open: Vec<Walk> = vec![lane.begin()?];
        for order in lane.seeds().to_vec() {
            open.push(walk_order(lane, &order)?);
        }
        seen.extend(open.iter().map(|walk| walk.state().id));
        while lane.over().is_none() {
            let chosen = open.split_off(open.len().saturating_sub(self.width));
            if chosen.is_empty() {
                lane.exhausted();
                break;
            }
            for mut walk in chosen {
                if walk.path().len() >= self.length {
                    continue;
                }
                for child in expand(lane, &mut walk)? {
                    if seen.insert(child.state().id) {
                        open.push(child);
                    }
                }
            }
            open.sort_by_key(|walk| std::cmp::Reverse((lane.value(walk), walk.path().len())));
        }
        Ok(())
    }
}

/// Every state that one pass leads to.
fn expand(lane: &mut Lane<'_>, walk: &mut Walk) -> Result<Vec<Walk>, EnvError> {
    let mut children = Vec::new();
    // Stays where it is while passes do nothing; a copy of the program is made only for those
    // that do something.
    if lane.passes().iter().any(|&pass| !walk.knows(pass)) {
        walk.session()?;
    }
    let mut scout = walk.fork_with_program()?;
    for pass in promising(lane, walk) {
        match lane.step(&mut scout, pass)? {
            None => break,
            Some(stepped) if stepped.changed => {
                // Without its program: most children are never gone on from.
                children.push(scout.fork());
                scout = walk.fork_with_program()?;
            }
            Some(_) => {}
        }
    }
    Ok(children)
}

/// The passes to try on a state: all of which it is not known that they do nothing, or the third of
/// them that a policy thinks best.
fn promising(lane: &Lane<'_>, walk: &Walk) -> Vec<PassId> {
    let mut passes: Vec<(PassId, f64)> =
        lane.passes().iter().copied().zip(lane.weights(walk)).filter(|(_, w)| *w > 0.0).collect();
    if lane.is_guided() {
        passes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        passes.truncate(passes.len().div_ceil(3));
    }
    passes.into_iter().map(|(pass, _)| pass).collect()
}
