//! What a reader of the page of results relies on.

#[allow(dead_code)]
#[path = "../examples/results_page.rs"]
mod sample;
mod well_formed;

use std::{collections::BTreeSet, sync::LazyLock};

use well_formed::check_balance;
use xla_gym_report::results::{
    Estimate, FLOOR, Header, Interval, Kind, Outcome, Page, PageOptions, Progress, Stage,
    SummaryRow, results_page_with, summary_text,
};

fn results_page(outcomes: &[Outcome], progress: &[Progress], title: &str) -> Page {
    xla_gym_report::results::results_page(&sample::header(), outcomes, progress, title)
}

fn summary(outcomes: &[Outcome]) -> Vec<SummaryRow> {
    xla_gym_report::results::summary(&sample::header(), outcomes)
}

const HOSTILE: &str = "</svg><script>alert(\"1\")</script>&amp;'\u{1b}[31m\0";

fn outcome(graph: &str, contestant: &str, seed: u64, counts: [u64; 3]) -> Outcome {
    let [initial, default, result] = counts.map(|count| count as f64);
    Outcome {
        graph: graph.to_owned(),
        splits: vec!["test".to_owned()],
        contestant: contestant.to_owned(),
        seed,
        budget: 10,
        stages: vec![Stage::new("order", initial, default, result)],
        ..Outcome::default()
    }
}

/// The stage that ratios are of.
fn order(outcome: &Outcome) -> &Stage {
    outcome.stage("order").unwrap()
}

/// What the order removed, beside what the baseline removes.
fn ratio(outcome: &Outcome) -> Option<f64> {
    let Stage { initial, default, result, .. } = order(outcome);
    let initial = initial.unwrap();
    (initial > *default).then(|| (initial - result) / (initial - default))
}

/// What a row says of a stage.
fn stage(row: &SummaryRow, name: &str) -> Estimate {
    row.stages.iter().find(|stage| stage.stage == name).unwrap().estimate
}

fn file<'a>(files: &'a [(String, String)], name: &str) -> &'a str {
    let found = files.iter().find(|file| file.0 == name);
    &found.unwrap_or_else(|| panic!("{name} among {:?}", names(files))).1
}

fn names(files: &[(String, String)]) -> Vec<&str> {
    files.iter().map(|file| file.0.as_str()).collect()
}

fn check_page(page: &Page) {
    check_balance(&page.html);
    assert!(page.html.starts_with("<!DOCTYPE html>"));
    for (name, svg) in &page.svgs {
        check_balance(svg);
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
    }
    let files = page.svgs.iter().chain(&page.csvs).map(|file| file.0.as_str());
    let different: BTreeSet<&str> = files.clone().collect();
    assert_eq!(different.len(), files.clone().count(), "two files of one name");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    assert!(files.clone().all(|name| name.chars().all(plain)), "a name that is a path");
    // What is drawn on the page can be had as a file, and its numbers too.
    assert_eq!(page.html.matches("<figure>").count(), page.svgs.len());
    for (name, _) in &page.svgs {
        let csv = name.replace(".svg", ".csv");
        assert!(page.html.contains(&format!("download=\"{csv}\"")), "{csv}");
        file(&page.csvs, &csv);
    }
    for (name, csv) in &page.csvs {
        assert!(csv.ends_with("\r\n") && !csv.contains("NaN"), "{name}");
    }
}

/// The mean over seeds of geometric means over graphs, as one would write it down.
fn naive_mean(outcomes: &[&Outcome]) -> f64 {
    let seeds: BTreeSet<u64> = outcomes.iter().map(|outcome| outcome.seed).collect();
    let mut sum = 0.0;
    for seed in &seeds {
        let (mut product, mut count) = (1.0f64, 0);
        for outcome in outcomes.iter().filter(|outcome| outcome.seed == *seed) {
            if let Some(ratio) = ratio(outcome) {
                product *= ratio.max(0.01);
                count += 1;
            }
        }
        sum += product.powf(1.0 / f64::from(count));
    }
    sum / seeds.len() as f64
}

