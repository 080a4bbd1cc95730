//! Orders that did well on other programs.

use serde::{Deserialize, Serialize};

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

/// The orders of the committed set.
pub fn coreset() -> Vec<Vec<String>> {
    let coreset: Coreset = serde_json::from_str(COMMITTED).unwrap_or_default();
    coreset.orders.into_iter().map(|order| order.passes).collect()
}

/// The same for programs with convolutions: each order also with the simplifier that leaves their
/// operands where they are. The others swap them where the reversed kernel is cheaper, and the back
/// end then transposes them back, which costs more than was won.
pub fn for_convolutions(orders: &[Vec<String>]) -> Vec<Vec<String>> {
    let keep = |pass: &String| match pass.starts_with("algsimp") {
        true => "algsimp:keep-convolutions".to_owned(),
        false => pass.clone(),
    };
    let mut all = Vec::new();
    for order in orders {
        let kept: Vec<String> = order.iter().map(keep).collect();
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
