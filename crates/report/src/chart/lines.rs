//! Lines with intervals: values over budgets, and values over steps.

use std::fmt::Write;

use super::{
    Frame, WIDTH,
    drawing::Drawing,
    label_at, room_for,
    series::{Look, legend},
};
use crate::{
    axis::{Axis, LogAxis},
    numbers::{compact, grouped},
};

const HEIGHT: f64 = 340.0;

/// What is to be drawn.
#[derive(Debug)]
pub struct LineChart<'a> {
    /// Drawn in this order.
    pub lines: &'a [Line],
    /// What lies on the axis below.
    pub across: &'a str,
    /// What lies on the axis at the left.
    pub up: &'a str,
    /// Whether equal distances on the axis below are equal ratios.
    pub logarithmic: bool,
    /// How intervals are shown.
    pub spread: Spread,
    /// For those who cannot see it.
    pub description: &'a str,
}

/// How intervals are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// A bar at every point.
    Bars,
    /// An area along the line.
    Band,
}

/// A line with a name.
#[derive(Debug, Default)]
pub struct Line {
    /// What stands in the legend.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// From left to right. On a logarithmic axis, a point at 0 becomes a level across the chart.
    pub points: Vec<LinePoint>,
}

/// A value with its interval.
#[derive(Clone, Debug, Default)]
pub struct LinePoint {
    /// Its place on the axis below.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// What is shown to those who point at it.
    pub title: String,
}

/// The axis below.
enum Across {
    Straight(Axis),
    Logarithmic(LogAxis),
}

impl Across {
    fn at(&self, value: f64) -> f64 {
        match self {
            Across::Straight(axis) => axis.at(value),
            Across::Logarithmic(axis) => axis.at(value),
        }
    }

    fn marks(&self) -> Vec<f64> {
        match self {
            Across::Straight(axis) => axis.marks(),
            Across::Logarithmic(axis) => axis.marks(),
        }
    }
}

impl LineChart<'_> {
    /// The chart; nothing if no line has a point.
    pub fn draw(&self) -> Option<Drawing> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        points().next()?;
        let up = Axis::of_ratios(points().flat_map(|point| [point.y, point.low, point.high]));
        let labels = up.labels();
        let widest = labels.iter().map(|label| room_for(label)).fold(0.0, f64::max);

        let mut out = String::new();
        let names = self.lines.iter().map(|line| (line.look, line.name.as_str()));
        let top = legend(&mut out, 0.0, names);
        label_at(&mut out, 4.0, top + 16.0, "start", "tick middle", self.up);
        let bottom = top + HEIGHT - 66.0;
        let frame = Frame { left: 16.0 + widest, right: WIDTH - 24.0, top: top + 40.0, bottom };
        let up = up.between(frame.bottom, frame.top);
        frame.rows(&mut out, &up, &labels);
        frame.floor(&mut out);
        let across = self.columns(&mut out, &frame);
        let middle = (frame.left + frame.right) / 2.0;
        label_at(&mut out, middle, frame.bottom + 36.0, "middle", "below", self.across);
        frame.one(&mut out, &up);
        if self.spread == Spread::Band {
            // All areas lie below all lines.
            self.lines.iter().for_each(|line| band(&mut out, line, &across, &up));
        }
        for (index, line) in self.lines.iter().enumerate() {
            let aside =
                |x: f64| if self.spread == Spread::Bars { self.aside(index, x) } else { 0.0 };
            let places: Vec<(f64, f64)> = line
                .points
                .iter()
                .map(|point| (across.at(point.x) + aside(point.x), up.at(point.y)))
                .collect();
            self.line(&mut out, line, &places, &up, &frame);
        }
        let description = self.description.to_owned();
        Some(Drawing { height: top + HEIGHT, description, content: out })
    }

    fn columns(&self, out: &mut String, frame: &Frame) -> Across {
        let (from, to) = (frame.left + 16.0, frame.right - 16.0);
        let values = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.x);
        let across = if self.logarithmic {
            Across::Logarithmic(LogAxis::around(values(), from, to))
        } else {
            let last = values().fold(f64::NEG_INFINITY, f64::max);
            Across::Straight(Axis::around(values(), true).ending_at(last).between(from, to))
        };
        let mut free = f64::NEG_INFINITY;
        for value in self.marks(&across) {
            let label = if value >= 1e5 { compact(value) } else { grouped(value as u64) };
            let (x, half) = (across.at(value), room_for(&label) / 2.0);
            // A number that would touch the one before it is left out.
            if x - half > free {
                frame.column(out, x, &label);
                free = x + half + 8.0;
            }
        }
        across
    }

    /// Of a logarithmic axis with few values, those values.
    fn marks(&self, across: &Across) -> Vec<f64> {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.x);
        let mut values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if self.logarithmic && values.len() <= 8 { values } else { across.marks() }
    }

    /// Bars at the same place stand side by side: how far this line's stands from the middle.
    fn aside(&self, index: usize, x: f64) -> f64 {
        let here = |line: &Line| line.points.iter().any(|point| point.x == x);
        let before = self.lines[..index].iter().filter(|line| here(line)).count();
        let all = self.lines.iter().filter(|line| here(line)).count();
        (before as f64 - (all as f64 - 1.0) / 2.0) * (70.0 / all as f64).min(9.0)
    }

    fn line(&self, out: &mut String, line: &Line, places: &[(f64, f64)], up: &Axis, frame: &Frame) {
        let class = line.look.class();
        let level = |point: &LinePoint| self.logarithmic && point.x <= 0.0;
        for point in line.points.iter().filter(|point| level(point)) {
            let y = up.at(point.y);
            let (left, right) = (frame.left, frame.right);
            let _ = writeln!(
                out,
                "<polyline class=\"line dashed {class}\" points=\"{left:.1},{y:.1} {right:.1},{y:.1}\"/>"
            );
            line.look.mark(out, (left, y), 5.0, &point.title);
        }
        let (points, places): (Vec<&LinePoint>, Vec<(f64, f64)>) = line
            .points
            .iter()
            .zip(places.iter().copied())
            .filter(|(point, _)| !level(point))
            .unzip();
        if places.len() > 1 {
            let path = path(places.iter().copied());
            let _ = writeln!(out, "<polyline class=\"line {class}\" points=\"{path}\"/>");
        }
        if self.spread == Spread::Bars {
            for (point, (x, _)) in points.iter().zip(&places) {
                let (low, high) = (up.at(point.low), up.at(point.high));
                let _ = writeln!(
                    out,
                    "<line class=\"interval {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>"
                );
            }
        }
        // Of a long line, some points have marks, so that shapes tell lines apart.
        let every = if self.spread == Spread::Bars { 1 } else { places.len().div_ceil(12).max(1) };
        for (point, place) in
            points.iter().zip(&places).skip(places.len().saturating_sub(1) % every).step_by(every)
        {
            line.look.mark(out, *place, 5.0, &point.title);
        }
    }
}

fn band(out: &mut String, line: &Line, across: &Across, up: &Axis) {
    let lower = line.points.iter().map(|point| (across.at(point.x), up.at(point.low)));
    let upper = line.points.iter().rev().map(|point| (across.at(point.x), up.at(point.high)));
    if line.points.len() > 1 {
        let (class, corners) = (line.look.class(), path(lower.chain(upper)));
        let _ = writeln!(out, "<polygon class=\"band {class}\" points=\"{corners}\"/>");
    }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
