//! The summary as tables: for a terminal, and for the page.

use std::collections::BTreeMap;

use xla_gym_common::Table;

use super::{
    Header, Outcome, Progress, Ratio, Stage,
    figures::plural,
    summary::{Estimate, Extreme, SummaryRow},
};
use crate::{
    markup::{Cell, details, table},
    numbers::{ABSENT, amount, capitalised, duration, grouped, ratio, share},
    text::{fitted, wrapped},
};

/// The summary as plain text, two tables for each split, at most 100 columns wide unless the
/// numbers alone need more.
pub fn summary_text(header: &Header, rows: &[SummaryRow]) -> String {
    if rows.is_empty() {
        return "There are no outcomes to summarise.\n".to_owned();
    }
    let mut blocks: Vec<String> = rows
        .chunk_by(|a, b| a.split == b.split)
        .map(|part| {
            let (orders, further) = (orders(part), further(header, part));
            let (orders, further) = (text_table(part, &orders), text_table(part, &further));
            format!(
                "{}
{orders}
{further}",
                wrapped(&part[0].split)
            )
        })
        .collect();
    let (own, things) = (&header.baseline.order, header.primary().things);
    let measure = match header.primary().ratio {
        Ratio::Removed => format!("{things} removed beside those that {own} removes"),
        Ratio::Left => format!("{things} that {own} leaves beside those that are left"),
    };
    let notes: String = header.notes(true).iter().map(|note| format!("{note} ")).collect();
    blocks.push(wrapped(&format!(
        "Ratios: {measure}, above 1 is better; mean over seeds of the geometric mean over graphs, \
         with its 95% interval. Graphs of which {} have no ratio and enter no mean: \"28 of 30\" \
         have one. Not worse: outcomes, one for each graph and seed, no larger than by {own}; \
         never: graphs by no seed larger. {notes}Time: the median of the graphs.",
        header.why_no_ratio(),
    )));
    let floored: usize = rows.iter().map(|row| row.primary().floored).sum();
    if floored > 0 {
        blocks.push(wrapped(&floor_words(floored)));
    }
    let missing: usize = rows.iter().map(|row| row.missing).sum();
    if missing > 0 {
        blocks.push(wrapped(&missing_words(missing)));
    }
    blocks.extend(outputs_words(rows).map(|words| wrapped(&words)));
    blocks.join("\n")
}

/// What is said of ratios that were raised.
pub fn floor_words(floored: usize) -> String {
    format!(
        "{} below 0.01 entered the means as 0.01, since a geometric mean knows neither 0 nor less.",
        plural(floored, "ratio")
    )
}

/// What is said of outcomes that are not there.
pub fn missing_words(missing: usize) -> String {
    format!(
        "Of {} there is no outcome, so that seeds are not compared on the same graphs.",
        plural(missing, "pair") + " of graph and seed"
    )
}

