//! The primary metric over steps: the order, and the baseline beside it.

use std::fmt::Write;

use super::{Frame, LARGEST_LETTER, WIDTH, label_at, room_for, svg};
use crate::{
    Metric, Timeline,
    axis::Axis,
    explanation::figure,
    markup::escape,
    metric::{change, known},
    numbers::{amount, capitalised, duration, grouped},
};

const HEIGHT: f64 = 380.0;

/// Both timelines in one chart; `own` is what the baseline is called. Steps after which the metric is
/// not known have no point.
pub fn timeline(order: &Timeline, default: &Timeline, own: &str) -> String {
    let lines = [("order", "this order", order), ("default", own, default)];
    let metric = if order.metrics.is_empty() { default.primary() } else { order.primary() };
    let values = || lines.iter().flat_map(|(_, _, line)| places(line)).map(|(_, value)| value);
    let whole = values().all(|value| value.fract() == 0.0);
    let axis = Axis::around(values(), whole);
    let labels: Vec<String> = axis.marks().into_iter().map(amount).collect();
    let ends = lines.map(|(_, _, line)| known(line.end()));
    let widest = |labels: &[String]| labels.iter().map(|label| room_for(label)).fold(0.0, f64::max);
    let frame = Frame {
        left: 16.0 + widest(&labels),
        right: WIDTH - 16.0 - widest(&ends),
        top: 18.0,
        bottom: HEIGHT - 66.0,
    };
    let rows = axis.between(frame.bottom, frame.top);
    let columns = Columns::new([order.steps.len(), default.steps.len()], &frame);

    let mut out = String::new();
    frame.rows(&mut out, &rows, &labels);
    frame.floor(&mut out);
    for step in columns.marks() {
        frame.column(&mut out, columns.at(step), &grouped(step as u64));
    }
    let middle = (frame.left + frame.right) / 2.0;
    label_at(&mut out, middle, frame.bottom + 36.0, "middle", "below", "step");

    // The order is drawn last, over the baseline.
    for (class, name, line) in lines.into_iter().rev() {
        draw_line(&mut out, class, line, &columns, &rows, &frame);
        draw_points(&mut out, class, name, line, &columns, &rows);
    }
    draw_ends(&mut out, [order, default], &ends, &rows, &frame);

    let description = format!(
        "{} over steps. This order ends at {}, {own} at {}.",
        capitalised(&metric.things()),
        ends[0],
        ends[1]
    );
    svg(HEIGHT, &description, &out, &caption(&metric, &axis, &columns))
}

/// The steps after which the metric is known, and its values. The start is step 0.
fn places(line: &Timeline) -> impl Iterator<Item = (usize, f64)> {
    let steps = line.numbered().map(|(number, _, step)| (number, step.primary()));
    let all = std::iter::once((0, line.start())).chain(steps);
    all.filter_map(|(step, value)| Some((step, value?)))
}

fn caption(metric: &Metric, axis: &Axis, columns: &Columns) -> String {
    let things = capitalised(&metric.things());
    let mut words = format!("{things} after each step; hollow: the step changed nothing. ");
    words.push_str(&if axis.low() == 0.0 {
        "The vertical axis begins at 0.".to_owned()
    } else {
        format!("The vertical axis begins at {}, not at 0.", amount(axis.low()))
    });
    if columns.squeezed {
        words
            .push_str(" As one order is far longer, later steps lie closer (a square-root scale).");
    }
    words.push_str(" Point at a step for its pass.");
    words
}

fn draw_line(
    out: &mut String,
    class: &str,
    line: &Timeline,
    columns: &Columns,
    rows: &Axis,
    frame: &Frame,
) {
    let places: Vec<String> = places(line)
        .map(|(step, value)| format!("{:.1},{:.1}", columns.at(step), rows.at(value)))
        .collect();
    let _ = writeln!(out, "<polyline class=\"line {class}\" points=\"{}\"/>", places.join(" "));
    // A thin line leads from the end to its number at the right.
    let Some(end) = line.end() else { return };
    let (from, y) = (columns.at(line.steps.len()), rows.at(end));
    let to = frame.right;
    let _ = writeln!(
        out,
        "<line class=\"level {class}\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
    );
}

