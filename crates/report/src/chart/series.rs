//! How one series is told from another: by colour, by shape, and by its name in a legend.

use std::fmt::Write;

use super::{LARGEST_LETTER, WIDTH, label_at, room_for};
use crate::markup::escape;

/// The style sheet has this many colours.
const COLOURS: usize = 8;

/// How a series looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// A colour; where there are not enough of them, they come again with hollow marks.
    pub colour: usize,
    /// The shape of its marks: circle, square, triangle, diamond, and so on again.
    pub shape: usize,
}

impl Look {
    /// The class that gives a series its colour.
    pub fn class(self) -> String {
        format!("s{}", self.colour % COLOURS)
    }

    /// A mark at a point.
    pub fn mark(self, out: &mut String, at: (f64, f64), radius: f64, title: &str) {
        let ((x, y), r) = (at, radius);
        let hollow = if (self.colour / COLOURS) % 2 == 1 { " hollow" } else { "" };
        let class = format!("mark{hollow} {}", self.class());
        let polygon = |corners: &[(f64, f64)]| {
            let corners =
                corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r));
            let corners = corners.collect::<Vec<_>>().join(" ");
            ("polygon", format!("class=\"{class}\" points=\"{corners}\""))
        };
        let (name, rest) = match self.shape % 4 {
            0 => {
                let circle = format!("class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"");
                ("circle", circle)
            }
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.25), (1.2, 0.9), (-1.2, 0.9)]),
            _ => polygon(&[(0.0, -1.35), (1.2, 0.0), (0.0, 1.35), (-1.2, 0.0)]),
        };
        if title.is_empty() {
            let _ = writeln!(out, "<{name} {rest}/>");
        } else {
            let _ = writeln!(out, "<{name} {rest}><title>{}</title></{name}>", escape(title));
        }
    }
}

/// Names beside their marks, in columns from `top` on. Gives the place where they end.
pub fn legend<'a>(
    out: &mut String,
    top: f64,
    entries: impl IntoIterator<Item = (Look, &'a str)>,
) -> f64 {
    const MARK: f64 = 24.0;
    const GAP: f64 = 8.0;
    const ROW: f64 = LARGEST_LETTER + 4.0;
    let entries: Vec<(Look, &str)> = entries.into_iter().collect();
    let widest = entries.iter().map(|(_, name)| MARK + room_for(name) + GAP).fold(1.0, f64::max);
    let columns = (((WIDTH + GAP) / widest) as usize).clamp(1, entries.len().max(1));
    for (index, (look, name)) in entries.iter().enumerate() {
        let x = 4.0 + (WIDTH + GAP) / columns as f64 * (index % columns) as f64;
        let y = top + ROW * ((index / columns) as f64 + 0.5);
        let (class, end) = (look.class(), x + MARK - 4.0);
        let _ = writeln!(
            out,
            "<line class=\"interval {class}\" x1=\"{x:.1}\" x2=\"{end:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
        look.mark(out, ((x + end) / 2.0, y), 5.0, "");
        label_at(out, x + MARK, y, "start", "label middle", name);
    }
    top + ROW * entries.len().div_ceil(columns) as f64
}
