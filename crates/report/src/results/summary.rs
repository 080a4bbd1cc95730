//! What the outcomes come to, split by split.

use serde::{Deserialize, Serialize};

use super::{
    Header, Kind, Outcome, Outputs, StageInfo,
    groups::{Group, groups},
    stats::{FLOOR, Grid, Interval, median},
};

/// Those of a split that met nearly as many graphs as whoever met most: at least 19 of 20. Who met
/// only some cannot be compared with them.
pub fn comparable<'a>(
    rows: impl IntoIterator<Item = &'a SummaryRow, IntoIter: Clone>,
) -> impl Iterator<Item = &'a SummaryRow> {
    let rows = rows.into_iter();
    let most = rows.clone().map(|row| row.graphs).max().unwrap_or_default();
    rows.filter(move |row| 20 * row.graphs >= 19 * most)
}

/// One contestant in one split, by one kind and with one budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// The split.
    pub split: String,
    /// The contestant.
    pub contestant: String,
    /// How it came to its orders.
    pub kind: Kind,
    /// How many runs of passes it was allowed for each graph.
    pub budget: u64,
    /// Graphs, with those that have no ratio.
    pub graphs: usize,
    /// Different seeds.
    pub seeds: usize,
    /// Pairs of a graph and a seed of which there is no outcome.
    pub missing: usize,
    /// The ratios, stage by stage, the primary one first.
    pub stages: Vec<StageEstimate>,
    /// The share of outcomes (one for each graph and seed) that are no larger than the baseline leaves
    /// the graph.
    pub not_worse: f64,
    /// The share of all graphs of which that holds for every seed.
    pub never_worse: f64,
    /// The highest ratio.
    pub best: Option<Extreme>,
    /// The lowest ratio.
    pub worst: Option<Extreme>,
    /// Half of the graphs took longer, half less.
    pub median_seconds: f64,
    /// How many outcomes were run, and what came of it.
    #[serde(default)]
    pub outputs: Checked,
}

impl SummaryRow {
    /// The ratio at the primary stage.
    pub fn primary(&self) -> Estimate {
        self.stages.first().map(|stage| stage.estimate).unwrap_or_default()
    }
}

/// The ratio at a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageEstimate {
    /// The name of the stage.
    pub stage: String,
    /// Its ratio.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// Outcomes by whether their outputs were found equal. What was run in several states counts as its
/// worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// All found equal.
    pub equal: usize,
    /// Some found to be different, to be another program, or refused by the compiler. They gained
    /// nothing.
    pub wrong: usize,
    /// Some cannot be compared. They gained nothing either.
    pub not_comparable: usize,
    /// Some that nobody ran. They count as they are.
    pub unchecked: usize,
}

impl Checked {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Checked {
        let mut checked = Checked::default();
        for outcome in outcomes {
            let any = |wanted: fn(&Outputs) -> bool| outcome.verdicts().any(|(_, o)| wanted(o));
            let place = if any(|o| {
                matches!(o, Outputs::Different | Outputs::OtherSignature | Outputs::Rejected)
            }) {
                &mut checked.wrong
            } else if any(|o| matches!(o, Outputs::NotComparable(_))) {
                &mut checked.not_comparable
            } else if any(|o| *o == Outputs::Unchecked) {
                &mut checked.unchecked
            } else {
                &mut checked.equal
            };
            *place += 1;
        }
        checked
    }

    /// All of them.
    pub fn all(&self) -> usize {
        self.equal + self.wrong + self.not_comparable + self.unchecked
    }
}

/// A mean of ratios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean, if there is a ratio at all.
    pub mean: Option<Interval>,
    /// Graphs that entered it.
    pub graphs: usize,
    /// Graphs that were measured and have no ratio.
    pub undefined: usize,
    /// Ratios (one for each graph and seed) that were raised to [`FLOOR`].
    pub floored: usize,
}

/// The ratio of one graph and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extreme {
    /// As it is, not raised.
    pub ratio: f64,
    /// Whose it is.
    pub graph: String,
    /// Of which seed.
    pub seed: u64,
}

/// A row for each split, contestant, kind and budget. Sorted by split and budget, and then by the
/// ratio, the highest first.
pub fn summary(header: &Header, outcomes: &[Outcome]) -> Vec<SummaryRow> {
    let mut rows: Vec<SummaryRow> =
        groups(outcomes).iter().map(|group| row(header, group)).collect();
    let ratio = |row: &SummaryRow| row.primary().mean.map_or(f64::NEG_INFINITY, |mean| mean.value);
    // Sorting keeps the order of equal rows, which is that of the contestants' names.
    rows.sort_by(|a, b| {
        a.split.cmp(&b.split).then(a.budget.cmp(&b.budget)).then(ratio(b).total_cmp(&ratio(a)))
    });
    rows
}

fn row(header: &Header, group: &Group) -> SummaryRow {
    let seeds = group.seeds().len();
    let not_worse = group.outcomes().filter(|outcome| header.is_not_worse(outcome)).count();
    let outcomes = group.outcomes().count().max(1);
    let never_worse = group
        .graphs
        .values()
        .filter(|seeds| seeds.values().all(|outcome| header.is_not_worse(outcome)))
        .count();
    let extremes = || {
        group.outcomes().filter_map(|outcome| {
            let Outcome { graph, seed, .. } = outcome;
            Some(Extreme { ratio: header.ratio(outcome)?, graph: graph.clone(), seed: *seed })
        })
    };
    let stage = |info: &StageInfo| StageEstimate {
        stage: info.name.clone(),
        estimate: estimate(group, info),
    };
    SummaryRow {
        split: group.split.to_owned(),
        contestant: group.contestant.to_owned(),
        kind: group.kind,
        budget: group.budget,
        graphs: group.graphs.len(),
        seeds,
        missing: group.graphs.len() * seeds - group.outcomes().count(),
        stages: header.stages.iter().map(stage).collect(),
        not_worse: not_worse as f64 / outcomes as f64,
        never_worse: never_worse as f64 / group.graphs.len().max(1) as f64,
        best: extremes().max_by(|a, b| a.ratio.total_cmp(&b.ratio)),
        worst: extremes().min_by(|a, b| a.ratio.total_cmp(&b.ratio)),
        median_seconds: median(group.outcomes().map(|outcome| outcome.seconds)).unwrap_or_default(),
        outputs: Checked::of(group.outcomes()),
    }
}

/// The mean at a stage, over the graphs for which it was counted; of those, some may have no ratio.
fn estimate(group: &Group, info: &StageInfo) -> Estimate {
    let seeds = group.seeds();
    let measure = |outcome: &Outcome| outcome.stage(&info.name).map(|stage| info.ratio(stage));
    let measured = group
        .graphs
        .values()
        .filter(|outcomes| outcomes.values().any(|outcome| measure(outcome).is_some()));
    let rows: Vec<Vec<Option<f64>>> = measured
        .map(|outcomes| seeds.iter().map(|seed| measure(outcomes.get(seed)?).flatten()).collect())
        .collect();
    let measured = rows.len();
    let floored = rows.iter().flatten().flatten().filter(|ratio| **ratio < FLOOR).count();
    let grid = Grid::of(rows);
    let graphs = grid.graphs();
    Estimate { mean: grid.interval(), graphs, undefined: measured - graphs, floored }
}
