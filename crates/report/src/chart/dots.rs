//! Values with intervals, one to a row, in panels that share an axis.

use std::fmt::Write;

use xla_gym_common::shortened;

use super::{LARGEST_LETTER, WIDTH, drawing::Drawing, label_at, room_for, series::Look};
use crate::{axis::Axis, markup::escape, numbers::ratio};

const ROW: f64 = 28.0;

/// Letters of a row's name; the rest is shown to those who point at it.
const LONGEST_NAME: usize = 24;

/// Rows under a heading.
#[derive(Debug, Default)]
pub struct DotPanel {
    /// The heading.
    pub name: String,
    /// A few words at its right.
    pub note: String,
    /// From top to bottom.
    pub rows: Vec<DotRow>,
}

/// A value with its interval.
#[derive(Debug, Default)]
pub struct DotRow {
    /// What it is the value of.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// The value and the ends of its interval, if there is one.
    pub value: Option<(f64, f64, f64)>,
    /// What is shown to those who point at it.
    pub title: String,
}

/// All panels in one chart; nothing if there is no row. The line at 1 stands for the baseline.
pub fn dots(panels: &[DotPanel], axis_name: &str, description: &str) -> Option<Drawing> {
    let rows = || panels.iter().flat_map(|panel| &panel.rows);
    rows().next()?;
    let values =
        rows().filter_map(|row| row.value).flat_map(|(value, low, high)| [value, low, high]);
    let axis = Axis::of_ratios(values);
    let widest = rows().map(|row| room_for(&shortened(&row.name, LONGEST_NAME)));
    let (left, right) = (16.0 + widest.fold(0.0, f64::max), WIDTH - 12.0 - room_for("0.000"));
    let across = axis.between(left, right);

    let mut out = String::new();
    let mut y = 0.0;
    for panel in panels.iter().filter(|panel| !panel.rows.is_empty()) {
        label_at(&mut out, 4.0, y + 16.0, "start", "panel middle", &panel.name);
        label_at(&mut out, WIDTH - 4.0, y + 16.0, "end", "tick middle", &panel.note);
        let top = y + 34.0;
        let bottom = top + ROW * panel.rows.len() as f64;
        columns(&mut out, &across, top, bottom);
        for (index, row) in panel.rows.iter().enumerate() {
            draw_row(&mut out, row, &across, top + ROW * (index as f64 + 0.5));
        }
        y = bottom + LARGEST_LETTER + 34.0;
    }
    let middle = (left + right) / 2.0;
    label_at(&mut out, middle, y - 20.0, "middle", "tick below", axis_name);
    let height = y + LARGEST_LETTER - 10.0;
    Some(Drawing { height, description: description.to_owned(), content: out })
}

/// Lines from top to bottom with numbers below them, and the line at 1.
fn columns(out: &mut String, across: &Axis, top: f64, bottom: f64) {
    let (marks, labels) = (across.marks(), across.labels());
    let widest = labels.iter().map(|label| room_for(label)).fold(0.0, f64::max) + 10.0;
    let apart = (across.at(marks[1]) - across.at(marks[0])).max(1.0);
    let every = (widest / apart).ceil().max(1.0) as usize;
    // Where not every mark has room for its number, 1 keeps its own.
    let one = marks.iter().position(|mark| (mark - 1.0).abs() < 1e-9).unwrap_or(0);
    for (index, (value, label)) in marks.iter().zip(&labels).enumerate() {
        let x = across.at(*value);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
        );
        if index % every == one % every {
            label_at(out, x, bottom + 6.0, "middle", "tick below", label);
        }
    }
    let x = across.at(1.0);
    let _ = writeln!(
        out,
        "<line class=\"one\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>",
        top - 4.0
    );
}

fn draw_row(out: &mut String, row: &DotRow, across: &Axis, y: f64) {
    let name = shortened(&row.name, LONGEST_NAME);
    let left = across.at(across.low()) - 8.0;
    let _ = writeln!(
        out,
        "<text class=\"label middle\" x=\"{left:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}\
         <title>{}</title></text>",
        escape(&name),
        escape(&row.name)
    );
    let Some((value, low, high)) = row.value else {
        label_at(out, across.at(1.0) + 8.0, y, "start", "tick middle", "no ratio");
        return;
    };
    let (from, to) = (across.at(low), across.at(high));
    let class = row.look.class();
    let _ = writeln!(
        out,
        "<line class=\"interval {class}\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
    );
    row.look.mark(out, (across.at(value), y), 6.0, &row.title);
    label_at(out, WIDTH - 4.0, y, "end", "label middle", &ratio(value));
}
