//! Charts as inline SVG. Colours and letter sizes are the style sheet's, so that they follow
//! light, dark, narrow and printed pages.

mod bars;
mod dots;
mod drawing;
mod front;
mod lines;
mod series;
mod sorted;
mod timeline;

pub use bars::{bar, span};
pub use dots::{DotPanel, DotRow, dots};
pub use drawing::Drawing;
pub use front::front;
pub use lines::{Line, LineChart, LinePoint, Spread};
pub use series::Look;
pub use sorted::{SortedCurve, SortedPoint, sorted};
pub use timeline::timeline;

use std::fmt::Write;

use crate::{axis::Axis, markup::escape};

/// The charts' width in their own units; the page scales them.
const WIDTH: f64 = 760.0;

/// On narrow pages letters are drawn this large, in the chart's units, so that they can still be
/// read. Margins must have room for that.
const LARGEST_LETTER: f64 = 22.0;

/// Room that a label may need.
fn room_for(label: &str) -> f64 {
    label.chars().count() as f64 * LARGEST_LETTER * 0.56
}

/// The part of a chart in which data lies.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// Lines across, with numbers to their left.
    fn rows(&self, out: &mut String, axis: &Axis, labels: &[String]) {
        for (mark, label) in axis.marks().into_iter().zip(labels) {
            let y = axis.at(mark);
            let Frame { left, right, .. } = self;
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            label_at(out, left - 8.0, y, "end", "tick middle", label);
        }
    }

    /// A number below the axis, with a short line to it.
    fn column(&self, out: &mut String, x: f64, label: &str) {
        let (from, to) = (self.bottom, self.bottom + 5.0);
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\"/>"
        );
        label_at(out, x, to + 4.0, "middle", "tick below", label);
    }

    /// The line at 1, which stands for the baseline.
    fn one(&self, out: &mut String, axis: &Axis) {
        let (Frame { left, right, .. }, y) = (self, axis.at(1.0));
        let _ = writeln!(
            out,
            "<line class=\"one\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
    }

    /// The line that the columns stand on.
    fn floor(&self, out: &mut String) {
        let Frame { left, right, bottom, .. } = self;
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\"/>"
        );
    }
}

fn label_at(out: &mut String, x: f64, y: f64, anchor: &str, class: &str, label: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(label)
    );
}

fn svg(height: f64, description: &str, content: &str, caption: &str) -> String {
    let (description, content) = (description.to_owned(), content.to_owned());
    let drawing = Drawing { height, description, content }.inline();
    format!("<figure>\n{drawing}<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
}
