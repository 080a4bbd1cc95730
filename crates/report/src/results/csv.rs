//! Numbers to download.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::{
    Header, Outcome, Outputs, Progress, Ratio, Stage, StageInfo,
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
pub fn summary<'a>(header: &Header, rows: impl IntoIterator<Item = &'a SummaryRow>) -> String {
    let names = header.stages.iter().map(|info| &info.name);
    let mut header: Vec<String> =
        ["split", "contestant", "kind", "budget", "graphs", "seeds", "missing"]
            .map(str::to_owned)
            .to_vec();
    for name in names {
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
        for stage in &row.stages {
            let Estimate { mean, graphs, undefined, floored } = stage.estimate;
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

/// Every outcome. Columns of a further stage begin with its name; those of the primary one do not.
pub fn outcomes(header: &Header, outcomes: &[Outcome]) -> String {
    let further = header.further();
    let mut names = ["graph", "splits", "contestant", "kind", "seed", "budget", "charged"]
        .map(str::to_owned)
        .to_vec();
    names.extend(["initial", "default", "result", "ratio"].map(str::to_owned));
    names.extend(further.iter().flat_map(columns));
    names.extend(["seconds", "passes", "outputs"].map(str::to_owned));
    names.extend(further.iter().map(|info| format!("{}_outputs", info.name)));
    names.push("claimed_result".to_owned());
    names.extend(further.iter().map(|info| format!("claimed_{}", info.name)));
    names.push("guilty".to_owned());
    let mut csv = Csv::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for outcome in outcomes {
        let first = header.of(outcome);
        let mut cells = vec![
            outcome.graph.clone(),
            outcome.splits.join(" "),
            outcome.contestant.clone(),
            outcome.kind.to_string(),
            outcome.seed.to_string(),
            outcome.budget.to_string(),
            outcome.charged.to_string(),
        ];
        cells.extend(three(first));
        cells.push(number(header.ratio(outcome)));
        for info in further {
            let [initial, default, result] = three(outcome.stage(&info.name));
            match info.ratio {
                Ratio::Removed => cells.extend([initial, default, result]),
                Ratio::Left => cells.extend([result, default]),
            }
        }
        let passes = first.and_then(|stage| stage.passes.as_ref());
        cells.push(number(Some(outcome.seconds)));
        cells.push(passes.map_or(String::new(), |passes| passes.join(" ")));
        let outputs = |stage: &Stage| stage.outputs.as_ref().map(Outputs::to_string);
        let of = |info: &StageInfo| outcome.stage(&info.name);
        // There is no stage before the primary one that it could be the same as.
        let unchecked = || Outputs::Unchecked.to_string();
        cells.push(first.map_or(String::new(), |stage| outputs(stage).unwrap_or_else(unchecked)));
        cells.extend(further.iter().map(|info| of(info).and_then(outputs).unwrap_or_default()));
        cells.push(number(first.and_then(|stage| stage.claimed)));
        cells.extend(further.iter().map(|info| number(of(info).and_then(|stage| stage.claimed))));
        cells.push(outcome.guilty.clone().unwrap_or_default());
        csv.row(cells);
    }
    csv.text()
}

/// The columns of a further stage.
fn columns(info: &StageInfo) -> Vec<String> {
    let name = &info.name;
    match info.ratio {
        Ratio::Removed => ["initial", "default", "result"].map(|c| format!("{name}_{c}")).to_vec(),
        Ratio::Left => vec![name.clone(), format!("{name}_default")],
    }
}

fn three(stage: Option<&Stage>) -> [String; 3] {
    let values = stage.map_or([None; 3], |s| [s.initial, Some(s.default), Some(s.result)]);
    values.map(number)
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
