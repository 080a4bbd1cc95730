//! The figures of the page.

mod by_graph;
mod over;
mod side_by_side;

pub use by_graph::by_graph;
pub use over::{budgets, learning};
pub use side_by_side::{ALGORITHMS, ENHANCEMENTS, algorithms, enhancements};

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_common::shortened;

use super::{Kind, csv, summary::SummaryRow};
use crate::{
    chart::{Drawing, Look},
    markup::escape,
    numbers::{grouped, ratio},
};

/// The contestant that stands for the baseline.
const DEFAULT: &str = "default";

/// A figure, its caption and its numbers.
#[derive(Debug)]
pub struct Figure {
    /// The name of its files, without an ending.
    pub file: String,
    /// For the file, and for the page where it is the only one of its section.
    pub title: String,
    /// What sets it apart from the others of its section.
    pub part: String,
    pub drawing: Drawing,
    pub caption: String,
    pub csv: String,
}

impl Figure {
    /// As a part of the page.
    pub fn markup(&self) -> String {
        let heading = match self.part.as_str() {
            "" => String::new(),
            part => format!("<h3>{}</h3>\n", escape(part)),
        };
        format!(
            "<figure>\n{heading}{}<figcaption>{} {}.</figcaption>\n</figure>\n",
            self.drawing.inline(),
            escape(&self.caption),
            csv::link(&format!("{}.csv", self.file), &self.csv)
        )
    }
}

/// Which colour belongs to which contestant, on the whole page.
#[derive(Debug, Default)]
pub struct Palette {
    series: BTreeMap<String, usize>,
}

impl Palette {
    /// By the alphabet, so that it does not change with the results.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Palette {
        let names: BTreeSet<&str> = names.into_iter().collect();
        Palette { series: names.into_iter().map(str::to_owned).zip(0..).collect() }
    }

    /// A contestant has its colour, and a kind its shape.
    fn look(&self, row: &SummaryRow) -> Look {
        let shape = match row.kind {
            Kind::Rollout => 0,
            Kind::Search => 1,
            Kind::Baseline => 2,
        };
        Look { shape, ..self.algorithm(&row.contestant) }
    }

    fn algorithm(&self, name: &str) -> Look {
        let colour = self.series.get(name).copied().unwrap_or_default();
        Look { colour, shape: colour }
    }
}

/// Names of rows among others: kind and budget are part of the name where they differ.
struct Names {
    several_kinds: BTreeSet<String>,
    several_budgets: bool,
}

impl Names {
    fn among(rows: &[&SummaryRow]) -> Names {
        let mut kinds: BTreeMap<&str, BTreeSet<Kind>> = BTreeMap::new();
        for row in rows {
            kinds.entry(&row.contestant).or_default().insert(row.kind);
        }
        let several = kinds.into_iter().filter(|(_, kinds)| kinds.len() > 1);
        Names {
            several_kinds: several.map(|(name, _)| name.to_owned()).collect(),
            several_budgets: rows.windows(2).any(|pair| pair[0].budget != pair[1].budget),
        }
    }

    fn of(&self, row: &SummaryRow) -> String {
        let needed = self.several_budgets && row.budget > 0;
        let budget = if needed { grouped(row.budget) } else { String::new() };
        self.with(row, &budget)
    }

    /// Without its budget, for figures in which that is an axis.
    fn without_budget(&self, row: &SummaryRow) -> String {
        self.with(row, "")
    }

    fn with(&self, row: &SummaryRow, budget: &str) -> String {
        let kind = if self.several_kinds.contains(&row.contestant) {
            row.kind.to_string()
        } else {
            String::new()
        };
        let rest: String = [kind.as_str(), budget]
            .iter()
            .filter(|s| !s.is_empty())
            .map(|s| format!(", {s}"))
            .collect();
        format!("{}{rest}", shortened(&row.contestant, 24 - rest.chars().count().min(12)))
    }
}

/// `1.034 (1.012–1.057)`.
pub fn with_interval(value: f64, low: f64, high: f64) -> String {
    format!("{} ({}–{})", ratio(value), ratio(low), ratio(high))
}

/// `search, 1,024 pass runs`.
pub fn means(row: &SummaryRow) -> String {
    let runs = if row.budget == 1 { "pass run" } else { "pass runs" };
    format!("{}, {} {runs}", row.kind, grouped(row.budget))
}

/// `1 graph`, `2 graphs`.
pub fn plural(count: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// A split's name as part of a file's.
fn file_name(split: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let name: String =
        split.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}
