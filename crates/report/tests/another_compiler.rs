//! Reports speak the words of the compiler that they are given, and of no other.

mod well_formed;

use well_formed::check_balance;
use xla_gym_report::{
    Baseline, Contribution, Explanation, Metric, OpcodeRow, OpcodeTable, StepRow, SummaryRow,
    Timeline,
    results::{
        Header, Outcome, Outputs, Ratio, Stage, StageInfo, results_page, summary, summary_text,
    },
};

fn baseline() -> Baseline {
    Baseline::new("-Oz", "-Oz")
}

fn timeline(sizes: &[f64]) -> Timeline {
    let figures = |size: f64| vec![Some(size), (size > 90.0).then_some(size / 4.0)];
    Timeline {
        metrics: vec![
            Metric::new("text", "text size", "bytes"),
            Metric::new("instructions", "instructions", ""),
        ],
        start: figures(sizes[0]),
        steps: sizes
            .windows(2)
            .map(|pair| StepRow {
                pass: "gvn".to_owned(),
                changed: pair[0] != pair[1],
                figures: figures(pair[1]),
                nanos: 1000,
            })
            .collect(),
    }
}

fn explanation() -> Explanation {
    let row = OpcodeRow { opcode: "phi".to_owned(), start: 9, default: 7, result: 5 };
    Explanation {
        title: "qsort".to_owned(),
        engine: "ember 3.1".to_owned(),
        compiler: "Ember".to_owned(),
        baseline: baseline(),
        objective: "text".to_owned(),
        summary: vec![SummaryRow {
            name: "text size, bytes".to_owned(),
            start: Some(2400.0),
            default: 1500.0,
            result: 1200.0,
            ..SummaryRow::default()
        }],
        order: timeline(&[2400.0, 2400.0, 1200.0]),
        default_order: timeline(&[2400.0, 1500.0, 84.0]),
        contributions: vec![Contribution {
            position: 1,
            pass: "gvn".to_owned(),
            by_step: 1200.0,
            left_out: Some(12.5),
            left_out_final: Some(3.0),
            seconds: 0.001,
        }],
        final_figure: "relocations".to_owned(),
        opcodes: vec![OpcodeTable { stage: "after linking".to_owned(), rows: vec![row] }],
        disabled_passes: vec!["mem2reg".to_owned()],
        ..Explanation::default()
    }
}

/// Nothing of a compiler that is not in the data.
fn check_words(text: &str) {
    let text = text.replace("XLA Gym", "").to_lowercase();
    for foreign in ["xla", "hlo", "operation", "kernel", "legal", "flop"] {
        assert!(!text.contains(foreign), "{foreign} in {text}");
    }
}

