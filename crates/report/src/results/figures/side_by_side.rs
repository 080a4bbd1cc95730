//! Contestants side by side, split by split.

use std::collections::{BTreeMap, BTreeSet};

use super::{Figure, Names, Palette, means, plural, with_interval};
use crate::{
    chart::{DotPanel, DotRow, dots},
    numbers::{grouped, share},
    results::{Header, Kind, SummaryRow, csv},
};

/// The title of the figure of all algorithms.
pub const ALGORITHMS: &str = "Figure 2. Algorithms side by side";
/// The title of the figure of enhancements.
pub const ENHANCEMENTS: &str = "Figure 4. Enhancements of PPO";

/// Enhancements have names that begin with this one's.
const ENHANCED: &str = "ppo";

/// Contestants side by side, without the enhancements of the one that has its own figure.
pub fn algorithms(header: &Header, rows: &[SummaryRow], palette: &Palette) -> Option<Figure> {
    let plain = rows.iter().any(|row| row.contestant == ENHANCED);
    let shown = |row: &&SummaryRow| {
        !plain || row.contestant == ENHANCED || !row.contestant.starts_with(ENHANCED)
    };
    let rows: Vec<&SummaryRow> = rows.iter().filter(shown).collect();
    side_by_side(header, &rows, palette, "figure-2-algorithms", ALGORITHMS)
}

/// Enhancements side by side; nothing if there are not at least two to compare.
pub fn enhancements(header: &Header, rows: &[SummaryRow], palette: &Palette) -> Option<Figure> {
    let rows: Vec<&SummaryRow> =
        rows.iter().filter(|row| row.contestant.starts_with(ENHANCED)).collect();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.contestant.as_str()).collect();
    (names.len() > 1)
        .then(|| side_by_side(header, &rows, palette, "figure-4-enhancements", ENHANCEMENTS))?
}

fn side_by_side(
    header: &Header,
    rows: &[&SummaryRow],
    palette: &Palette,
    file: &str,
    title: &str,
) -> Option<Figure> {
    // Of every contestant and kind, the largest budget.
    let mut largest: BTreeMap<(&str, &str, Kind), &SummaryRow> = BTreeMap::new();
    for row in rows {
        let known = largest.entry((&row.split, &row.contestant, row.kind)).or_insert(row);
        if row.budget > known.budget {
            *known = row;
        }
    }
    let mut rows: Vec<&SummaryRow> = largest.into_values().collect();
    let ratio = |row: &SummaryRow| row.primary().mean.map_or(f64::NEG_INFINITY, |mean| mean.value);
    rows.sort_by(|a, b| a.split.cmp(&b.split).then(ratio(b).total_cmp(&ratio(a))));
    let names = Names::among(&rows);
    let mut panels: Vec<DotPanel> = Vec::new();
    let mut some_met_fewer = false;
    for part in rows.chunk_by(|a, b| a.split == b.split) {
        let (graphs, undefined) = (
            part.iter().map(|row| row.graphs).max().unwrap_or_default(),
            part.iter().map(|row| row.primary().undefined).max().unwrap_or_default(),
        );
        let mut note = format!("{} graphs", grouped(graphs as u64));
        if undefined > 0 {
            note.push_str(&format!(", {} without a ratio", grouped(undefined as u64)));
        }
        let rows = part.iter().map(|row| {
            // Who met fewer graphs than others can be compared with some reserve only.
            let fewer = (row.graphs < graphs).then(|| format!(" [{}]", grouped(row.graphs as u64)));
            some_met_fewer |= fewer.is_some();
            dot(row, names.of(row) + &fewer.unwrap_or_default(), palette)
        });
        let rows = rows.collect();
        panels.push(DotPanel { name: part[0].split.clone(), note, rows });
    }
    let description =
        format!("Ratios of {} in {} splits.", plural(rows.len(), "row"), panels.len());
    let drawing = dots(&panels, &header.axis(), &description)?;
    let mut caption = format!(
        "Marks: the mean over seeds of the geometric mean over graphs; lines: its 95% interval. \
         The dashed line is {}; to the right of it is better. Circles are rollouts, squares \
         searches, triangles baselines.",
        header.baseline.order
    );
    if names.several_budgets {
        caption.push_str(
            " The number after a name is the largest budget it was given, in pass runs for each \
             graph; for equal budgets see below.",
        );
    }
    if some_met_fewer {
        caption.push_str(" In square brackets: how many graphs, for those that met fewer.");
    }
    let csv = csv::summary(header, rows.iter().copied());
    let (file, title, part) = (file.to_owned(), title.to_owned(), String::new());
    Some(Figure { file, title, part, drawing, caption, csv })
}

fn dot(row: &SummaryRow, name: String, palette: &Palette) -> DotRow {
    let value = row.primary().mean.map(|mean| (mean.value, mean.low, mean.high));
    let mut title = format!("{}, {}", row.contestant, means(row));
    if let Some((value, low, high)) = value {
        title.push_str(&format!("\n{}", with_interval(value, low, high)));
    }
    title.push_str(&format!(
        "\n{}, never worse on {} of {}",
        plural(row.seeds, "seed"),
        share(row.never_worse),
        plural(row.graphs, "graph")
    ));
    DotRow { name, look: palette.look(row), value, title }
}
