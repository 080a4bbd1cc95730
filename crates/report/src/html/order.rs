//! The order step by step, and what each pass of it brought.

use std::fmt::Write;

use super::comparison::change_cell;
use crate::{
    Contribution, Explanation, Metric, Timeline, chart,
    explanation::figure,
    markup::{Cell, details, escape, paragraph, table},
    metric::known,
    numbers::{ABSENT, amount, capitalised, duration, grouped, signed_amount},
};

/// What the chart of both orders is called.
pub fn heading(explanation: &Explanation) -> String {
    format!("{}, step by step", capitalised(&primary(explanation).things()))
}

/// The primary metric, which both orders have in common.
fn primary(explanation: &Explanation) -> Metric {
    let Explanation { order, default_order, .. } = explanation;
    if order.metrics.is_empty() { default_order.primary() } else { order.primary() }
}

/// Both orders in one chart, and each as a table for those who ask.
pub fn timeline(explanation: &Explanation) -> String {
    let Explanation { order, default_order, baseline, .. } = explanation;
    let own = baseline.label.as_str();
    if order.steps.is_empty() && default_order.steps.is_empty() {
        return paragraph("", "No passes ran.");
    }
    let mut out = String::from("<ul class=\"legend\">\n");
    for (class, name, timeline) in [("order", "this order", order), ("default", own, default_order)]
    {
        let _ = writeln!(
            out,
            "<li><svg viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">\
             <line class=\"line {class}\" x1=\"0\" y1=\"6\" x2=\"28\" y2=\"6\"/></svg> \
             {}: {}</li>",
            escape(name),
            escape(&in_words(timeline))
        );
    }
    out.push_str("</ul>\n");
    out.push_str(&chart::timeline(order, default_order, own));
    for (name, timeline) in [("this order", order), (own, default_order)] {
        if !timeline.steps.is_empty() {
            out.push_str(&details(&format!("Steps of {name}"), &steps(timeline)));
        }
    }
    out
}

fn in_words(timeline: &Timeline) -> String {
    let things = timeline.primary().things();
    let (start, end) = (known(timeline.start()), known(timeline.end()));
    let passes: u64 = timeline.steps.iter().fold(0, |sum, step| sum.saturating_add(step.nanos));
    let changing = timeline.steps.iter().filter(|step| step.changed).count();
    match timeline.steps.len() {
        0 if timeline.metrics.is_empty() => "no steps".to_owned(),
        0 => format!("no steps, {start} {things}"),
        count => format!(
            "{start} → {end} {things} in {} {}, {} of which changed something, {}",
            grouped(count as u64),
            if count == 1 { "step" } else { "steps" },
            grouped(changing as u64),
            duration(passes as f64)
        ),
    }
}

fn steps(timeline: &Timeline) -> String {
    let line = |number: &str, pass: Cell, change: Cell, figures: &[Option<f64>], time: String| {
        let mut cells = vec![Cell::number(number), pass];
        let values = timeline.metrics.iter().enumerate();
        cells.extend(values.map(|(index, metric)| match (index, figure(figures, index)) {
            (0, value) => Cell::number(known(value)),
            (_, value) => Cell::number(metric.in_column(value)),
        }));
        // The change is the primary metric's, beside which it stands.
        cells.insert(cells.len().min(3), change);
        cells.push(Cell::number(time));
        cells
    };
    let dot = || Cell::number("·");
    let mut rows = vec![line("0", Cell::text("(start)"), dot(), &timeline.start, "·".to_owned())];
    rows.extend(timeline.numbered().map(|(number, before, step)| {
        let change = if step.changed { change_cell(step.primary(), before) } else { dot() };
        let (number, time) = (number.to_string(), duration(step.nanos as f64));
        line(&number, Cell::name(&step.pass), change, &step.figures, time)
    }));
    let mut header = vec!["step", "pass"];
    header.extend(timeline.metrics.iter().map(|metric| metric.label.as_str()));
    header.insert(header.len().min(3), "change");
    header.push("time");
    table(&header, &rows, false)
}

/// Passes that made a difference with their bars, and the others for those who ask.
pub fn contributions(explanation: &Explanation) -> String {
    let all = &explanation.contributions;
    if all.is_empty() {
        return String::new();
    }
    let made_a_difference = |row: &&Contribution| {
        row.by_step != 0.0
            || row.left_out.is_some_and(|more| more != 0.0)
            || row.left_out_final.is_some_and(|more| more != 0.0)
    };
    let (shown, hidden): (Vec<&Contribution>, Vec<&Contribution>) =
        all.iter().partition(made_a_difference);
    let columns = Columns::of(explanation);
    let things = primary(explanation).things();
    let mut words = format!("Blue removes {things}, orange adds some.");
    if columns.left_out {
        words.push_str(
            " A pass may pave the way for a later one: then the end is worse without it than its \
             own step shows. Two passes may do the same work: then neither is missed.",
        );
    } else {
        words.push_str(" What the end would be without a pass was not tried.");
    }
    let mut out = paragraph("", &words);
    if shown.is_empty() {
        let words = format!("No pass made a difference to the number of {things}.");
        out.push_str(&paragraph("", &words));
    } else {
        out.push_str(&columns.table(&shown));
    }
    if !hidden.is_empty() {
        let summary = match hidden.len() {
            1 => "1 pass made no difference".to_owned(),
            count => format!("{count} passes made no difference"),
        };
        out.push_str(&details(&summary, &columns.table(&hidden)));
    }
    out
}

/// Which columns there are, and the scale that all bars share.
struct Columns {
    left_out: bool,
    /// What is counted at the very end, if that was tried.
    left_out_final: Option<String>,
    /// The most that a pass adds, as a negative number, and the most that it removes.
    range: (f64, f64),
}

impl Columns {
    fn of(explanation: &Explanation) -> Columns {
        let rows = &explanation.contributions;
        let values = rows.iter().flat_map(|row| [Some(row.by_step), row.left_out]).flatten();
        let values = values.filter(|value| value.is_finite());
        let range =
            values.fold((0f64, 0f64), |(low, high), value| (low.min(value), high.max(value)));
        let tried = rows.iter().any(|row| row.left_out_final.is_some());
        Columns {
            left_out: rows.iter().any(|row| row.left_out.is_some()),
            left_out_final: tried.then(|| format!("more {} without it", explanation.final_figure)),
            range,
        }
    }

    fn table(&self, rows: &[&Contribution]) -> String {
        let mut header = vec!["#", "pass", "removed in its step"];
        header.extend(self.left_out.then_some("more at the end without it"));
        header.extend(self.left_out_final.as_deref());
        header.push("time");
        let cells: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| {
                let bar = |value: f64| chart::bar(value, self.range);
                let mut cells = vec![
                    Cell::number(row.position.to_string()),
                    Cell::name(&row.pass),
                    Cell::bar(&amount(row.by_step), &bar(row.by_step)),
                ];
                if self.left_out {
                    cells.push(match row.left_out {
                        Some(more) => Cell::bar(&signed_amount(more), &bar(more)),
                        None => Cell::bar(ABSENT, ""),
                    });
                }
                if self.left_out_final.is_some() {
                    let more = row.left_out_final;
                    let order = 0f64.total_cmp(&more.unwrap_or_default());
                    let words = more.map_or(ABSENT.to_owned(), signed_amount);
                    cells.push(Cell::number(words).judged(order));
                }
                cells.push(Cell::number(duration(row.seconds * 1e9)));
                cells
            })
            .collect();
        table(&header, &cells, false)
    }
}
