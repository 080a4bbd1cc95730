//! What the numbers of outcomes are.

use serde::{Deserialize, Serialize};

use super::{Outcome, Stage};
use crate::{Baseline, numbers::capitalised};

/// What the numbers of some outcomes are: what they are compared with, and at which stages of a
/// program they were taken. Nothing here is known of a compiler that is not in this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What outcomes are compared with.
    #[serde(default)]
    pub baseline: Baseline,
    /// The stages. The first is the primary one: figures show its ratio, contestants are sorted by
    /// it, and whether an outcome is worse than the baseline is read off it.
    pub stages: Vec<StageInfo>,
}

/// A stage of a program at which something is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageInfo {
    /// What outcomes call it, and columns of numbers to download.
    pub name: String,
    /// The heading of its column: a word or two.
    pub label: String,
    /// The stage as a reader is told what a table holds: `at the end of the trajectory`.
    pub title: String,
    /// What is counted there: `instructions`, or `bytes of text size`.
    pub things: String,
    /// How a result is set beside the baseline.
    pub ratio: Ratio,
    /// Whether tables show the interval of its mean, for which there is not always room.
    #[serde(default = "yes")]
    pub with_interval: bool,
    /// What else a reader must know of it, to be said after the rest in the same sentence: `after
    /// the whole pipeline`. May be empty.
    #[serde(default)]
    pub note: String,
}

fn yes() -> bool {
    true
}

/// How a result is set beside the baseline. Above 1 is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ratio {
    /// What the order removed, by what the baseline removes.
    #[default]
    Removed,
    /// What the baseline leaves, by what the order leaves.
    Left,
}

impl StageInfo {
    /// How a result compares. There is no ratio where the baseline removes nothing, or something is
    /// left nothing of.
    pub fn ratio(&self, stage: &Stage) -> Option<f64> {
        let Stage { initial, default, result, .. } = *stage;
        match self.ratio {
            Ratio::Removed => {
                let initial = initial?;
                (initial > default).then(|| (initial - result) / (initial - default))
            }
            Ratio::Left => (default > 0.0 && result > 0.0).then(|| default / result),
        }
    }
}

impl Header {
    /// The stage by which outcomes are judged; one that no outcome has if there are no stages.
    pub fn primary(&self) -> StageInfo {
        self.stages.first().cloned().unwrap_or_default()
    }

    /// The others.
    pub fn further(&self) -> &[StageInfo] {
        self.stages.get(1..).unwrap_or_default()
    }

    /// What an outcome came to at the primary stage.
    pub(crate) fn of<'a>(&self, outcome: &'a Outcome) -> Option<&'a Stage> {
        outcome.stage(&self.stages.first()?.name)
    }

    /// Its ratio there.
    pub(crate) fn ratio(&self, outcome: &Outcome) -> Option<f64> {
        self.stages.first()?.ratio(outcome.stage(&self.stages.first()?.name)?)
    }

    /// Whether an outcome leaves no more than the baseline at the primary stage.
    pub(crate) fn is_not_worse(&self, outcome: &Outcome) -> bool {
        self.of(outcome).is_some_and(|stage| stage.result <= stage.default)
    }

    /// What axes of ratios are called.
    pub(crate) fn axis(&self) -> String {
        let StageInfo { things, ratio, .. } = self.primary();
        let own = &self.baseline.order;
        match ratio {
            Ratio::Removed => format!("ratio (removed {things}, {own} = 1)"),
            Ratio::Left => format!("ratio ({things} left, {own} = 1)"),
        }
    }

    /// Why a graph has no ratio: the beginning of a sentence that a place ends.
    pub(crate) fn why_no_ratio(&self) -> String {
        let own = &self.baseline.order;
        match self.primary().ratio {
            Ratio::Removed => format!("{own} removes nothing"),
            Ratio::Left => format!("{own} or the result leaves nothing"),
        }
    }

    /// What is said of the further stages, a sentence for each that needs one. `short` leaves out
    /// what stands in the headings.
    pub(crate) fn notes(&self, short: bool) -> Vec<String> {
        let own = &self.baseline;
        let note = |info: &StageInfo| {
            let StageInfo { label, things, note, .. } = info;
            let words = match (info.ratio, short) {
                (Ratio::Removed, _) => note.clone(),
                (Ratio::Left, true) => format!("{} by the result's", own.label),
                (Ratio::Left, false) => {
                    let things = if things == label { "those" } else { things.as_str() };
                    let note = if note.is_empty() { String::new() } else { format!(", {note}") };
                    format!("{things} by {} divided by those of the result{note}", own.order)
                }
            };
            (!words.is_empty()).then(|| format!("{}: {words}.", capitalised(label)))
        };
        self.further().iter().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_what_was_removed_beside_what_the_default_removes() {
        let removed = StageInfo::default();
        let check = |initial, default, result, expected| {
            assert_eq!(removed.ratio(&Stage::new("x", initial, default, result)), expected);
        };
        check(100.0, 80.0, 80.0, Some(1.0));
        check(100.0, 80.0, 70.0, Some(1.5));
        check(100.0, 80.0, 100.0, Some(0.0));
        check(100.0, 80.0, 120.0, Some(-1.0));
        check(100.0, 100.0, 90.0, None);
        check(100.0, 101.0, 90.0, None);
        let unknown = Stage { initial: None, ..Stage::new("x", 0.0, 80.0, 70.0) };
        assert_eq!(removed.ratio(&unknown), None);
    }

    #[test]
    fn or_what_the_default_leaves_beside_what_was_left() {
        let left = StageInfo { ratio: Ratio::Left, ..StageInfo::default() };
        let check = |default, result, expected| {
            assert_eq!(left.ratio(&Stage::left("x", default, result)), expected);
        };
        check(100.0, 80.0, Some(1.25));
        check(100.0, 200.0, Some(0.5));
        check(0.0, 80.0, None);
        check(80.0, 0.0, None);
    }
}
