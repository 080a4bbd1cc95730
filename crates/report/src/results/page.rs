//! The page of results.

use std::fmt::Write;

use super::{
    Header, Outcome, Progress, Ratio, csv,
    figures::{self, Figure, Palette, means, plural, with_interval},
    groups::{groups, repeated},
    summary::{SummaryRow, comparable, summary},
    tables::{
        floor_words, missing_words, outputs_words, runs_table, split_tables, undefined_table,
    },
};
use crate::{
    markup::{details, document, escape, paragraph, section},
    numbers::{capitalised, share},
    style,
};

/// A page, and what it shows as files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The page: one file, without scripts, and nothing is fetched.
    pub html: String,
    /// Names and contents of the figures, each a file that stands alone.
    pub svgs: Vec<(String, String)>,
    /// Names and contents of files of numbers.
    pub csvs: Vec<(String, String)>,
}

/// What the page is to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageOptions {
    /// The page's title.
    pub title: String,
    /// The contestants that are shown graph by graph. If empty: of every kind the best.
    pub by_graph: Vec<String>,
}

/// All figures and tables of some outcomes and training runs. Either may be empty; the page says
/// so.
pub fn results_page(
    header: &Header,
    outcomes: &[Outcome],
    progress: &[Progress],
    title: &str,
) -> Page {
    let options = PageOptions { title: title.to_owned(), ..PageOptions::default() };
    results_page_with(header, outcomes, progress, &options)
}

/// As [`results_page`], with a choice of what is shown.
pub fn results_page_with(
    header: &Header,
    outcomes: &[Outcome],
    progress: &[Progress],
    options: &PageOptions,
) -> Page {
    let rows = summary(header, outcomes);
    let contestants = outcomes.iter().map(|outcome| outcome.contestant.as_str());
    let algorithms = progress.iter().map(|line| line.algorithm.as_str());
    let palette = Palette::of(contestants.chain(algorithms));

    let mut page = Page::default();
    let mut content = top(header, outcomes, progress, &rows, &options.title);
    if !outcomes.is_empty() {
        let drawn = figures(&mut page, header, outcomes, &rows, options, &palette);
        content.push_str(&drawn);
        page.csvs.push(("outcomes.csv".to_owned(), csv::outcomes(header, outcomes)));
    }
    if !progress.is_empty() {
        let mut part = String::new();
        for figure in figures::learning(header, progress, &palette) {
            part.push_str(&page.add(figure));
        }
        part.push_str(&details("All training runs", &runs_table(progress)));
        content.push_str(&section("Learning curves", &part));
        page.csvs.push(("progress.csv".to_owned(), csv::progress(progress)));
    }
    if !outcomes.is_empty() {
        let csv = csv::summary(header, &rows);
        content.push_str(&tables(header, outcomes, &rows, &csv));
        page.csvs.push(("summary.csv".to_owned(), csv));
    }
    let styles = [style::COLOURS, style::PAGE, style::CHART, style::RESULTS];
    page.html = document(&options.title, &styles, &content);
    page
}

impl Page {
    /// Keeps a figure's files, and gives it as a part of the page.
    fn add(&mut self, mut figure: Figure) -> String {
        // Splits whose names differ only in odd signs must not overwrite each other's files.
        let taken = |svgs: &[(String, String)], file: &str| {
            svgs.iter().any(|(name, _)| *name == format!("{file}.svg"))
        };
        let stem = figure.file.clone();
        let mut number = 2;
        while taken(&self.svgs, &figure.file) {
            figure.file = format!("{stem}-{number}");
            number += 1;
        }
        self.svgs.push((format!("{}.svg", figure.file), figure.drawing.file(&figure.title)));
        self.csvs.push((format!("{}.csv", figure.file), figure.csv.clone()));
        figure.markup()
    }
}

fn top(
    header: &Header,
    outcomes: &[Outcome],
    progress: &[Progress],
    rows: &[SummaryRow],
    title: &str,
) -> String {
    let mut out = format!("<header>\n<h1>{}</h1>\n", escape(title));
    if outcomes.is_empty() {
        let words = "No outcomes of evaluations were given, so there is nothing to compare.";
        out.push_str(&paragraph("headline", words));
    } else {
        out.push_str("<ul>\n");
        for part in rows.chunk_by(|a, b| a.split == b.split) {
            let _ = writeln!(out, "<li>{}</li>", escape(&sentence(header, part)));
        }
        out.push_str("</ul>\n");
        let (things, own) = (header.primary().things, &header.baseline);
        let measure = match header.primary().ratio {
            Ratio::Removed => {
                format!("that an order removes, divided by the number that {} removes", own.order)
            }
            Ratio::Left => {
                format!("that {} leaves, divided by the number that an order leaves", own.order)
            }
        };
        let words = format!(
            "The ratio is the number of {things} {measure}: 1 is as good as {}, more is better. It \
             is averaged geometrically over the graphs of each seed, and then plainly over seeds. \
             Intervals hold the mean with 95% confidence, by drawing graphs and seeds anew a \
             thousand times.",
            own.label
        );
        out.push_str(&paragraph("", &words));
        for words in remarks(header, outcomes, rows) {
            out.push_str(&paragraph("caption", &words));
        }
        let missing: usize = rows.iter().map(|row| row.missing).sum();
        if missing > 0 {
            out.push_str(&paragraph("caution", &missing_words(missing)));
        }
        if let Some(words) = outputs_words(rows) {
            out.push_str(&paragraph("caution", &words));
        }
    }
    if progress.is_empty() {
        out.push_str(&paragraph("caption", "No logs of training runs were given."));
    }
    out.push_str("</header>\n");
    out
}

