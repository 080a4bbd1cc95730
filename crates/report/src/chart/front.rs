//! Results of which none is better than another in everything.

use std::fmt::Write;

use super::{Frame, WIDTH, label_at, room_for, svg};
use crate::{FrontPoint, axis::Axis, markup::escape, numbers::amount};

const HEIGHT: f64 = 360.0;

/// The first two values of every point. Nothing if there are not two axes, or no point has both.
pub fn front(points: &[FrontPoint], axes: &[String]) -> String {
    let [across_name, up_name, ..] = axes else { return String::new() };
    let mut placed: Vec<(&FrontPoint, f64, f64)> = points
        .iter()
        .filter_map(|point| match point.values[..] {
            [across, up, ..] if across.is_finite() && up.is_finite() => Some((point, across, up)),
            _ => None,
        })
        .collect();
    if placed.is_empty() {
        return String::new();
    }
    // The chosen one is drawn last, over the others.
    placed.sort_by(|a, b| a.0.chosen.cmp(&b.0.chosen).then(a.1.total_cmp(&b.1)));

    let across = Axis::around(placed.iter().map(|point| point.1), false);
    let up = Axis::around(placed.iter().map(|point| point.2), false);
    let labels: Vec<String> = up.marks().into_iter().map(amount).collect();
    let widest = labels.iter().map(|label| room_for(label)).fold(0.0, f64::max);
    let frame =
        Frame { left: 16.0 + widest, right: WIDTH - 60.0, top: 44.0, bottom: HEIGHT - 66.0 };
    let across = across.between(frame.left + 10.0, frame.right - 10.0);
    let up = up.between(frame.bottom, frame.top);

    let mut out = String::new();
    label_at(&mut out, 4.0, 20.0, "start", "name-of-axis", up_name);
    frame.rows(&mut out, &up, &labels);
    frame.floor(&mut out);
    let marks = across.marks();
    let names: Vec<String> = marks.iter().map(|mark| amount(*mark)).collect();
    // Long numbers leave room for every second one, or fewer.
    let widest = names.iter().map(|name| room_for(name)).fold(0.0, f64::max) + 16.0;
    let apart = (across.at(marks[1]) - across.at(marks[0])).max(1.0);
    let every = (widest / apart).ceil().max(1.0) as usize;
    for (mark, name) in marks.iter().zip(&names).step_by(every) {
        frame.column(&mut out, across.at(*mark), name);
    }
    let middle = (frame.left + frame.right) / 2.0;
    label_at(&mut out, middle, frame.bottom + 36.0, "middle", "below", across_name);

    for (point, x, y) in &placed {
        let class = if point.chosen { "chosen" } else { "candidate" };
        let radius = if point.chosen { 7.0 } else { 5.0 };
        let values = axes.iter().zip(&point.values);
        let values: String =
            values.map(|(name, value)| format!("\n{name}: {}", amount(*value))).collect();
        let _ = writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title>\
             </circle>",
            across.at(*x),
            up.at(*y),
            escape(&format!("{}{values}", point.label))
        );
    }
    let description = format!("{up_name} over {across_name}, {} results.", placed.len());
    svg(HEIGHT, &description, &out, &caption(&across, &up, axes, placed.iter().any(|p| p.0.chosen)))
}

fn caption(across: &Axis, up: &Axis, axes: &[String], chosen: bool) -> String {
    let mut words = String::from("Towards the lower left is better.");
    if chosen {
        words.push_str(" The large point is the one that this report is about.");
    }
    if axes.len() > 2 {
        words.push_str(" Further figures are in the table alone.");
    }
    if across.low() != 0.0 || up.low() != 0.0 {
        words.push_str(" The axes need not begin at 0.");
    }
    words
}