#[test]
fn an_explanation_has_the_words_of_its_data() {
    let html = explanation().html();
    check_balance(&html);
    check_words(&html);
    for words in [
        "Text size, bytes: 1,200 instead of 1,500 by -Oz, 20.0% less.",
        "<h2>Beside -Oz</h2>",
        "<h2>Bytes of text size, step by step</h2>",
        "this order: 2,400 → 1,200 bytes of text size in 2 steps",
        "Steps of -Oz",
        "<title>-Oz, step 1: gvn\n1,500 bytes of text size (−900), 375 instructions, 1.00 µs</title>",
        ">more relocations without it<",
        "Blue removes bytes of text size, orange adds some.",
        "<h2>Opcodes after linking</h2>",
        "Passes of Ember's own pipeline that are left out afterwards: <code>mem2reg</code>.",
    ] {
        assert!(html.contains(words), "{words} is not in {html}");
    }
    // Of the last step of -Oz one figure is not known.
    assert!(html.contains("−1,416</td><td class=\"number\">–</td>"), "{html}");

    let text = explanation().text();
    check_words(&text);
    for words in ["-Oz: 2 steps, 2,400 → 84 bytes of text size", "relocations without it"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let header = text.lines().find(|line| line.starts_with("step")).unwrap();
    let columns: Vec<&str> = header.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
    assert_eq!(columns, ["step", "pass", "text size", "change", "instructions", "time"]);
}

/// Ratios of sizes that are left, and a stage of its own.
fn header() -> Header {
    let stage = |name: &str, title: &str, things: &str, ratio| StageInfo {
        name: name.to_owned(),
        label: name.to_owned(),
        title: title.to_owned(),
        things: things.to_owned(),
        ratio,
        with_interval: true,
        note: String::new(),
    };
    Header {
        baseline: baseline(),
        stages: vec![
            stage("object", "object files", "bytes of text size", Ratio::Left),
            StageInfo {
                note: "counted in the bitcode".to_owned(),
                ..stage("bitcode", "bitcode", "instructions", Ratio::Removed)
            },
        ],
    }
}

fn outcomes() -> Vec<Outcome> {
    let outcome = |graph: &str, contestant: &str, result: f64, claimed| Outcome {
        graph: graph.to_owned(),
        splits: vec!["cbench".to_owned()],
        contestant: contestant.to_owned(),
        budget: 10,
        stages: vec![
            Stage { claimed, ..Stage::left("object", 1000.0, result) },
            Stage {
                outputs: Some(Outputs::Equal),
                ..Stage::new("bitcode", 300.0, 200.0, result / 5.0)
            },
        ],
        ..Outcome::default()
    };
    vec![
        outcome("qsort", "ppo", 800.0, None),
        outcome("sha", "ppo", 500.0, None),
        outcome("qsort", "random", 1000.0, Some(700.0)),
        outcome("sha", "random", 0.0, None),
    ]
}

#[test]
fn results_have_the_stages_of_their_header() {
    let (header, outcomes) = (header(), outcomes());
    let rows = summary(&header, &outcomes);
    let ppo = rows.iter().find(|row| row.contestant == "ppo").unwrap();
    let random = rows.iter().find(|row| row.contestant == "random").unwrap();
    // 1000 / 800 and 1000 / 500, as a geometric mean.
    assert!((ppo.primary().mean.unwrap().value - 2.5f64.sqrt()).abs() < 1e-12);
    // (300 - 160) / 100 and (300 - 100) / 100.
    assert_eq!(ppo.stages[1].stage, "bitcode");
    assert!((ppo.stages[1].estimate.mean.unwrap().value - 2.8f64.sqrt()).abs() < 1e-12);
    assert_eq!((random.primary().graphs, random.primary().undefined), (1, 1));
    assert_eq!((ppo.not_worse, ppo.best.as_ref().unwrap().ratio), (1.0, 2.0));

    let text = summary_text(&header, &rows);
    check_words(&text);
    for words in ["bitcode", "that -Oz leaves", "Bitcode: counted in the bitcode."] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{text}");
    }

    let page = results_page(&header, &outcomes, &[], "Ember");
    check_balance(&page.html);
    check_words(&page.html);
    for words in [
        "The ratio is the number of bytes of text size that -Oz leaves, divided by",
        "never worse than -Oz on 100% of 2 graphs",
        "ratio (bytes of text size left, -Oz = 1)",
        "<summary>Bitcode, median time of a graph, share proven</summary>",
        "-Oz or the result leaves nothing of them.",
        "better than -Oz",
    ] {
        assert!(page.html.contains(words), "{words} is not in {}", page.html);
    }
    let csv = |name: &str| &page.csvs.iter().find(|file| file.0 == name).unwrap().1;
    let outcomes = csv("outcomes.csv");
    check_words(outcomes);
    assert!(outcomes.contains(",ratio,bitcode_initial,bitcode_default,bitcode_result,seconds,"));
    let qsort = outcomes.lines().find(|line| line.starts_with("qsort,cbench,random")).unwrap();
    assert!(qsort.ends_with(",,1000,1000,1,300,200,200,0,,unchecked,equal,700,,"), "{qsort}");
    assert!(csv("summary.csv").contains(",bitcode_ratio,bitcode_low,"));
}

#[test]
fn a_header_without_stages_breaks_nothing() {
    let page = results_page(&Header::default(), &outcomes(), &[], "Nothing");
    check_balance(&page.html);
    let rows = summary(&Header::default(), &outcomes());
    assert!(rows.iter().all(|row| row.primary().mean.is_none() && row.never_worse == 0.0));
    check_words(&summary_text(&Header::default(), &rows));
}
