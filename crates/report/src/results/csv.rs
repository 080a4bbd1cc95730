//! Numbers to download.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::{
    Counts3, Outcome, Outputs, Progress,
    curves::Curve,
    summary::{Checked, Estimate, SummaryRow},
};
use crate::markup::escape;

/// Lines of cells, as RFC 4180 has them. What is not known is an empty cell.
#[derive(Debug)]
pub struct Csv {
    text: String,
}

impl Csv {
    /// With the names of the columns.
    pub fn new(header: &[&str]) -> Csv {
        let mut csv = Csv { text: String::new() };
        csv.row(header.iter().map(|name| (*name).to_owned()).collect());
        csv
    }

    /// Adds a line.
    pub fn row(&mut self, cells: Vec<String>) {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        self.text.push_str(&cells.join(","));
        self.text.push_str("\r\n");
    }

    /// The whole.
    pub fn text(self) -> String {
        self.text
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// A link that holds the numbers itself, so that nothing is fetched.
pub fn link(file: &str, csv: &str) -> String {
    let mut data = String::with_capacity(csv.len() * 5 / 4);
    for byte in csv.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' | b':' => {
                data.push(char::from(byte));
            }
            _ => {
                let _ = write!(data, "%{byte:02X}");
            }
        }
    }
    format!(
        "<a download=\"{}\" href=\"data:text/csv;charset=utf-8,{data}\">Numbers as CSV</a>",
        escape(file)
    )
}

/// A number, or nothing.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or(String::new(), |value| format!("{value}"))
}

/// Rows of a summary.
pub fn summary<'a>(rows: impl IntoIterator<Item = &'a SummaryRow>) -> String {
    let mut header: Vec<String> =
        ["split", "contestant", "kind", "budget", "graphs", "seeds", "missing"]
            .map(str::to_owned)
            .to_vec();
    for name in ["order", "end", "legal", "kernels"] {
        let parts = ["ratio", "low", "high", "graphs", "undefined", "floored"];
        header.extend(parts.map(|part| format!("{name}_{part}")));
    }
    let rest = [
        "not_worse",
        "never_worse",
        "best",
        "best_graph",
        "worst",
        "worst_graph",
        "median_seconds",
        "equal",
        "wrong",
        "not_comparable",
        "unchecked",
    ];
    header.extend(rest.map(str::to_owned));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut csv = Csv::new(&header);
    for row in rows {
        let mut cells = vec![row.split.clone(), row.contestant.clone(), row.kind.to_string()];
        cells.extend(
            [row.budget, row.graphs as u64, row.seeds as u64, row.missing as u64]
                .map(|count| count.to_string()),
        );
        for Estimate { mean, graphs, undefined, floored } in
            [row.order, row.end, row.legal, row.kernels]
        {
            let mean = [mean.map(|m| m.value), mean.map(|m| m.low), mean.map(|m| m.high)];
            cells.extend(mean.map(number));
            cells.extend([graphs, undefined, floored].map(|count| count.to_string()));
        }
        cells.extend([row.not_worse, row.never_worse].map(|share| number(Some(share))));
        for extreme in [&row.best, &row.worst] {
            cells.push(number(extreme.as_ref().map(|extreme| extreme.ratio)));
            cells.push(extreme.as_ref().map_or(String::new(), |extreme| extreme.graph.clone()));
        }
        cells.push(number(Some(row.median_seconds)));
        let Checked { equal, wrong, not_comparable, unchecked } = row.outputs;
        cells.extend([equal, wrong, not_comparable, unchecked].map(|count| count.to_string()));
        csv.row(cells);
    }
    csv.text()
}

