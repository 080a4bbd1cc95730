//! Plain tables: columns as wide as needed, numbers to the right.

use crate::plain::plain_line;

/// What is left of a cell that has to be cut, at the least.
const NARROWEST: usize = 8;

/// Rows of cells under a header, for a terminal.
///
/// ```
/// let mut table = xla_gym_common::Table::new(&["pass", ">operations"]);
/// table.row(["cse".to_owned(), "1,234".to_owned()]);
/// table.row(["algsimp".to_owned(), "7".to_owned()]);
/// assert_eq!(
///     table.render(),
///     "pass     operations\n\
///      ───────  ──────────\n\
///      cse           1,234\n\
///      algsimp           7\n"
/// );
/// ```
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A header whose cells starting with `>` are for columns of numbers.
    pub fn new(header: &[&str]) -> Table {
        Table {
            right: header.iter().map(|cell| cell.starts_with('>')).collect(),
            rows: vec![
                header.iter().map(|cell| plain_line(cell.trim_start_matches('>')).into()).collect(),
            ],
        }
    }

    /// Adds a row. Cells may hold what strangers wrote.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| plain_line(&cell).into_owned()).collect());
    }

    /// Whether there is nothing under the header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table as text.
    pub fn render(&self) -> String {
        written(&self.rows, &self.widths(), &self.right)
    }

    /// The table as text. Where its lines would be longer than `width`, the cells of one column are
    /// cut.
    pub fn render_within(&self, width: usize, flexible: usize) -> String {
        let mut widths = self.widths();
        let gaps = 2 * (widths.len() - 1);
        let others = widths.iter().sum::<usize>() - widths[flexible] + gaps;
        widths[flexible] = widths[flexible].min(width.saturating_sub(others).max(NARROWEST));
        let mut rows = self.rows.clone();
        for row in &mut rows {
            row[flexible] = shortened(&row[flexible], widths[flexible]);
        }
        written(&rows, &widths, &self.right)
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        (0..self.right.len()).map(|column| widest(column).unwrap_or(0)).collect()
    }
}

fn written(rows: &[Vec<String>], widths: &[usize], right: &[bool]) -> String {
    let mut out = String::new();
    let mut line = |row: &[String]| {
        let cells = row.iter().zip(widths).zip(right).map(|((cell, &width), right)| {
            if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    };
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    for (index, row) in rows.iter().enumerate() {
        line(row);
        if index == 0 {
            line(&rule);
        }
    }
    out
}

/// A text that is cut where it is longer than `width` letters.
///
/// ```
/// assert_eq!(xla_gym_common::shortened("while-loop-invariant-code-motion", 11), "while-loop…");
/// ```
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn cells_cannot_steer_the_terminal() {
        let mut table = Table::new(&["a\u{1b}[31m"]);
        table.row(["\u{1b}]0;title\u{7}\r\nb".to_owned()]);
        let text = table.render();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(text.lines().count(), 3, "{text:?}");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["pass", ">ops"]);
        assert!(table.is_empty());
        table.row(["cse".to_owned(), "1,234".to_owned()]);
        table.row(["algsimp".to_owned(), "7".to_owned()]);
        assert!(!table.is_empty());
        let expected = "pass       ops\n───────  ─────\ncse      1,234\nalgsimp      7\n";
        assert_eq!(table.render(), expected);
        assert_eq!(table.render_within(14, 0), expected, "there is room");
    }

    #[test]
    fn one_column_gives_way_where_lines_are_too_long() {
        let mut table = Table::new(&["pass", ">operations"]);
        table.row(["while-loop-simplifier".to_owned(), "1,234".to_owned()]);
        let line = |width| table.render_within(width, 0).lines().nth(2).map(str::to_owned);
        assert_eq!(line(22).as_deref(), Some("while-loo…       1,234"));
        assert_eq!(line(5).as_deref(), Some("while-l…       1,234"), "but not to nothing");
    }
}