/// What is best in a split.
fn sentence(header: &Header, rows: &[SummaryRow]) -> String {
    let split = &rows[0].split;
    let ratio = |row: &&SummaryRow| row.primary().mean.map_or(f64::NEG_INFINITY, |mean| mean.value);
    let best = comparable(rows).max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let Some((row, mean)) = best.and_then(|row| Some((row, row.primary().mean?))) else {
        return format!("{split}: no graph has a ratio.");
    };
    format!(
        "{split}: {} ({}) reaches a ratio of {}, and is never worse than {} on {} of {}.",
        row.contestant,
        means(row),
        with_interval(mean.value, mean.low, mean.high),
        header.baseline.order,
        share(row.never_worse),
        plural(row.graphs, "graph")
    )
}

/// What a reader must know of the numbers.
fn remarks(header: &Header, outcomes: &[Outcome], rows: &[SummaryRow]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some((count, _)) = undefined_table(header, outcomes) {
        remarks.push(format!(
            "{} no ratio, since {} there; they enter no mean and are listed at the end.",
            if count == 1 { "1 graph has".to_owned() } else { format!("{count} graphs have") },
            header.why_no_ratio()
        ));
    }
    let floored: usize = rows.iter().map(|row| row.primary().floored).sum();
    if floored > 0 {
        remarks.push(floor_words(floored));
    }
    let repeats = repeated(outcomes);
    if repeats > 0 {
        remarks.push(format!(
            "{} a later one of the same graph, contestant, budget and seed, which counts instead.",
            if repeats == 1 {
                "1 outcome was followed by".to_owned()
            } else {
                format!("{repeats} outcomes were followed by")
            }
        ));
    }
    remarks
}

/// The figures of an evaluation, whose files the page keeps.
fn figures(
    page: &mut Page,
    header: &Header,
    outcomes: &[Outcome],
    rows: &[SummaryRow],
    options: &PageOptions,
    palette: &Palette,
) -> String {
    let mut content = String::new();
    let groups = groups(outcomes);
    let splits: Vec<&str> =
        rows.chunk_by(|a, b| a.split == b.split).map(|part| part[0].split.as_str()).collect();
    let mut add = |heading: &str, figures: Vec<Figure>, otherwise: &str| {
        let part: String = figures.into_iter().map(|figure| page.add(figure)).collect();
        let part = if part.is_empty() { paragraph("", otherwise) } else { part };
        content.push_str(&section(heading, &part));
    };
    let algorithms = figures::algorithms(header, rows, palette);
    add(figures::ALGORITHMS, algorithms.into_iter().collect(), "There is no contestant to show.");
    let by_graph = splits.iter().filter_map(|split| {
        figures::by_graph(header, &groups, rows, split, &options.by_graph, palette)
    });
    add(
        "Figure 3. Graph by graph",
        by_graph.collect(),
        "None of the contestants to be shown has a ratio on any graph.",
    );
    add(
        figures::ENHANCEMENTS,
        figures::enhancements(header, rows, palette).into_iter().collect(),
        "There are not two contestants whose names begin with \"ppo\" to compare.",
    );
    let budgets = splits.iter().filter_map(|split| figures::budgets(header, rows, split, palette));
    add(
        "Equal budgets: rollouts, searches and baselines",
        budgets.collect(),
        "All outcomes of a split have the same budget; see the first figure.",
    );
    content
}

/// All numbers of the summary, and the graphs that are in none of them.
fn tables(header: &Header, outcomes: &[Outcome], rows: &[SummaryRow], csv: &str) -> String {
    let mut tables = String::new();
    for part in rows.chunk_by(|a, b| a.split == b.split) {
        let _ =
            writeln!(tables, "<h3>{}</h3>\n{}", escape(&part[0].split), split_tables(header, part));
    }
    let mut words = "\"28 of 30\" graphs: 2 have no ratio. Best and worst are ratios of single \
                     graphs and seeds. Time is the median over graphs and seeds."
        .to_owned();
    for note in header.notes(false) {
        words.push(' ');
        words.push_str(&note);
    }
    let link = csv::link("summary.csv", csv);
    let _ = writeln!(tables, "<p class=\"caption\">{} {link}.</p>", escape(&words));
    let mut out = section("All figures", &tables);
    if let Some((count, table)) = undefined_table(header, outcomes) {
        let from = match header.primary().ratio {
            Ratio::Removed => "from",
            Ratio::Left => "of",
        };
        let words = format!(
            "{} {from} them. \"Fewest\" is the least that any contestant left.",
            capitalised(&header.why_no_ratio())
        );
        let heading = format!("Graphs without a ratio ({count})");
        out.push_str(&section(&heading, &format!("{}{table}", paragraph("", &words))));
    }
    out
}
