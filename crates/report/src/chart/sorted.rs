//! A value of every graph, from the least to the greatest.

use std::fmt::Write;

use super::{
    Frame, WIDTH,
    drawing::Drawing,
    label_at, room_for,
    series::{Look, legend},
};
use crate::{axis::Axis, numbers::grouped};

const HEIGHT: f64 = 340.0;

/// The graphs of one contestant.
#[derive(Debug, Default)]
pub struct SortedCurve {
    /// What stands in the legend.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// In rising order.
    pub points: Vec<SortedPoint>,
}

/// One graph.
#[derive(Clone, Debug, Default)]
pub struct SortedPoint {
    /// In the middle of the seeds.
    pub value: f64,
    /// Of the seed with the least.
    pub low: f64,
    /// Of the seed with the greatest.
    pub high: f64,
    /// What is shown to those who point at it.
    pub title: String,
}

/// All curves in one chart, and how many values lie outside of it. Nothing if there is no point.
pub fn sorted(curves: &[SortedCurve], axis: &str, description: &str) -> Option<(Drawing, usize)> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let longest = curves.iter().map(|curve| curve.points.len()).max().filter(|count| *count > 0)?;
    let limits = limits(points().flat_map(|point| [point.low, point.value, point.high]).collect());
    let up = Axis::of_ratios([limits.0, limits.1]);
    let labels = up.labels();
    let widest = labels.iter().map(|label| room_for(label)).fold(0.0, f64::max);

    let mut out = String::new();
    let top = legend(&mut out, 0.0, curves.iter().map(|curve| (curve.look, curve.name.as_str())));
    label_at(&mut out, 4.0, top + 16.0, "start", "tick middle", axis);
    let bottom = top + HEIGHT - 66.0;
    let frame = Frame { left: 16.0 + widest, right: WIDTH - 14.0, top: top + 40.0, bottom };
    let up = up.between(frame.bottom, frame.top);
    frame.rows(&mut out, &up, &labels);
    frame.floor(&mut out);
    let across = Axis::around([0.0, longest as f64], true);
    let place = |rank: f64| {
        frame.left + 8.0 + (frame.right - frame.left - 16.0) * (rank - 0.5) / longest as f64
    };
    for rank in across.marks().into_iter().filter(|rank| *rank >= 1.0 && *rank <= longest as f64) {
        frame.column(&mut out, place(rank), &grouped(rank as u64));
    }
    if longest == 1 {
        frame.column(&mut out, place(1.0), "1");
    }
    let middle = (frame.left + frame.right) / 2.0;
    let below = "graphs, from the lowest ratio to the highest";
    label_at(&mut out, middle, frame.bottom + 36.0, "middle", "below", below);
    frame.one(&mut out, &up);

    let mut outside = 0;
    let inside = |value: f64| value.clamp(limits.0, limits.1);
    for curve in curves {
        let class = curve.look.class();
        let radius = if curve.points.len() > 150 { 2.6 } else { 4.0 };
        for (rank, point) in (1..).zip(&curve.points) {
            let x = place(f64::from(rank));
            let (low, high) = (up.at(inside(point.low)), up.at(inside(point.high)));
            let _ = writeln!(
                out,
                "<line class=\"faint {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>"
            );
            outside += usize::from(point.value != inside(point.value));
        }
        for (rank, point) in (1..).zip(&curve.points) {
            let at = (place(f64::from(rank)), up.at(inside(point.value)));
            curve.look.mark(&mut out, at, radius, &point.title);
        }
    }
    let height = top + HEIGHT;
    Some((Drawing { height, description: description.to_owned(), content: out }, outside))
}

/// The range to be drawn: everything, unless a few values would press the others together.
fn limits(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let (low, high) = (at(0.03).min(1.0), at(0.97).max(1.0));
    let room = 1.5 * (high - low);
    (at(0.0).max(low - room), at(1.0).min(high + room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_far_values_do_not_press_the_others_together() {
        let mut values: Vec<f64> = (0..100).map(|index| 0.9 + f64::from(index) / 500.0).collect();
        assert_eq!(limits(values.clone()), (0.9, values[99]));
        values[0] = -40.0;
        let (low, high) = limits(values.clone());
        assert!((0.5..0.9).contains(&low) && high == values[99], "{low} {high}");
        let curve =
            |value: f64| SortedPoint { value, low: value, high: value, ..Default::default() };
        let points = values.into_iter().map(curve).collect();
        let curves = [SortedCurve { points, ..Default::default() }];
        assert_eq!(sorted(&curves, "", "").unwrap().1, 1);
        assert!(sorted(&[SortedCurve::default()], "", "").is_none());
    }
}