/// The page of the sample takes a while without optimisation, so there is one for all tests.
fn sample_page() -> &'static Page {
    static PAGE: LazyLock<Page> =
        LazyLock::new(|| results_page(&sample::outcomes(), &sample::progress(), "Sample"));
    &PAGE
}

/// As [`sample_page`].
fn sample_summary() -> &'static [SummaryRow] {
    static ROWS: LazyLock<Vec<SummaryRow>> = LazyLock::new(|| summary(&sample::outcomes()));
    &ROWS
}

#[test]
fn the_summary_agrees_with_a_naive_one() {
    let outcomes = sample::outcomes();
    let rows = sample_summary();
    // 8 contestants with one budget, 4 with four, in two splits.
    assert_eq!(rows.len(), 2 * (8 + 16));
    for row in rows {
        let of_row: Vec<&Outcome> = outcomes
            .iter()
            .filter(|outcome| {
                outcome.splits.contains(&row.split)
                    && outcome.contestant == row.contestant
                    && outcome.kind == row.kind
                    && outcome.budget == row.budget
            })
            .collect();
        let graphs: BTreeSet<&str> = of_row.iter().map(|outcome| outcome.graph.as_str()).collect();
        assert_eq!(row.graphs, graphs.len());
        assert_eq!(row.missing, 0);
        let Interval { value, low, high } = row.primary().mean.unwrap();
        assert!((value - naive_mean(&of_row)).abs() < 1e-9, "{row:?}");
        assert!(low <= value && value <= high, "{row:?}");
        let never_worse = graphs.iter().filter(|graph| {
            of_row
                .iter()
                .filter(|outcome| outcome.graph == **graph)
                .all(|outcome| order(outcome).result <= order(outcome).default)
        });
        assert_eq!(row.never_worse, never_worse.count() as f64 / graphs.len() as f64);
        let not_worse =
            of_row.iter().filter(|outcome| order(outcome).result <= order(outcome).default);
        assert_eq!(row.not_worse, not_worse.count() as f64 / of_row.len() as f64);
        let ratios = || of_row.iter().filter_map(|outcome| ratio(outcome));
        assert_eq!(row.best.as_ref().unwrap().ratio, ratios().fold(f64::MIN, f64::max));
        assert_eq!(row.worst.as_ref().unwrap().ratio, ratios().fold(f64::MAX, f64::min));
        assert_eq!(row.primary().floored, ratios().filter(|ratio| *ratio < FLOOR).count());
        assert_eq!(stage(row, "end").mean.is_some(), row.kind == Kind::Rollout);
        assert!(stage(row, "kernels").mean.is_some() && stage(row, "legal").mean.is_some());
    }
    assert!(rows.iter().any(|row| row.primary().floored > 0), "the sample has a failure");
}

#[test]
fn the_order_of_outcomes_does_not_matter() {
    let mut outcomes = sample::outcomes();
    outcomes.reverse();
    assert_eq!(summary(&outcomes), sample_summary());
}

