//! Ratios over budgets, and over the steps of training.

use std::collections::{BTreeMap, BTreeSet};

use xla_gym_common::shortened;

use super::{DEFAULT, Figure, Names, Palette, file_name, means, plural, with_interval};
use crate::{
    chart::{Line, LineChart, LinePoint, Spread},
    numbers::grouped,
    results::{
        Header, Kind, Progress, SummaryRow, csv,
        curves::{Curve, WINDOWS, curves},
    },
};

/// Ratios of a split over budgets; nothing if there are not two budgets to compare.
pub fn budgets(
    header: &Header,
    rows: &[SummaryRow],
    split: &str,
    palette: &Palette,
) -> Option<Figure> {
    // The baseline is the line at 1.
    let shown = |row: &&SummaryRow| row.split == split && row.contestant != DEFAULT;
    let rows: Vec<&SummaryRow> = rows.iter().filter(shown).collect();
    let budgets: BTreeSet<u64> = rows.iter().map(|row| row.budget).filter(|b| *b > 0).collect();
    if budgets.len() < 2 {
        return None;
    }
    let names = Names::among(&rows);
    let mut lines: BTreeMap<(&str, Kind), Line> = BTreeMap::new();
    for row in &rows {
        let Some(mean) = row.primary().mean else { continue };
        let line = lines.entry((&row.contestant, row.kind)).or_insert_with(|| Line {
            name: names.without_budget(row),
            look: palette.look(row),
            points: Vec::new(),
        });
        let interval = with_interval(mean.value, mean.low, mean.high);
        line.points.push(LinePoint {
            x: row.budget as f64,
            y: mean.value,
            low: mean.low,
            high: mean.high,
            title: format!("{}, {}\n{interval}", row.contestant, means(row)),
        });
    }
    let without_budget = rows.iter().any(|row| row.budget == 0);
    let lines: Vec<Line> = lines.into_values().collect();
    let drawing = LineChart {
        lines: &lines,
        across: "budget for each graph, in pass runs (logarithmic)",
        up: &header.axis(),
        logarithmic: true,
        spread: Spread::Bars,
        description: &format!("Ratios over budgets in {split}."),
    }
    .draw()?;
    let mut caption = format!(
        "Marks: the mean over seeds of the geometric mean over graphs; bars: its 95% interval. \
         Contestants of one budget stand a little apart, so that their bars can be told. Circles \
         are rollouts, squares searches, triangles baselines; the dashed line is {}.",
        header.baseline.order
    );
    if without_budget {
        caption.push_str(" What needs no budget is a dashed line in its colour.");
    }
    let csv = csv::summary(header, rows.iter().copied());
    let (file, title) =
        (format!("budgets-{}", file_name(split)), format!("Equal budgets: {split}"));
    Some(Figure { file, title, part: split.to_owned(), drawing, caption, csv })
}

/// What training runs came to: on validation graphs, and in their own episodes.
pub fn learning(header: &Header, progress: &[Progress], palette: &Palette) -> Vec<Figure> {
    let validation = curves(progress, |line| line.validation);
    let episodes = curves(progress, |line| Some(line.ratio));
    let parts = [
        ("learning-validation", "On validation graphs", validation),
        ("learning-episodes", "In episodes of training", episodes),
    ];
    let figure = |(file, part, curves): (&str, &str, Vec<Curve>)| {
        let lines: Vec<Line> = curves.iter().map(|curve| curve_line(curve, palette)).collect();
        let drawing = LineChart {
            lines: &lines,
            across: "steps of the environment",
            up: &header.axis(),
            logarithmic: false,
            spread: Spread::Band,
            description: &format!("Learning curves. {part}."),
        }
        .draw()?;
        let mut caption = format!(
            "Lines: the mean over runs; areas: from the lowest run to the highest. Values within \
             one of {WINDOWS} windows of steps are averaged."
        );
        if curves.iter().any(|curve| curve.ragged) {
            caption.push_str(
                " Some runs ended before others; where they have, the mean is of the rest.",
            );
        }
        let csv = csv::curves(&curves);
        let (file, title) = (file.to_owned(), format!("Learning curves. {part}"));
        Some(Figure { file, title, part: part.to_owned(), drawing, caption, csv })
    };
    parts.into_iter().filter_map(figure).collect()
}

fn curve_line(curve: &Curve, palette: &Palette) -> Line {
    let points = curve.points.iter().map(|point| LinePoint {
        x: point.step,
        y: point.mean,
        low: point.low,
        high: point.high,
        title: format!(
            "{}, step {}\n{}, {}",
            curve.algorithm,
            grouped(point.step as u64),
            with_interval(point.mean, point.low, point.high),
            plural(point.runs, "run")
        ),
    });
    let name = shortened(&curve.algorithm, 24);
    Line {
        name: format!("{name} ({})", plural(curve.runs, "run")),
        look: palette.algorithm(&curve.algorithm),
        points: points.collect(),
    }
}
