//! Bars that stand in the cells of a table. They stretch with the cell.

/// A bar to the right of zero if `value` is above it, else to the left. `range` is the lowest
/// (0 or less) and the highest (0 or more) value of the column.
pub fn bar(value: f64, range: (f64, f64)) -> String {
    let (low, high) = range;
    let width = high - low;
    if width <= 0.0 || !value.is_finite() {
        return String::new();
    }
    let place = |value: f64| (value - low) / width * 100.0;
    let (zero, end) = (place(0.0), place(value));
    let class = if value < 0.0 { "adds" } else { "removes" };
    let (left, length) = (zero.min(end), (zero - end).abs());
    // Anything that is not nothing can be seen.
    let length = if value == 0.0 { 0.0 } else { length.max(0.7) };
    let left = left.min(100.0 - length);
    stretched(&format!(
        "<rect class=\"{class}\" x=\"{left:.2}\" y=\"1\" width=\"{length:.2}\" height=\"8\"/>\
         <line class=\"axis\" x1=\"{zero:.2}\" x2=\"{zero:.2}\" y1=\"0\" y2=\"10\"/>"
    ))
}

/// A bar from 0 to the median, and a thin line between the quartiles.
pub fn span(median: f64, lower: f64, upper: f64, longest: f64) -> String {
    let known = median.is_finite() && lower.is_finite() && upper.is_finite();
    if !known || !longest.is_finite() || longest <= 0.0 {
        return String::new();
    }
    let place = |value: f64| (value / longest * 100.0).clamp(0.0, 100.0);
    let (median, lower, upper) = (place(median), place(lower), place(upper));
    stretched(&format!(
        "<rect class=\"removes\" x=\"0\" y=\"1\" width=\"{median:.2}\" height=\"8\"/>\
         <line class=\"quartiles\" x1=\"{lower:.2}\" x2=\"{upper:.2}\" y1=\"5\" y2=\"5\"/>"
    ))
}

fn stretched(content: &str) -> String {
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">{content}</svg>"
    )
}
