//! The report's tables for a terminal of 100 columns.

use crate::{
    Explanation, Timeline,
    headline::Headline,
    numbers::{ABSENT, amount, compact, difference, duration, grouped, signed},
};

const WIDTH: usize = 100;

impl Explanation {
    /// The summary, both timelines and the contributions as plain text, at most 100 columns wide
    /// unless the numbers alone need more.
    pub fn text(&self) -> String {
        let headline = Headline::of(self);
        let mut blocks = vec![wrapped(&format!("{} ({})", self.title, self.engine))];
        let sentences = [headline.main, headline.others, headline.caution];
        blocks.push(sentences.iter().map(|sentence| wrapped(sentence)).collect());
        blocks.push(summary(self));
        blocks.push(timeline("This order", &self.order, false));
        blocks.push(timeline("XLA's own order", &self.default_order, true));
        blocks.push(contributions(self));
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n")
    }
}

fn summary(explanation: &Explanation) -> String {
    let mut table = Table::new(&["figure", ">start", ">XLA's own", ">result", ">ratio", "note"]);
    for row in &explanation.summary {
        table.row(vec![
            row.name.clone(),
            row.start.map_or(ABSENT.to_owned(), amount),
            amount(row.default),
            amount(row.result),
            row.ratio.map_or(ABSENT.to_owned(), |ratio| format!("{ratio:.3}")),
            row.note.clone(),
        ]);
    }
    table.render(5)
}

/// A line a step. Of a long list, such as XLA's own, only the steps that changed something.
fn timeline(heading: &str, timeline: &Timeline, only_changes: bool) -> String {
    let steps = timeline.steps.len();
    let (start, end) = (timeline.start.operations, timeline.end().operations);
    let idle = timeline.steps.iter().filter(|step| !step.changed).count();
    let mut title = match steps {
        0 => format!("{heading}: no steps, {} operations", grouped(start)),
        1 => format!("{heading}: 1 step, {} → {} operations", grouped(start), grouped(end)),
        _ => format!("{heading}: {steps} steps, {} → {} operations", grouped(start), grouped(end)),
    };
    if only_changes && idle > 0 {
        title.push_str(&format!(" ({idle} without effect not shown)"));
    }
    let header =
        [">step", "pass", ">operations", ">change", ">instructions", ">FLOPs", ">bytes", ">time"];
    let mut table = Table::new(&header);
    let line = |step: String, pass: String, change: String, figures: crate::Figures, time| {
        let operations = grouped(figures.operations);
        let instructions = grouped(figures.instructions);
        let (flops, bytes) = (compact(figures.flops), compact(figures.bytes));
        vec![step, pass, operations, change, instructions, flops, bytes, time]
    };
    if steps > 0 {
        let dot = "·".to_owned();
        table.row(line("0".to_owned(), "(start)".to_owned(), dot.clone(), timeline.start, dot));
    }
    for (number, before, step) in timeline.numbered() {
        if only_changes && !step.changed {
            continue;
        }
        let change = if step.changed {
            signed(difference(step.figures.operations, before.operations))
        } else {
            "·".to_owned()
        };
        let time = duration(step.nanos as f64);
        table.row(line(number.to_string(), step.pass.clone(), change, step.figures, time));
    }
    format!("{}{}", wrapped(&title), table.render(1))
}

fn contributions(explanation: &Explanation) -> String {
    if explanation.contributions.is_empty() {
        return String::new();
    }
    let header = [">place", "pass", ">removed", ">more without it", ">kernels without it", ">time"];
    let mut table = Table::new(&header);
    let tried = |value: Option<i64>| value.map_or(ABSENT.to_owned(), signed);
    for row in &explanation.contributions {
        table.row(vec![
            row.position.to_string(),
            row.pass.clone(),
            amount(row.by_step as f64),
            tried(row.left_out),
            tried(row.left_out_final),
            duration(row.seconds * 1e9),
        ]);
    }
    let title = "What each pass brought: operations removed in its own step, and how many more \
                 operations and kernels the end has without it";
    format!("{}{}", wrapped(title), table.render(1))
}

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
            rows: vec![header.iter().map(|cell| cell.trim_start_matches('>').to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }

    /// The table as text; nothing if it has only a header. The cells of `flexible` are cut where
    /// a line would be too long.
    pub fn render(mut self, flexible: usize) -> String {
        if self.rows.len() == 1 {
            return String::new();
        }
        let widest = |rows: &[Vec<String>], column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> =
            (0..self.right.len()).map(|column| widest(&self.rows, column)).collect();
        let gaps = 2 * (widths.len() - 1);
        let others = widths.iter().sum::<usize>() - widths[flexible] + gaps;
        widths[flexible] = widths[flexible].min(WIDTH.saturating_sub(others).max(8));
        for row in &mut self.rows {
            row[flexible] = shortened(&row[flexible], widths[flexible]);
        }
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect();
        self.rows.insert(1, rule);
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.right).map(|((cell, &width), right)| {
                if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            out.push('\n');
        }
        out
    }
}

/// A name must not move the cursor or change the terminal's colours.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// A text that is cut where it is longer than `width` letters.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of whole words. A word that is longer than a line stands alone.
pub fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace().map(printable) {
        let length = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
