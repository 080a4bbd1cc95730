//! Plain tables: columns as wide as needed, numbers to the right.

use crate::plain::plain_line;

/// Rows of cells under a header.
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

    /// The table as text.
    pub fn render(&self) -> String {
        let columns = self.right.len();
        let width = |text: &String| text.chars().count();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - width(cell));
                if column > 0 {
                    line.push_str("  ");
                }
                if self.right[column] {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push_str(rule.join("  ").trim_end());
                out.push('\n');
            }
        }
        out
    }
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
        table.row(["cse".to_owned(), "1,234".to_owned()]);
        table.row(["algsimp".to_owned(), "7".to_owned()]);
        assert_eq!(
            table.render(),
            "pass       ops\n───────  ─────\ncse      1,234\nalgsimp      7\n"
        );
    }
}
