//! Dividing graphs into training and test.

use std::collections::BTreeMap;

use xla_gym_common::fnv64;

use crate::{
    manifest::{Side, Split},
    similarity::Shingles,
};

/// Graphs at least this alike stay on one side.
pub const NEAR: f64 = 0.75;

/// Super-families of which training sees nothing in the `unseen` split.
pub const UNSEEN: &[&str] = &["t5", "vit", "cnn", "moe", "graphnet", "sampling", "linalg"];

/// The share of test graphs that the other two splits aim at.
const TEST_SHARE: f64 = 0.3;

/// One graph, as far as splitting looks at it.
pub struct Candidate<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its super-family.
    pub super_family: &'a str,
    /// Its runs of opcodes.
    pub shingles: Shingles,
}

/// The side of each graph in each split, by position. Depends on nothing but the graphs: the
/// same graphs are always divided in the same way.
pub fn assign(graphs: &[Candidate]) -> Vec<BTreeMap<Split, Side>> {
    let cluster = clusters(graphs);
    let mut sides = vec![BTreeMap::new(); graphs.len()];
    for (index, graph) in graphs.iter().enumerate() {
        let side = if UNSEEN.contains(&graph.super_family) { Side::Test } else { Side::Train };
        sides[index].insert(Split::Unseen, side);
    }
    let gpt2: Vec<usize> =
        (0..graphs.len()).filter(|&index| graphs[index].super_family == "gpt2").collect();
    divide(Split::Gpt2, &gpt2, &cluster, graphs, &mut sides);
    // Every family on both sides, as far as its graphs differ enough.
    let mut families: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, graph) in graphs.iter().enumerate() {
        families.entry(graph.super_family).or_default().push(index);
    }
    let mut decided = BTreeMap::new();
    for members in families.values() {
        divide_with(Split::Diverse, members, &cluster, graphs, &mut sides, &mut decided);
    }
    sides
}

fn divide(
    split: Split,
    members: &[usize],
    cluster: &[usize],
    graphs: &[Candidate],
    sides: &mut [BTreeMap<Split, Side>],
) {
    divide_with(split, members, cluster, graphs, sides, &mut BTreeMap::new());
}

/// Whole clusters go to test, in an order that only their ids decide, until there are enough.
/// `decided` remembers clusters that reach into several families.
fn divide_with(
    split: Split,
    members: &[usize],
    cluster: &[usize],
    graphs: &[Candidate],
    sides: &mut [BTreeMap<Split, Side>],
    decided: &mut BTreeMap<usize, Side>,
) {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &member in members {
        groups.entry(cluster[member]).or_default().push(member);
    }
    let mut order: Vec<(u64, usize)> =
        groups.keys().map(|&group| (fnv64(graphs[group].id.bytes()), group)).collect();
    order.sort_unstable();
    let wanted = (members.len() as f64 * TEST_SHARE).round() as usize;
    let mut tests = 0;
    for (_, group) in order {
        let graphs_of_group = &groups[&group];
        // A group that would overshoot by much stays in training.
        let fits = tests + graphs_of_group.len() <= wanted + wanted / 4;
        let side = *decided.entry(group).or_insert(if fits { Side::Test } else { Side::Train });
        if side == Side::Test {
            tests += graphs_of_group.len();
        }
        for &member in graphs_of_group {
            sides[member].insert(split, side);
        }
    }
}

/// For each graph the first of its cluster: graphs linked by similarity, however indirectly.
fn clusters(graphs: &[Candidate]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..graphs.len()).collect();
    fn root(first: &[usize], mut index: usize) -> usize {
        while first[index] != index {
            index = first[index];
        }
        index
    }
    for a in 0..graphs.len() {
        for b in 0..a {
            if graphs[a].shingles.similarity(&graphs[b].shingles) >= NEAR {
                let (a, b) = (root(&first, a), root(&first, b));
                first[a.max(b)] = a.min(b);
            }
        }
    }
    (0..graphs.len()).map(|index| root(&first, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(opcodes: &[&str]) -> String {
        opcodes.iter().map(|opcode| format!("a = f32[] {opcode}(x)\n")).collect()
    }

    #[test]
    fn near_graphs_stay_together_and_held_out_families_apart() {
        let names = ["add", "multiply", "tanh", "sine", "dot", "exp", "log", "sqrt", "abs", "sort"];
        let ids: Vec<String> = (0..30).map(|i| format!("g{i}")).collect();
        // Three graphs each of ten kinds.
        let graphs: Vec<Candidate> = ids
            .iter()
            .enumerate()
            .map(|(i, id)| Candidate {
                id,
                super_family: if i < 15 { "gpt2" } else { "t5" },
                shingles: Shingles::of(&text(&[names[i / 3]; 9]).repeat(1 + i % 3)),
            })
            .collect();
        let sides = assign(&graphs);
        for i in 0..30 {
            let cluster = i / 3 * 3;
            assert_eq!(sides[i].get(&Split::Diverse), sides[cluster].get(&Split::Diverse));
            assert_eq!(sides[i].contains_key(&Split::Gpt2), i < 15);
            let unseen = if i < 15 { Side::Train } else { Side::Test };
            assert_eq!(sides[i][&Split::Unseen], unseen);
        }
        let tests = sides.iter().filter(|side| side[&Split::Diverse] == Side::Test).count();
        assert!((6..=12).contains(&tests), "{tests} of 30");
    }
}
