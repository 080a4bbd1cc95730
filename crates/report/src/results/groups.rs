//! Outcomes that are to be compared with each other.

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_records::{Kind, Outcome};

/// What stands for the split of a graph that is in none.
const NO_SPLIT: &str = "(no split)";

/// All outcomes of a contestant in a split, by one kind and with one budget.
#[derive(Debug)]
pub struct Group<'a> {
    pub split: &'a str,
    pub contestant: &'a str,
    pub kind: Kind,
    pub budget: u64,
    /// By graph and seed. Of several outcomes of the same, the last counts.
    pub graphs: BTreeMap<&'a str, BTreeMap<u64, &'a Outcome>>,
}

impl<'a> Group<'a> {
    /// The seeds of all graphs.
    pub fn seeds(&self) -> BTreeSet<u64> {
        self.outcomes().map(|outcome| outcome.seed).collect()
    }

    /// All outcomes, graph by graph.
    pub fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> {
        self.graphs.values().flat_map(|seeds| seeds.values().copied())
    }
}

/// By split, contestant, kind and budget.
pub fn groups(outcomes: &[Outcome]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(&str, &str, Kind, u64), Group> = BTreeMap::new();
    for outcome in outcomes {
        let none = outcome.splits.is_empty().then_some(NO_SPLIT);
        for split in outcome.splits.iter().map(String::as_str).chain(none) {
            let Outcome { contestant, kind, budget, .. } = outcome;
            let (kind, budget) = (*kind, *budget);
            let group = groups.entry((split, contestant, kind, budget)).or_insert_with(|| Group {
                split,
                contestant,
                kind,
                budget,
                graphs: BTreeMap::new(),
            });
            group.graphs.entry(&outcome.graph).or_default().insert(outcome.seed, outcome);
        }
    }
    groups.into_values().collect()
}

/// How many outcomes repeat an earlier one and take its place.
pub fn repeated(outcomes: &[Outcome]) -> usize {
    let mut seen = BTreeSet::new();
    let repeats = outcomes.iter().filter(|outcome| {
        let Outcome { graph, contestant, kind, budget, seed, .. } = outcome;
        !seen.insert((graph, contestant, kind, budget, seed))
    });
    repeats.count()
}
