//! A plot of the primary metric over steps, as pixels.

use font8x8::legacy::BASIC_LEGACY;

/// A picture: three bytes a pixel, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green, blue.
    pub bytes: Vec<u8>,
}

type Colour = [u8; 3];
const WHITE: Colour = [255; 3];
const BLACK: Colour = [30; 3];
const GREY: Colour = [215; 3];
const BLUE: Colour = [76, 120, 168];
const RED: Colour = [228, 87, 86];

const LEFT: usize = 64;
const RIGHT: usize = 16;
const TOP: usize = 40;
const BOTTOM: usize = 40;

/// Draws the primary metric over the steps of an episode, and the compiler's own result as a line. The
/// labels are the metric's name, and what that result is called.
pub fn plot(
    title: &str,
    (metric, baseline): (&str, &str),
    values: &[u64],
    traj_limit: usize,
    default: Option<u64>,
) -> Picture {
    let mut picture = Picture::blank(640, 400);
    let shown = || values.iter().chain(&default);
    let (low, high) = (shown().min().copied(), shown().max().copied());
    let (low, high) = (low.unwrap_or(0) as f64, high.unwrap_or(1) as f64);
    let margin = ((high - low) * 0.1).max(1.0);
    let (low, high) = ((low - margin).max(0.0), high + margin);
    let (right, bottom) = (picture.width - RIGHT, picture.height - BOTTOM);
    let x = |step: usize| LEFT + step * (right - LEFT) / traj_limit.max(1);
    let y = |value: f64| {
        bottom - ((value - low) / (high - low) * (bottom - TOP) as f64).round() as usize
    };

    picture.text(LEFT, 12, title, BLACK);
    for tick in 0..=4 {
        let value = low + (high - low) * f64::from(tick) / 4.0;
        picture.line((LEFT, y(value)), (right, y(value)), GREY);
        let label = format!("{value:.0}");
        picture.text(LEFT.saturating_sub(8 * label.len() + 6), y(value) - 4, &label, BLACK);
        let step = traj_limit * tick as usize / 4;
        picture.text(x(step).saturating_sub(8), bottom + 8, &step.to_string(), BLACK);
    }
    picture.text((LEFT + right) / 2 - 20, bottom + 24, "steps", BLACK);
    picture.text(LEFT, 26, metric, BLUE);
    if let Some(default) = default {
        picture.line((LEFT, y(default as f64)), (right, y(default as f64)), RED);
        picture.text(LEFT + 8 * metric.len() + 20, 26, baseline, RED);
    }
    for (step, pair) in values.windows(2).enumerate() {
        let (from, to) = (y(pair[0] as f64), y(pair[1] as f64));
        for thick in 0..2 {
            picture.line((x(step), from + thick), (x(step + 1), to + thick), BLUE);
        }
    }
    picture
}

impl Picture {
    fn blank(width: usize, height: usize) -> Picture {
        Picture { width, height, bytes: WHITE.repeat(width * height) }
    }

    fn dot(&mut self, x: usize, y: usize, colour: Colour) {
        if x < self.width && y < self.height {
            let start = (y * self.width + x) * 3;
            self.bytes[start..start + 3].copy_from_slice(&colour);
        }
    }

    fn line(&mut self, from: (usize, usize), to: (usize, usize), colour: Colour) {
        let length = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for i in 0..=length {
            let share = i as f64 / length as f64;
            let at = |a: usize, b: usize| (a as f64 + (b as f64 - a as f64) * share).round();
            self.dot(at(from.0, to.0) as usize, at(from.1, to.1) as usize, colour);
        }
    }

    fn text(&mut self, x: usize, y: usize, text: &str, colour: Colour) {
        for (number, letter) in text.chars().enumerate() {
            let Some(rows) = BASIC_LEGACY.get(letter as usize) else { continue };
            for (row, bits) in rows.iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    self.dot(x + number * 8 + column, y + row, colour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_falls_where_the_values_do() {
        let picture = plot("test", ("lines", "its own"), &[100, 100, 50], 4, Some(60));
        assert_eq!(picture.bytes.len(), picture.width * picture.height * 3);
        let lowest_row_of_blue = |x: usize| {
            (0..picture.height).rev().find(|y| {
                let start = (y * picture.width + x) * 3;
                picture.bytes[start..start + 3] == BLUE
            })
        };
        assert!(lowest_row_of_blue(LEFT + 2) < lowest_row_of_blue(LEFT + 270));
    }

    #[test]
    fn nothing_to_draw_is_no_accident() {
        plot("", ("", ""), &[], 1, None);
        plot(
            "a long title, longer than the picture is wide, by far, so that it is cut",
            ("lines", ""),
            &[0],
            1,
            Some(0),
        );
    }
}
