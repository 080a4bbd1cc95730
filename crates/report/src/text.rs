//! The report's tables for a terminal of 100 columns.

use xla_gym_common::Table;

use crate::{
    Explanation, Timeline,
    explanation::figure,
    headline::Headline,
    metric::{change, known},
    numbers::{ABSENT, amount, capitalised, duration, signed_amount},
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
        blocks.push(timeline(&capitalised(&self.baseline.order), &self.default_order, true));
        blocks.push(contributions(self));
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n")
    }
}

fn summary(explanation: &Explanation) -> String {
    let own = format!(">{}", explanation.baseline.label);
    let mut table = Table::new(&["figure", ">start", &own, ">result", ">ratio", "note"]);
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
    fitted(&table, 5)
}

/// A line a step. Of a long list, such as the baseline's, only the steps that changed something.
fn timeline(heading: &str, timeline: &Timeline, only_changes: bool) -> String {
    let things = timeline.primary().things();
    let (start, end) = (known(timeline.start()), known(timeline.end()));
    let idle = timeline.steps.iter().filter(|step| !step.changed).count();
    let mut title = match timeline.steps.len() {
        0 if timeline.metrics.is_empty() => format!("{heading}: no steps"),
        0 => format!("{heading}: no steps, {start} {things}"),
        1 => format!("{heading}: 1 step, {start} → {end} {things}"),
        steps => format!("{heading}: {steps} steps, {start} → {end} {things}"),
    };
    if only_changes && idle > 0 {
        title.push_str(&format!(" ({idle} without effect not shown)"));
    }
    let labels: Vec<String> =
        timeline.metrics.iter().map(|metric| format!(">{}", metric.label)).collect();
    let mut header: Vec<&str> = vec![">step", "pass"];
    header.extend(labels.iter().map(String::as_str));
    // The change is the primary metric's, beside which it stands.
    header.insert(header.len().min(3), ">change");
    header.push(">time");
    let mut table = Table::new(&header);
    let dot = || "·".to_owned();
    let line = |step: String, pass: &str, change: String, figures: &[Option<f64>], time| {
        let mut cells = vec![step, pass.to_owned()];
        let values = timeline.metrics.iter().enumerate();
        cells.extend(values.map(|(index, metric)| match (index, figure(figures, index)) {
            (0, value) => known(value),
            (_, value) => metric.in_column(value),
        }));
        cells.insert(cells.len().min(3), change);
        cells.push(time);
        cells
    };
    if !timeline.steps.is_empty() {
        table.row(line("0".to_owned(), "(start)", dot(), &timeline.start, dot()));
    }
    for (number, before, step) in timeline.numbered() {
        if only_changes && !step.changed {
            continue;
        }
        let change = if step.changed { change(step.primary(), before) } else { dot() };
        let time = duration(step.nanos as f64);
        table.row(line(number.to_string(), &step.pass, change, &step.figures, time));
    }
    format!("{}{}", wrapped(&title), fitted(&table, 1))
}

fn contributions(explanation: &Explanation) -> String {
    if explanation.contributions.is_empty() {
        return String::new();
    }
    let things = explanation.order.primary().things();
    let last = &explanation.final_figure;
    let without = format!(">{last} without it");
    let mut header = vec![">place", "pass", ">removed", ">more without it"];
    header.extend((!last.is_empty()).then_some(without.as_str()));
    header.push(">time");
    let mut table = Table::new(&header);
    let tried = |value: Option<f64>| value.map_or(ABSENT.to_owned(), signed_amount);
    for row in &explanation.contributions {
        let mut cells = vec![
            row.position.to_string(),
            row.pass.clone(),
            amount(row.by_step),
            tried(row.left_out),
        ];
        cells.extend((!last.is_empty()).then(|| tried(row.left_out_final)));
        cells.push(duration(row.seconds * 1e9));
        table.row(cells);
    }
    let and_last = if last.is_empty() { String::new() } else { format!(" and {last}") };
    let title = format!(
        "What each pass brought: {things} removed in its own step, and how many more \
         {things}{and_last} the end has without it"
    );
    format!("{}{}", wrapped(&title), fitted(&table, 1))
}

/// As wide as a terminal, with the cells of `flexible` cut where need be; nothing for a table without
/// rows.
pub fn fitted(table: &Table, flexible: usize) -> String {
    if table.is_empty() { String::new() } else { table.render_within(WIDTH, flexible) }
}

/// A name must not move the cursor or change the terminal's colours.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
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