/// Every outcome.
pub fn outcomes(outcomes: &[Outcome]) -> String {
    let mut csv = Csv::new(&[
        "graph",
        "splits",
        "contestant",
        "kind",
        "seed",
        "budget",
        "charged",
        "initial",
        "default",
        "result",
        "ratio",
        "end_initial",
        "end_default",
        "end_result",
        "legal_initial",
        "legal_default",
        "legal_result",
        "kernels",
        "kernels_default",
        "seconds",
        "passes",
        "outputs",
        "end_outputs",
        "legal_outputs",
        "claimed_result",
        "claimed_legal",
        "claimed_kernels",
        "guilty",
    ]);
    for outcome in outcomes {
        let three = |counts: Option<Counts3>| match counts {
            Some(Counts3 { initial, default, result }) => {
                [initial, default, result].map(|count| count.to_string())
            }
            None => [const { String::new() }; 3],
        };
        let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
        let mut cells = vec![
            outcome.graph.clone(),
            outcome.splits.join(" "),
            outcome.contestant.clone(),
            outcome.kind.to_string(),
            outcome.seed.to_string(),
            outcome.budget.to_string(),
            outcome.charged.to_string(),
        ];
        cells.extend(three(Some(outcome.order)));
        cells.push(number(outcome.order.ratio()));
        cells.extend(three(outcome.end));
        cells.extend(three(outcome.legal));
        cells.extend([count(outcome.kernels), count(outcome.kernels_default)]);
        cells.extend([number(Some(outcome.seconds)), outcome.passes.join(" ")]);
        let said = |outputs: &Option<Outputs>| outputs.as_ref().map(Outputs::to_string);
        let end = said(&outcome.end_outputs).unwrap_or_default();
        let legal = said(&outcome.legal_outputs).unwrap_or_default();
        cells.extend([outcome.outputs.to_string(), end, legal]);
        cells.extend(
            [outcome.claimed.order, outcome.claimed.legal, outcome.claimed.kernels].map(count),
        );
        cells.push(outcome.guilty.clone().unwrap_or_default());
        csv.row(cells);
    }
    csv.text()
}

/// Every update, with a column for every figure that occurs.
pub fn progress(progress: &[Progress]) -> String {
    let names: BTreeSet<&str> =
        progress.iter().flat_map(|line| line.figures.keys()).map(String::as_str).collect();
    let mut header = vec![
        "run",
        "algorithm",
        "seed",
        "step",
        "seconds",
        "environment_seconds",
        "learner_seconds",
        "episode_return",
        "ratio",
        "validation",
    ];
    header.extend(&names);
    let mut csv = Csv::new(&header);
    for line in progress {
        let mut cells = vec![
            line.run.clone(),
            line.algorithm.clone(),
            line.seed.to_string(),
            line.step.to_string(),
        ];
        let numbers = [
            Some(line.seconds),
            Some(line.environment_seconds),
            Some(line.learner_seconds),
            Some(line.episode_return),
            Some(line.ratio),
            line.validation,
        ];
        cells.extend(numbers.map(number));
        let figures: &BTreeMap<String, f64> = &line.figures;
        cells.extend(names.iter().map(|name| number(figures.get(*name).copied())));
        csv.row(cells);
    }
    csv.text()
}

/// Every point of the curves.
pub fn curves(curves: &[Curve]) -> String {
    let mut csv = Csv::new(&["algorithm", "step", "mean", "low", "high", "runs"]);
    for curve in curves {
        for point in &curve.points {
            let mut cells = vec![curve.algorithm.clone()];
            cells.extend([point.step, point.mean, point.low, point.high].map(|v| number(Some(v))));
            cells.push(point.runs.to_string());
            csv.row(cells);
        }
    }
    csv.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_need_quotes_have_them() {
        let mut csv = Csv::new(&["a", "b"]);
        csv.row(vec!["x,y".to_owned(), "say \"hi\"\n".to_owned()]);
        csv.row(vec![number(Some(0.5)), number(Some(f64::NAN))]);
        assert_eq!(csv.text(), "a,b\r\n\"x,y\",\"say \"\"hi\"\"\n\"\r\n0.5,\r\n");
    }

    #[test]
    fn a_link_holds_everything_and_breaks_nothing() {
        let link = link("a\".csv", "ä,\"<b>\"\r\n");
        assert!(link.contains("href=\"data:text/csv;charset=utf-8,%C3%A4,%22%3Cb%3E%22%0D%0A\""));
        assert!(link.contains("download=\"a&quot;.csv\""));
    }
}