/// What is said of outcomes that were not found to compute what they should.
pub fn outputs_words(rows: &[SummaryRow]) -> Option<String> {
    let sum = |part: fn(&SummaryRow) -> usize| rows.iter().map(part).sum::<usize>();
    let wrong = sum(|row| row.outputs.wrong);
    let unknown = sum(|row| row.outputs.not_comparable);
    let unchecked = sum(|row| row.outputs.unchecked);
    let mut words = Vec::new();
    if wrong + unknown > 0 {
        words.push(format!(
            "Proven: the share of outcomes of which all that counts was run beside the program as \
             emitted and found equal. Of the others, {wrong} differ or are refused by the compiler, \
             and {unknown} cannot be compared: what was not found equal counts as if nothing had \
             been done."
        ));
    }
    if unchecked > 0 {
        words.push(format!(
            "{} never run: nobody knows whether {} computes what it should.",
            if unchecked == 1 {
                "One outcome was".to_owned()
            } else {
                format!("{} outcomes were", grouped(unchecked as u64))
            },
            if unchecked == 1 { "it" } else { "each of them" },
        ));
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// Names of columns after those of [`key`], and how each row fills them.
struct Columns {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The ratio at the primary stage, and what it rests on.
fn orders(rows: &[SummaryRow]) -> Columns {
    let names = ["graphs", "seeds", "ratio", "95%", "not worse", "never", "best", "worst"];
    let extreme = |extreme: &Option<Extreme>| {
        extreme.as_ref().map_or(ABSENT.to_owned(), |extreme| ratio(extreme.ratio))
    };
    let fill = |row: &SummaryRow| {
        let primary = row.primary();
        vec![
            match primary.undefined {
                0 => grouped(row.graphs as u64),
                _ => format!("{} of {}", primary.graphs, row.graphs),
            },
            grouped(row.seeds as u64),
            value(&primary),
            interval(&primary),
            share(row.not_worse),
            share(row.never_worse),
            extreme(&row.best),
            extreme(&row.worst),
        ]
    };
    Columns { names: names.map(str::to_owned).to_vec(), rows: rows.iter().map(fill).collect() }
}

/// Everything else.
fn further(header: &Header, rows: &[SummaryRow]) -> Columns {
    let mut names = Vec::new();
    for info in header.further() {
        names.push(info.label.clone());
        names.extend(info.with_interval.then(|| "95%".to_owned()));
    }
    names.extend(["time", "proven"].map(str::to_owned));
    let fill = |row: &SummaryRow| {
        let mut cells = Vec::new();
        for info in header.further() {
            let stage = row.stages.iter().find(|stage| stage.stage == info.name);
            let estimate = stage.map(|stage| stage.estimate).unwrap_or_default();
            cells.push(value(&estimate));
            cells.extend(info.with_interval.then(|| interval(&estimate)));
        }
        cells.push(duration(row.median_seconds * 1e9));
        cells.push(match row.outputs.all() {
            all if row.outputs.unchecked == all => ABSENT.to_owned(),
            all => share(row.outputs.equal as f64 / all as f64),
        });
        cells
    };
    Columns { names, rows: rows.iter().map(fill).collect() }
}

fn text_table(rows: &[SummaryRow], columns: &Columns) -> String {
    let names: Vec<String> = columns.names.iter().map(|name| format!(">{name}")).collect();
    let mut header = vec!["contestant", "kind", ">budget"];
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for (row, cells) in rows.iter().zip(&columns.rows) {
        table.row(key(row).into_iter().chain(cells.iter().cloned()));
    }
    fitted(&table, 0)
}

fn page_table(rows: &[SummaryRow], columns: &Columns) -> String {
    let mut header = vec!["contestant", "kind", "budget"];
    header.extend(columns.names.iter().map(String::as_str));
    let cells = |(row, further): (&SummaryRow, &Vec<String>)| {
        let [contestant, kind, budget] = key(row);
        let mut cells = vec![Cell::name(&contestant), Cell::text(&kind), Cell::number(budget)];
        cells.extend(further.iter().map(Cell::number));
        cells
    };
    table(&header, &rows.iter().zip(&columns.rows).map(cells).collect::<Vec<_>>(), false)
}

/// The rows of one split, as tables of the page.
pub fn split_tables(header: &Header, rows: &[SummaryRow]) -> String {
    let mut titles: Vec<&str> = header.further().iter().map(|info| info.title.as_str()).collect();
    titles.extend(["median time of a graph", "share proven"]);
    let hidden = page_table(rows, &further(header, rows));
    page_table(rows, &orders(rows)) + &details(&capitalised(&titles.join(", ")), &hidden)
}

fn key(row: &SummaryRow) -> [String; 3] {
    [row.contestant.clone(), row.kind.to_string(), grouped(row.budget)]
}

fn value(estimate: &Estimate) -> String {
    estimate.mean.map_or(ABSENT.to_owned(), |mean| ratio(mean.value))
}

fn interval(estimate: &Estimate) -> String {
    estimate.mean.map_or(ABSENT.to_owned(), |mean| format!("{:.2}–{:.2}", mean.low, mean.high))
}

/// Graphs without a ratio, and the least that anybody came to.
pub fn undefined_table(header: &Header, outcomes: &[Outcome]) -> Option<(usize, String)> {
    let mut graphs: BTreeMap<&str, (&Outcome, &Stage)> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| header.ratio(outcome).is_none()) {
        let Some(stage) = header.of(outcome) else { continue };
        let least = graphs.entry(&outcome.graph).or_insert((outcome, stage));
        if stage.result < least.1.result {
            *least = (outcome, stage);
        }
    }
    let rows: Vec<Vec<Cell>> = graphs
        .values()
        .map(|(outcome, stage)| {
            let better = stage.result < stage.default;
            let who = if better { outcome.contestant.as_str() } else { "nobody" };
            let order = stage.result.total_cmp(&stage.default);
            vec![
                Cell::name(&outcome.graph),
                Cell::name(&outcome.splits.join(", ")),
                Cell::number(stage.initial.map_or(ABSENT.to_owned(), amount)),
                Cell::number(amount(stage.default)),
                Cell::number(amount(stage.result)).judged(order),
                Cell::name(who),
            ]
        })
        .collect();
    let own = header.baseline.label.as_str();
    let better = format!("better than {own}");
    let header = ["graph", "splits", "start", own, "fewest", better.as_str()];
    (!rows.is_empty()).then(|| (rows.len(), table(&header, &rows, false)))
}

/// A line for every training run.
pub fn runs_table(progress: &[Progress]) -> String {
    let mut runs: BTreeMap<(&str, u64, &str), Vec<&Progress>> = BTreeMap::new();
    for line in progress {
        runs.entry((&line.algorithm, line.seed, &line.run)).or_default().push(line);
    }
    let rows: Vec<Vec<Cell>> = runs
        .into_iter()
        .map(|((algorithm, seed, run), lines)| {
            let last = lines[lines.len() - 1];
            let best = lines.iter().filter_map(|line| line.validation).reduce(f64::max);
            let share_of_time = |part: f64| share(part / last.seconds);
            vec![
                Cell::name(algorithm),
                Cell::number(seed.to_string()),
                Cell::name(run),
                Cell::number(grouped(last.step)),
                Cell::number(duration(last.seconds * 1e9)),
                Cell::number(share_of_time(last.environment_seconds)),
                Cell::number(share_of_time(last.learner_seconds)),
                Cell::number(ratio(last.ratio)),
                Cell::number(best.map_or(ABSENT.to_owned(), ratio)),
            ]
        })
        .collect();
    let header = [
        "algorithm",
        "seed",
        "run",
        "steps",
        "time",
        "in environments",
        "learning",
        "last episodes' ratio",
        "best validation",
    ];
    table(&header, &rows, false)
}
