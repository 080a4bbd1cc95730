//! The summary as tables: for a terminal, and for the page.

use std::collections::BTreeMap;

use super::{
    Outcome, Progress,
    figures::plural,
    summary::{Estimate, Extreme, SummaryRow},
};
use crate::{
    markup::{Cell, details, table},
    numbers::{ABSENT, duration, grouped, ratio, share},
    text::{Table, wrapped},
};

/// The summary as plain text, two tables for each split, at most 100 columns wide unless the
/// numbers alone need more.
pub fn summary_text(rows: &[SummaryRow]) -> String {
    if rows.is_empty() {
        return "There are no outcomes to summarise.\n".to_owned();
    }
    let mut blocks: Vec<String> = rows
        .chunk_by(|a, b| a.split == b.split)
        .map(|part| {
            let (orders, further) = (text_table(part, ORDERS), text_table(part, FURTHER));
            format!(
                "{}
{orders}
{further}",
                wrapped(&part[0].split)
            )
        })
        .collect();
    blocks.push(wrapped(
        "Ratios: operations removed beside those that XLA's own order removes, above 1 is better; \
         mean over seeds of the geometric mean over graphs, with its 95% interval. Graphs of \
         which XLA's own order removes nothing have no ratio and enter no mean: \"28 of 30\" have \
         one. Not worse: outcomes, one for each graph and seed, no larger than by XLA's own order; \
         never: graphs by no seed larger. Kernels: XLA's own by the result's. Time: the median of \
         the graphs.",
    ));
    let floored: usize = rows.iter().map(|row| row.order.floored).sum();
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

/// Names of columns after those of [`key`], and how a row fills them.
type Columns = (&'static [&'static str], fn(&SummaryRow) -> Vec<String>);

/// The ratio at the best state on the way, and what it rests on.
const ORDERS: Columns =
    (&["graphs", "seeds", "ratio", "95%", "not worse", "never", "best", "worst"], |row| {
        let extreme = |extreme: &Option<Extreme>| {
            extreme.as_ref().map_or(ABSENT.to_owned(), |extreme| ratio(extreme.ratio))
        };
        vec![
            match row.order.undefined {
                0 => grouped(row.graphs as u64),
                _ => format!("{} of {}", row.order.graphs, row.graphs),
            },
            grouped(row.seeds as u64),
            value(&row.order),
            interval(&row.order),
            share(row.not_worse),
            share(row.never_worse),
            extreme(&row.best),
            extreme(&row.worst),
        ]
    });

/// Everything else.
const FURTHER: Columns = (&["at end", "legal", "95%", "kernels", "95%", "time", "proven"], |row| {
    vec![
        value(&row.end),
        value(&row.legal),
        interval(&row.legal),
        value(&row.kernels),
        interval(&row.kernels),
        duration(row.median_seconds * 1e9),
        match row.outputs.all() {
            all if row.outputs.unchecked == all => ABSENT.to_owned(),
            all => share(row.outputs.equal as f64 / all as f64),
        },
    ]
});

fn text_table(rows: &[SummaryRow], (names, fill): Columns) -> String {
    let names: Vec<String> = names.iter().map(|name| format!(">{name}")).collect();
    let mut header = vec!["contestant", "kind", ">budget"];
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for row in rows {
        table.row(key(row).into_iter().chain(fill(row)).collect());
    }
    table.render(0)
}

fn page_table(rows: &[SummaryRow], (names, fill): Columns) -> String {
    let mut header = vec!["contestant", "kind", "budget"];
    header.extend(names);
    let cells = |row: &SummaryRow| {
        let [contestant, kind, budget] = key(row);
        let mut cells = vec![Cell::name(&contestant), Cell::text(&kind), Cell::number(budget)];
        cells.extend(fill(row).into_iter().map(Cell::number));
        cells
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>(), false)
}

/// The rows of one split, as tables of the page.
pub fn split_tables(rows: &[SummaryRow]) -> String {
    let further = "At the end of the trajectory, legal programs, kernels, median time of a graph, share proven";
    page_table(rows, ORDERS) + &details(further, &page_table(rows, FURTHER))
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

/// Graphs of which XLA's own order removes nothing, and the least that anybody came to.
pub fn undefined_table(outcomes: &[Outcome]) -> Option<(usize, String)> {
    let mut graphs: BTreeMap<&str, &Outcome> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.order.ratio().is_none()) {
        let least = graphs.entry(&outcome.graph).or_insert(outcome);
        if outcome.order.result < least.order.result {
            *least = outcome;
        }
    }
    let rows: Vec<Vec<Cell>> = graphs
        .values()
        .map(|outcome| {
            let order = outcome.order;
            let who =
                if order.result < order.default { outcome.contestant.as_str() } else { "nobody" };
            vec![
                Cell::name(&outcome.graph),
                Cell::name(&outcome.splits.join(", ")),
                Cell::number(grouped(order.initial)),
                Cell::number(grouped(order.default)),
                Cell::number(grouped(order.result)).judged(order.result.cmp(&order.default)),
                Cell::name(who),
            ]
        })
        .collect();
    let header = ["graph", "splits", "start", "XLA's own", "fewest", "better than XLA's own"];
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
