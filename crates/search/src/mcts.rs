//! Monte-Carlo tree search.

use std::collections::HashMap;

use rand::Rng;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_env::{EnvError, Walk};

use crate::{goal::Value, lane::Lane, search::Optimizer};

/// Grows a tree of states. A descent goes where the best was found below or where little was tried.
/// A state has few branches at first and more the more often it is visited, because there are a
/// hundred passes to choose from; a new branch is drawn by what the policy expects and by what was of
/// use before. At the edge the descent goes on at random for a few passes, and what it found is told
/// to all states on its way. States that are reached in several ways are one node.
///
/// What a branch is worth is the best below it, not the mean: an order is used once, by its end.
pub struct Mcts {
    /// How much is tried where little is known.
    pub curiosity: f64,
    /// How many branches a state has for the root of its visits.
    pub width: f64,
    /// How far to go at random beyond the edge.
    pub beyond: usize,
    /// The longest order.
    pub length: usize,
}

impl Default for Mcts {
    fn default() -> Mcts {
        Mcts { curiosity: 0.15, width: 1.5, beyond: 8, length: 60 }
    }
}

/// A state that was visited.
#[derive(Default)]
struct Node {
    visits: f64,
    branches: Vec<Branch>,
}

struct Branch {
    pass: PassId,
    visits: f64,
    /// The best below, from 0 for no better than the start to 1 for the best of all.
    best: f64,
}

type Tree = HashMap<Fingerprint, Node>;

/// The states of a descent, and the passes that were taken there.
type Way = Vec<(Fingerprint, PassId)>;

impl Optimizer for Mcts {
    fn lanes(&self) -> u64 {
        2
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        let mut tree = Tree::new();
        let root = lane.begin()?;
        let start = lane.value(&root);
        let mut best = start;
        // What was tried first is part of the tree.
        for order in lane.seeds().to_vec() {
            let mut walk = lane.begin()?;
            let mut way = Way::new();
            for pass in order {
                if !self.take(lane, &mut walk, pass, &mut way)? {
                    break;
                }
            }
            let end = lane.value(&walk);
            best = best.min(end);
            credit(&mut tree, way, reward(start, best, end));
        }
        while lane.over().is_none() {
            let mut walk = lane.begin()?;
            let mut way = Way::new();
            // Down the tree to a branch that is new.
            while walk.path().len() < self.length {
                let node = tree.entry(walk.state().id).or_default();
                let (pass, new) = match self.choose(node, lane, &walk) {
                    Some(chosen) => chosen,
                    None => break,
                };
                if !self.take(lane, &mut walk, pass, &mut way)? || new {
                    break;
                }
            }
            let mut lowest = lane.value(&walk);
            // And on at random.
            for _ in 0..lane.rng.random_range(0..=self.beyond) {
                let Some(pass) = lane.pick_for(&walk) else { break };
                if !self.take(lane, &mut walk, pass, &mut way)? {
                    break;
                }
                lowest = lowest.min(lane.value(&walk));
            }
            best = best.min(lowest);
            credit(&mut tree, way, reward(start, best, lowest));
        }
        Ok(())
    }
}

impl Mcts {
    /// Runs a pass, which is part of the way if it does something; false if the budget is spent.
    fn take(
        &self,
        lane: &mut Lane<'_>,
        walk: &mut Walk,
        pass: PassId,
        way: &mut Way,
    ) -> Result<bool, EnvError> {
        let here = walk.state().id;
        let Some(stepped) = lane.step(walk, pass)? else { return Ok(false) };
        if stepped.changed {
            way.push((here, pass));
        }
        Ok(true)
    }

    /// The branch to take, and whether it is new; none if nothing does anything here.
    fn choose(&self, node: &Node, lane: &mut Lane<'_>, walk: &Walk) -> Option<(PassId, bool)> {
        let most = (self.width * (node.visits + 1.0).sqrt()).ceil() as usize;
        if node.branches.len() < most {
            // A few draws, since those that are there already may come again.
            for _ in 0..8 {
                let pass = lane.pick_for(walk)?;
                if !node.branches.iter().any(|branch| branch.pass == pass) {
                    return Some((pass, true));
                }
            }
        }
        let value = |branch: &Branch| {
            let tried = (node.visits + 1.0).ln() / (branch.visits + 1.0);
            branch.best + self.curiosity * tried.sqrt()
        };
        let best = node.branches.iter().max_by(|a, b| value(a).total_cmp(&value(b)));
        best.map(|branch| (branch.pass, false))
    }
}

/// 1 for as good as the best so far, 0 for no better than the start.
fn reward(start: Value, best: Value, here: Value) -> f64 {
    let range = start.share - best.share;
    if range <= 0.0 { 0.0 } else { ((start.share - here.share) / range).clamp(0.0, 1.0) }
}

fn credit(tree: &mut Tree, way: Way, reward: f64) {
    for (state, pass) in way {
        let node = tree.entry(state).or_default();
        node.visits += 1.0;
        match node.branches.iter_mut().find(|branch| branch.pass == pass) {
            Some(branch) => {
                branch.visits += 1.0;
                branch.best = branch.best.max(reward);
            }
            None => node.branches.push(Branch { pass, visits: 1.0, best: reward }),
        }
    }
}
