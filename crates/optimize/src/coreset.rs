//! Orders that did well on other programs.

use serde::{Deserialize, Serialize};
use xla_gym_engine::{Engine, protocol::PassId};

/// The committed set, made by `xla-gym-lab coreset` from training graphs alone.
const COMMITTED: &str = include_str!("../../../shipped/xla/coreset.json");

/// A small set of orders that together do well on the training graphs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Coreset {
    /// How it was made.
    pub command: String,
    /// On how many graphs.
    pub graphs: usize,
    /// The orders, the most useful first.
    pub orders: Vec<Covering>,
}

/// An order of the set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Covering {
    /// Its passes.
    pub passes: Vec<String>,
    /// The geometric mean of the order ratio on the training graphs, with this and all orders
    /// before it.
    pub covered: f64,
    /// The graph on which it was found.
    pub found_on: String,
    /// Whether it was run there and computes what it should; nothing, if nobody tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
}

/// The orders of the committed set that this engine knows. With another compiler there may be
/// none.
pub fn coreset(engine: &Engine) -> Vec<Vec<PassId>> {
    let coreset: Coreset = serde_json::from_str(COMMITTED).unwrap_or_default();
    let known =
        |covering: &Covering| engine.passes(covering.passes.iter().map(String::as_str)).ok();
    coreset.orders.iter().filter_map(known).collect()
}

/// The same for programs with convolutions: each order also with the simplifier that leaves their
/// operands where they are. The others swap them where the reversed kernel is cheaper, and the back
/// end then transposes them back, which costs more than was won.
pub fn for_convolutions(engine: &Engine, orders: &[Vec<PassId>]) -> Vec<Vec<PassId>> {
    let Ok(keep) = engine.pass("algsimp:keep-convolutions") else { return orders.to_vec() };
    let simplifies = |pass: PassId| engine.pass_name(pass).starts_with("algsimp");
    let mut all = Vec::new();
    for order in orders {
        let kept: Vec<PassId> =
            order.iter().map(|&pass| if simplifies(pass) { keep } else { pass }).collect();
        if !all.contains(&kept) {
            all.push(kept);
        }
        all.push(order.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_set_can_be_read() {
        let coreset: Coreset = serde_json::from_str(COMMITTED).unwrap();
        assert!(coreset.orders.iter().all(|order| !order.passes.is_empty()));
        assert!(coreset.orders.is_sorted_by(|a, b| a.covered <= b.covered));
    }
}
