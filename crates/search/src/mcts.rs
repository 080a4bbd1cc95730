//! Monte-Carlo tree search.

use std::collections::HashMap;

use rand::Rng;
use xla_gym_engine::protocol::{Fingerprint, PassId};
use xla_gym_env::{EnvError, Walk};

use crate::{goal::Value, lane::Lane, search::Optimizer};

/// Grows a tree of states. A descent goes where the best was found below or where little was
/// tried, weighed by what the policy expects of a pass; at the edge it goes on at random for a few
/// passes, and what it found is told to all states on its way. States that are reached in several
/// ways are one node.
///
/// What a node is worth is the best below it, not the mean: an order is used once, by its end.
pub struct Mcts {
    /// How much is tried where little is known.
    pub curiosity: f64,
    /// How far to go at random beyond the edge.
    pub beyond: usize,
    /// The longest order.
    pub length: usize,
}

impl Default for Mcts {
    fn default() -> Mcts {
        Mcts { curiosity: 0.4, beyond: 6, length: 60 }
    }
}

/// A state that was visited.
struct Node {
    visits: f64,
    /// By pass: what was expected, how often it was tried, the best below.
    edges: Vec<Edge>,
}

#[derive(Clone)]
struct Edge {
    pass: PassId,
    prior: f64,
    visits: f64,
    best: f64,
    dead: bool,
}

impl Optimizer for Mcts {
    fn lanes(&self) -> u64 {
        2
    }

    fn run(&self, lane: &mut Lane<'_>) -> Result<(), EnvError> {
        let mut tree: HashMap<Fingerprint, Node> = HashMap::new();
        let root = lane.begin()?;
        let start = lane.value(&root);
        let mut best = start;
        // What is known already is part of the tree.
        for order in lane.seeds().to_vec() {
            let mut walk = lane.begin()?;
            let mut way = Vec::new();
            for pass in order {
                let here = walk.state().id;
                self.node(lane, &mut tree, &walk);
                match lane.step(&mut walk, pass)? {
                    None => break,
                    Some(stepped) if stepped.changed => way.push((here, pass)),
                    Some(_) => {}
                }
            }
            let end = lane.value(&walk);
            best = best.min(end);
            credit(&mut tree, way, reward(start, best, end));
        }
        while lane.over().is_none() {
            let mut walk = lane.begin()?;
            let mut way: Vec<(Fingerprint, PassId)> = Vec::new();
            let mut lowest = start;
            // Down the tree to a pass that was not tried before.
            while walk.path().len() < self.length {
                let here = walk.state().id;
                let node = self.node(lane, &mut tree, &walk);
                let Some(edge) = node.choose(self.curiosity) else { break };
                let (pass, new) = (node.edges[edge].pass, node.edges[edge].visits == 0.0);
                match lane.step(&mut walk, pass)? {
                    None => break,
                    Some(stepped) if !stepped.changed => {
                        if let Some(node) = tree.get_mut(&here) {
                            node.edges[edge].dead = true;
                        }
                        continue;
                    }
                    Some(_) => way.push((here, pass)),
                }
                lowest = lowest.min(lane.value(&walk));
                if new {
                    break;
                }
            }
            // And on at random.
            for _ in 0..lane.rng.random_range(0..=self.beyond) {
                let Some(pass) = lane.pick_for(&walk) else { break };
                match lane.step(&mut walk, pass)? {
                    None => break,
                    Some(_) => lowest = lowest.min(lane.value(&walk)),
                }
            }
            best = best.min(lowest);
            let reward = reward(start, best, lowest);
            credit(&mut tree, way, reward);
        }
        Ok(())
    }
}

/// 1 for as good as the best so far, 0 for no better than the start.
fn reward(start: Value, best: Value, here: Value) -> f64 {
    let range = start.share - best.share;
    if range <= 0.0 { 0.0 } else { ((start.share - here.share) / range).clamp(0.0, 1.0) }
}

fn credit(tree: &mut HashMap<Fingerprint, Node>, way: Vec<(Fingerprint, PassId)>, reward: f64) {
    for (state, pass) in way {
        if let Some(node) = tree.get_mut(&state) {
            node.credit(pass, reward);
        }
    }
}

impl Mcts {
    fn node<'t>(
        &self,
        lane: &mut Lane<'_>,
        tree: &'t mut HashMap<Fingerprint, Node>,
        walk: &Walk,
    ) -> &'t mut Node {
        tree.entry(walk.state().id).or_insert_with(|| {
            let weights = lane.weights(walk);
            let total: f64 = weights.iter().sum();
            let edge = |(&pass, weight): (&PassId, f64)| Edge {
                pass,
                prior: weight / total,
                visits: 0.0,
                best: 0.0,
                dead: weight <= 0.0,
            };
            Node { visits: 0.0, edges: lane.passes().iter().zip(weights).map(edge).collect() }
        })
    }
}

impl Node {
    /// The pass to try, unless none is left that does anything.
    fn choose(&self, curiosity: f64) -> Option<usize> {
        let value = |edge: &Edge| {
            let passes = self.edges.len() as f64;
            let explore = edge.prior * passes.sqrt() * (self.visits + 1.0).sqrt();
            edge.best + curiosity * explore / (1.0 + edge.visits)
        };
        let alive = self.edges.iter().enumerate().filter(|(_, edge)| !edge.dead);
        alive.max_by(|(_, a), (_, b)| value(a).total_cmp(&value(b))).map(|(index, _)| index)
    }

    fn credit(&mut self, pass: PassId, reward: f64) {
        self.visits += 1.0;
        if let Some(edge) = self.edges.iter_mut().find(|edge| edge.pass == pass) {
            edge.visits += 1.0;
            edge.best = edge.best.max(reward);
        }
    }
}
