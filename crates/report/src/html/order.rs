//! The order step by step, and what each pass of it brought.

use std::fmt::Write;

use super::comparison::change_cell;
use crate::{
    Contribution, Explanation, Timeline, chart,
    markup::{Cell, details, paragraph, table},
    numbers::{ABSENT, amount, compact, duration, grouped, signed},
};

/// Both orders in one chart, and each as a table for those who ask.
pub fn timeline(explanation: &Explanation) -> String {
    let Explanation { order, default_order, .. } = explanation;
    if order.steps.is_empty() && default_order.steps.is_empty() {
        return paragraph("", "No passes ran.");
    }
    let mut out = String::from("<ul class=\"legend\">\n");
    for (class, name, timeline) in
        [("order", "this order", order), ("default", "XLA's own", default_order)]
    {
        let _ = writeln!(
            out,
            "<li><svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">\
             <line class=\"line {class}\" x1=\"0\" y1=\"6\" x2=\"28\" y2=\"6\"/></svg> \
             {name}: {}</li>",
            in_words(timeline)
        );
    }
    out.push_str("</ul>\n");
    out.push_str(&chart::timeline(order, default_order));
    for (name, timeline) in [("this order", order), ("XLA's own", default_order)] {
        if !timeline.steps.is_empty() {
            out.push_str(&details(&format!("Steps of {name}"), &steps(timeline)));
        }
    }
    out
}

fn in_words(timeline: &Timeline) -> String {
    let (start, end) = (timeline.start.operations, timeline.end().operations);
    let passes: u64 = timeline.steps.iter().fold(0, |sum, step| sum.saturating_add(step.nanos));
    let changing = timeline.steps.iter().filter(|step| step.changed).count();
    match timeline.steps.len() {
        0 => format!("no steps, {} operations", grouped(start)),
        count => format!(
            "{} → {} operations in {} {}, {} of which changed something, {}",
            grouped(start),
            grouped(end),
            grouped(count as u64),
            if count == 1 { "step" } else { "steps" },
            grouped(changing as u64),
            duration(passes as f64)
        ),
    }
}

fn steps(timeline: &Timeline) -> String {
    let mut rows = vec![vec![
        Cell::number("0"),
        Cell::text("(start)"),
        Cell::number(grouped(timeline.start.operations)),
        Cell::number("·"),
        Cell::number(grouped(timeline.start.instructions)),
        Cell::number(compact(timeline.start.flops)),
        Cell::number(compact(timeline.start.bytes)),
        Cell::number("·"),
    ]];
    rows.extend(timeline.numbered().map(|(number, before, step)| {
        let figures = &step.figures;
        vec![
            Cell::number(number.to_string()),
            Cell::name(&step.pass),
            Cell::number(grouped(figures.operations)),
            if step.changed {
                change_cell(figures.operations, before.operations)
            } else {
                Cell::number("·")
            },
            Cell::number(grouped(figures.instructions)),
            Cell::number(compact(figures.flops)),
            Cell::number(compact(figures.bytes)),
            Cell::number(duration(step.nanos as f64)),
        ]
    }));
    let header = ["step", "pass", "operations", "change", "instructions", "FLOPs", "bytes", "time"];
    table(&header, &rows, false)
}

/// Passes that made a difference with their bars, and the others for those who ask.
pub fn contributions(explanation: &Explanation) -> String {
    let all = &explanation.contributions;
    if all.is_empty() {
        return String::new();
    }
    let made_a_difference = |row: &&Contribution| {
        row.by_step != 0
            || row.left_out.is_some_and(|more| more != 0)
            || row.left_out_final.is_some_and(|more| more != 0)
    };
    let (shown, hidden): (Vec<&Contribution>, Vec<&Contribution>) =
        all.iter().partition(made_a_difference);
    let layout = Layout::of(all);
    let mut words = String::from("Blue removes operations, orange adds some.");
    if layout.left_out {
        words.push_str(
            " A pass may pave the way for a later one: then the end is worse without it than its \
             own step shows. Two passes may do the same work: then neither is missed.",
        );
    } else {
        words.push_str(" What the end would be without a pass was not tried.");
    }
    let mut out = paragraph("", &words);
    if shown.is_empty() {
        out.push_str(&paragraph("", "No pass made a difference to the number of operations."));
    } else {
        out.push_str(&layout.table(&shown));
    }
    if !hidden.is_empty() {
        let summary = match hidden.len() {
            1 => "1 pass made no difference".to_owned(),
            count => format!("{count} passes made no difference"),
        };
        out.push_str(&details(&summary, &layout.table(&hidden)));
    }
    out
}

/// Which columns there are, and the scale that all bars share.
struct Layout {
    left_out: bool,
    left_out_final: bool,
    /// The most that a pass adds, as a negative number, and the most that it removes.
    range: (f64, f64),
}

impl Layout {
    fn of(rows: &[Contribution]) -> Layout {
        let values = rows.iter().flat_map(|row| [Some(row.by_step), row.left_out]).flatten();
        let range = values.fold((0f64, 0f64), |(low, high), value| {
            (low.min(value as f64), high.max(value as f64))
        });
        Layout {
            left_out: rows.iter().any(|row| row.left_out.is_some()),
            left_out_final: rows.iter().any(|row| row.left_out_final.is_some()),
            range,
        }
    }

    fn table(&self, rows: &[&Contribution]) -> String {
        let mut header = vec!["#", "pass", "removed in its step"];
        header.extend(self.left_out.then_some("more at the end without it"));
        header.extend(self.left_out_final.then_some("more kernels without it"));
        header.push("time");
        let cells: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| {
                let bar = |value: i64| chart::bar(value as f64, self.range);
                let mut cells = vec![
                    Cell::number(row.position.to_string()),
                    Cell::name(&row.pass),
                    Cell::bar(&amount(row.by_step as f64), &bar(row.by_step)),
                ];
                if self.left_out {
                    cells.push(match row.left_out {
                        Some(more) => Cell::bar(&signed(more), &bar(more)),
                        None => Cell::bar(ABSENT, ""),
                    });
                }
                if self.left_out_final {
                    let more = row.left_out_final;
                    let order = 0.cmp(&more.unwrap_or_default());
                    cells.push(Cell::number(more.map_or(ABSENT.to_owned(), signed)).judged(order));
                }
                cells.push(Cell::number(duration(row.seconds * 1e9)));
                cells
            })
            .collect();
        table(&header, &cells, false)
    }
}