fn only(outcomes: &[Outcome]) -> SummaryRow {
    let mut rows = summary(outcomes);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn kernels_end_and_legal_are_means_of_what_is_known() {
    let mut first = outcome("a", "ppo", 0, [100, 80, 80]);
    first.stages.extend([
        Stage::left("kernels", 10.0, 5.0),
        Stage::new("end", 100.0, 80.0, 90.0),
        Stage::new("legal", 100.0, 100.0, 90.0),
    ]);
    first.seconds = 1.0;
    let mut second = outcome("b", "ppo", 0, [100, 80, 80]);
    second.stages.push(Stage::left("kernels", 10.0, 20.0));
    second.seconds = 4.0;
    let row = only(&[first, second]);
    // Twice as good and half as good.
    assert!((stage(&row, "kernels").mean.unwrap().value - 1.0).abs() < 1e-12);
    assert_eq!(stage(&row, "kernels").graphs, 2);
    assert!((stage(&row, "end").mean.unwrap().value - 0.5).abs() < 1e-12);
    assert_eq!(stage(&row, "end").graphs, 1);
    assert_eq!(stage(&row, "legal"), Estimate { undefined: 1, ..Estimate::default() });
    assert_eq!(row.median_seconds, 2.5);
}

#[test]
fn graphs_without_a_ratio_are_counted_and_shown() {
    let outcomes = [
        outcome("fine", "ppo", 0, [100, 80, 75]),
        outcome("nothing-removed", "ppo", 0, [50, 50, 48]),
        outcome("made-larger", "ppo", 0, [50, 60, 61]),
    ];
    let row = only(&outcomes);
    assert_eq!((row.graphs, row.primary().graphs, row.primary().undefined), (3, 1, 2));
    assert!((row.primary().mean.unwrap().value - 1.25).abs() < 1e-12);
    assert!((row.never_worse - 2.0 / 3.0).abs() < 1e-12, "they count where no ratio is needed");
    assert!(summary_text(&sample::header(), &[row]).contains("1 of 3"));

    let page = results_page(&outcomes, &[], "t");
    check_page(&page);
    assert!(page.html.contains("2 graphs have no ratio"));
    assert!(page.html.contains("Graphs without a ratio (2)"));
    assert!(page.html.contains("3 graphs, 2 without a ratio"));
    let csv = file(&page.csvs, "figure-3-graphs-test.csv");
    assert!(csv.contains(",,nothing-removed,,,,1,50,50\r\n"), "{csv}");
    assert!(file(&page.csvs, "outcomes.csv").contains("made-larger"));

    // Where nothing has a ratio, the contestant is still there.
    let page = results_page(&outcomes[1..], &[], "t");
    check_page(&page);
    assert!(page.html.contains("no graph has a ratio"));
    assert!(page.html.contains(">no ratio</text>"));
}

#[test]
fn ratios_at_the_floor_are_said() {
    let outcomes = [outcome("a", "ppo", 0, [100, 80, 100]), outcome("b", "ppo", 0, [100, 80, 80])];
    let row = only(&outcomes);
    assert_eq!(row.primary().floored, 1);
    assert!((row.primary().mean.unwrap().value - 0.1).abs() < 1e-12);
    assert_eq!(row.worst.as_ref().unwrap().ratio, 0.0, "the worst is as it is");
    let words = "1 ratio below 0.01 entered the means as 0.01";
    assert!(summary_text(&sample::header(), &[row]).contains(words));
    assert!(results_page(&outcomes, &[], "t").html.contains(words));
}

#[test]
fn holes_and_repeats_are_said() {
    let outcomes = [
        outcome("a", "ppo", 0, [100, 80, 70]),
        outcome("a", "ppo", 1, [100, 80, 70]),
        outcome("b", "ppo", 0, [100, 80, 99]),
        outcome("b", "ppo", 0, [100, 80, 80]),
    ];
    let row = only(&outcomes);
    assert_eq!((row.graphs, row.seeds, row.missing), (2, 2, 1));
    assert_eq!(row.worst.as_ref().unwrap().ratio, 1.0, "the last of several counts");
    let html = results_page(&outcomes, &[], "t").html;
    assert!(html.contains("Of 1 pair of graph and seed there is no outcome"));
    assert!(html.contains("1 outcome was followed by a later one"));
    // A graph that belongs to no split is not lost.
    let mut alone = outcome("c", "ppo", 0, [100, 80, 70]);
    alone.splits.clear();
    assert_eq!(only(&[alone]).split, "(no split)");
}

#[test]
fn the_sample_has_every_figure() {
    let page = sample_page();
    check_page(page);
    assert_eq!(
        names(&page.svgs),
        [
            "figure-2-algorithms.svg",
            "figure-3-graphs-diverse-test.svg",
            "figure-3-graphs-unseen-test.svg",
            "figure-4-enhancements.svg",
            "budgets-diverse-test.svg",
            "budgets-unseen-test.svg",
            "learning-validation.svg",
            "learning-episodes.svg",
        ]
    );
    for name in ["summary.csv", "outcomes.csv", "progress.csv"] {
        file(&page.csvs, name);
    }
    // A mark for each graph with a ratio, for the best of each kind.
    let marks = |svg: &str| svg.matches("by XLA&#39;s own order</title>").count();
    assert_eq!(marks(file(&page.svgs, "figure-3-graphs-diverse-test.svg")), 3 * 56);
    assert!(page.html.contains("(rollout, 45): never worse on "));
    // Enhancements have their own figure, and only there.
    let algorithms = file(&page.svgs, "figure-2-algorithms.svg");
    assert!(algorithms.contains("trpo") && !algorithms.contains("ppo-mask"));
    let enhancements = file(&page.svgs, "figure-4-enhancements.svg");
    assert!(enhancements.contains("ppo-mask") && !enhancements.contains("trpo"));
    let learning = file(&page.csvs, "learning-validation.csv");
    assert_eq!(learning.lines().count(), 1 + 3 * 20);
    let progress = file(&page.csvs, "progress.csv");
    assert!(progress.lines().next().unwrap().ends_with(",validation,entropy"));
}

#[test]
fn who_met_fewer_graphs_is_marked_and_does_not_lead() {
    let outcomes = [
        outcome("a", "thorough", 0, [100, 80, 78]),
        outcome("b", "thorough", 0, [100, 80, 78]),
        outcome("a", "choosy", 0, [100, 80, 50]),
    ];
    let page = results_page(&outcomes, &[], "t");
    let headline = page.html.split("</header>").next().unwrap();
    assert!(headline.contains("thorough") && !headline.contains("choosy"), "{headline}");
    let figure = file(&page.svgs, "figure-2-algorithms.svg");
    assert!(figure.contains("choosy [1]") && figure.contains(">thorough<"), "{figure}");
    let by_graph = names(&page.csvs).into_iter().find(|name| name.starts_with("figure-3")).unwrap();
    assert!(!file(&page.csvs, by_graph).contains("choosy"));
}

#[test]
fn contestants_to_be_shown_can_be_chosen() {
    let options = PageOptions {
        title: "t".to_owned(),
        by_graph: vec!["trpo".to_owned(), "nobody".to_owned()],
    };
    let mut outcomes = sample::outcomes();
    outcomes.retain(|outcome| outcome.kind == Kind::Rollout && outcome.seed == 0);
    let page = results_page_with(&sample::header(), &outcomes, &[], &options);
    let csv = file(&page.csvs, "figure-3-graphs-unseen-test.csv");
    let contestants: BTreeSet<&str> =
        csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(contestants, BTreeSet::from(["trpo"]));
}

#[test]
fn nothing_given_is_said() {
    let page = results_page(&[], &[], "Nothing yet");
    check_page(&page);
    assert!(page.html.contains("No outcomes of evaluations were given"));
    assert!(page.html.contains("No logs of training runs were given"));
    assert!(page.svgs.is_empty() && page.csvs.is_empty());
    assert!(summary(&[]).is_empty());
    assert_eq!(summary_text(&sample::header(), &[]), "There are no outcomes to summarise.\n");

    check_page(&results_page(&[], &sample::progress(), "Training alone"));
    let page = results_page(&[outcome("a", "random", 0, [100, 80, 70])], &[], "One");
    check_page(&page);
    assert!(page.html.contains("There are not two contestants whose names begin with"));
    assert!(page.html.contains("All outcomes of a split have the same budget"));
}

#[test]
fn texts_are_escaped_everywhere() {
    let word = || HOSTILE.to_owned();
    let hostile = |splits: Vec<String>, budget| Outcome {
        graph: word(),
        splits,
        contestant: format!("ppo{HOSTILE}"),
        budget,
        stages: vec![
            Stage { passes: Some(vec![word()]), ..Stage::new("order", 10.0, 8.0, 7.0) },
            Stage { passes: Some(vec![word()]), ..Stage::new("legal", 10.0, 8.0, 7.0) },
        ],
        refused: Some(word()),
        ..Outcome::default()
    };
    let mut undefined = hostile(vec![word()], 5);
    undefined.graph.push('2');
    undefined.stages[0].initial = Some(8.0);
    let mut other = hostile(vec![word()], 7);
    other.contestant.push('2');
    // The names of these two splits become the same as names of files.
    let alike = hostile(vec!["a/b".to_owned(), "a:b".to_owned(), "..".to_owned()], 3);
    let outcomes = [hostile(vec![word()], 5), undefined, other, alike];
    let progress = Progress {
        run: word(),
        algorithm: word(),
        validation: Some(1.0),
        figures: [(word(), 1.0)].into(),
        ..Progress::default()
    };
    let page = results_page(&outcomes, &[progress], HOSTILE);
    check_page(&page);
    let files = page.svgs.iter().map(|file| &file.1);
    for text in files.chain([&page.html]) {
        assert!(!text.contains("<script"), "a script got in");
        assert!(!text.contains(['\0', '\u{1b}']), "a control character got in");
    }
    let text = summary_text(&sample::header(), &summary(&outcomes));
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text}");
}