fn draw_points(
    out: &mut String,
    class: &str,
    name: &str,
    line: &Timeline,
    columns: &Columns,
    rows: &Axis,
) {
    // Many points must not become one thick line.
    let radius = if line.steps.len() > 80 { 2.4 } else { 4.0 };
    let (things, name) = (line.primary().things(), escape(name));
    if let Some(start) = line.start() {
        let (x, y) = (columns.at(0), rows.at(start));
        let _ = writeln!(
            out,
            "<circle class=\"outset {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
             <title>{name}, start: {} {}</title></circle>",
            amount(start),
            escape(&things)
        );
    }
    for (number, before, step) in line.numbered() {
        let Some(value) = step.primary() else { continue };
        let idle = if step.changed { "" } else { " idle" };
        let further: String = counted(line)
            .map(|(index, label)| format!(", {} {label}", known(figure(&step.figures, index))))
            .collect();
        let _ = writeln!(
            out,
            "<circle class=\"point {class}{idle}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\">\
             <title>{name}, step {}: {}\n{} {} ({}){}, {}</title></circle>",
            columns.at(number),
            rows.at(value),
            grouped(number as u64),
            escape(&step.pass),
            amount(value),
            escape(&things),
            change(Some(value), before),
            escape(&further),
            duration(step.nanos as f64)
        );
    }
}

/// What else is counted, beside the primary metric, and how it is called. What has a unit is long,
/// and stands in the table.
fn counted(line: &Timeline) -> impl Iterator<Item = (usize, &str)> {
    let further = line.metrics.iter().enumerate().skip(1);
    further.filter(|(_, metric)| metric.is_count()).map(|(index, m)| (index, m.label.as_str()))
}

/// The last numbers at the right edge, pushed apart where they would overlap.
fn draw_ends(
    out: &mut String,
    lines: [&Timeline; 2],
    labels: &[String; 2],
    rows: &Axis,
    frame: &Frame,
) {
    let x = frame.right + 6.0;
    let ends = lines.map(|line| line.end().map(|end| rows.at(end)));
    let [Some(mut order), Some(mut default)] = ends else {
        for ((y, label), class) in ends.into_iter().zip(labels).zip(["order", "default"]) {
            if let Some(y) = y {
                label_at(out, x, y, "start", &format!("end-of-line middle {class}"), label);
            }
        }
        return;
    };
    if labels[0] == labels[1] {
        label_at(out, x, order, "start", "end-of-line middle order", &labels[0]);
        return;
    }
    let missing = LARGEST_LETTER + 2.0 - (order - default).abs();
    if missing > 0.0 {
        let push = if order >= default { missing / 2.0 } else { -missing / 2.0 };
        (order, default) = (order + push, default - push);
        // Not out of the chart.
        let over = (order.max(default) - frame.bottom - 4.0).max(0.0);
        (order, default) = (order - over, default - over);
    }
    label_at(out, x, order, "start", "end-of-line middle order", &labels[0]);
    label_at(out, x, default, "start", "end-of-line middle default", &labels[1]);
}

/// Where the steps lie from left to right.
struct Columns {
    longest: usize,
    /// One order is so much longer than the other that the shorter one would be a smudge.
    squeezed: bool,
    left: f64,
    right: f64,
}

impl Columns {
    fn new(lengths: [usize; 2], frame: &Frame) -> Columns {
        let (shorter, longest) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
        let squeezed = shorter > 0 && longest > 20 && longest / shorter >= 4;
        Columns {
            longest: longest.max(1),
            squeezed,
            left: frame.left + 8.0,
            right: frame.right - 8.0,
        }
    }

    fn at(&self, step: usize) -> f64 {
        let share = step as f64 / self.longest as f64;
        let share = if self.squeezed { share.sqrt() } else { share };
        self.left + (self.right - self.left) * share
    }

    /// The steps to be numbered.
    fn marks(&self) -> Vec<usize> {
        if self.squeezed {
            let sixth = |index: usize| self.longest * index * index / 36;
            return (0..=6).map(sixth).collect();
        }
        let marks = Axis::around([0.0, self.longest as f64], true).marks();
        marks.into_iter().map(|mark| mark as usize).filter(|mark| *mark <= self.longest).collect()
    }
}