#[test]
fn nothing_comes_from_elsewhere() {
    let page = sample_page();
    for outside in ["http", "src=", "url(", "@import", "<script", "<link", "//"] {
        assert!(!page.html.contains(outside), "{outside} in a page that must stand alone");
    }
    let links = page.html.matches("href=").count();
    assert_eq!(page.html.matches("href=\"data:text/csv;charset=utf-8,").count(), links);
    for (name, svg) in &page.svgs {
        let svg = svg.replacen("http://www.w3.org/2000/svg", "", 1);
        for outside in ["http", "href", "url(", "@import", "<script", "var("] {
            assert!(!svg.contains(outside), "{outside} in {name}");
        }
    }
}

#[test]
fn extreme_numbers_break_nothing() {
    let most = u64::MAX;
    let cases = [[most, 0, 0], [most, most - 1, 0], [1, 0, most], [0, 0, 0], [0, most, most]];
    for counts in cases {
        for budget in [0, 1, most] {
            let mut one = outcome("a", "ppo", most, counts);
            one.budget = budget;
            one.seconds = f64::MAX;
            let mut two = one.clone();
            two.budget = budget / 2 + 1;
            check_page(&results_page(&[one, two], &[], "t"));
        }
    }
    let line = |step, ratio| Progress { step, ratio, seconds: 0.0, ..Progress::default() };
    for lines in [
        vec![line(0, 0.0)],
        vec![line(most, 1e300), line(0, -1e300)],
        vec![line(5, f64::NAN)],
        vec![line(5, 1.0), line(6, f64::INFINITY), line(7, 1.0)],
    ] {
        check_page(&results_page(&[], &lines, "t"));
    }
}

#[test]
fn tables_of_text_fit_a_terminal() {
    let text = summary_text(&sample::header(), sample_summary());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("ppo-mask-recurrent  rollout"), "{text}");
}

#[test]
fn lines_of_json_are_read() {
    for outcome in sample::outcomes().into_iter().take(3) {
        // Not every fraction is read as it was written.
        let outcome = Outcome { seconds: 0.5, ..outcome };
        let line = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&line).unwrap(), outcome);
    }
    let header = sample::header();
    let again = serde_json::to_string(&header).unwrap();
    assert_eq!(serde_json::from_str::<Header>(&again).unwrap(), header);
    let progress = &sample::progress()[9];
    let again = serde_json::to_string(progress).unwrap();
    assert_eq!(&serde_json::from_str::<Progress>(&again).unwrap(), progress);
}
