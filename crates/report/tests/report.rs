//! What a reader of the report relies on.

#[allow(dead_code)]
#[path = "../examples/sample.rs"]
mod sample;
mod well_formed;

use sample::sample;
use well_formed::check_balance;
use xla_gym_report::{
    Baseline, Contribution, Explanation, FrontPoint, Metric, OpcodeRow, OpcodeTable, StepRow,
    SummaryRow, Timeline, TimingRows,
};

const HOSTILE: &str = "</pre><script>alert(\"1\")</script>&amp;'\u{1b}[31m\0";

/// A report in which every text is `text` and every number is `number`.
fn filled(text: &str, number: u64, steps: usize) -> Explanation {
    let word = || text.to_owned();
    let value = number as f64;
    let metric = Metric { name: word(), label: word(), unit: word() };
    let counted = Metric { unit: String::new(), ..metric.clone() };
    let metrics = vec![metric.clone(), counted, metric];
    let figures = vec![Some(value), Some(value), None];
    let step = StepRow { pass: word(), changed: true, figures: figures.clone(), nanos: number };
    let timeline = Timeline { metrics, start: figures, steps: vec![step; steps] };
    let opcode = OpcodeRow { opcode: word(), start: number, default: number, result: 1 };
    let opcodes = OpcodeTable { stage: word(), rows: vec![opcode.clone(), opcode] };
    Explanation {
        title: word(),
        engine: word(),
        compiler: word(),
        baseline: Baseline::new(word(), word()),
        objective: word(),
        command: word(),
        summary: vec![SummaryRow {
            name: word(),
            start: Some(value),
            default: value,
            result: 1.0,
            ratio: Some(value),
            note: word(),
        }],
        verdicts: vec![(word(), true, word()), (word(), false, word())],
        order: timeline.clone(),
        default_order: timeline,
        contributions: vec![Contribution {
            position: 1,
            pass: word(),
            by_step: -value,
            left_out: Some(value),
            left_out_final: Some(value),
            seconds: value,
        }],
        final_figure: word(),
        opcodes: vec![opcodes.clone(), opcodes],
        timing: Some(TimingRows {
            rows: vec![(word(), value, value, value)],
            sentences: vec![word()],
        }),
        disabled_passes: vec![word()],
        recipe_json: word(),
        notes: vec![word()],
        front: vec![FrontPoint { label: word(), values: vec![value, value, value], chosen: true }],
        front_axes: vec![word(), word(), word()],
    }
}

fn count(html: &str, what: &str) -> usize {
    html.matches(what).count()
}

#[test]
fn texts_are_escaped_everywhere() {
    let html = filled(HOSTILE, 12, 2).html();
    check_balance(&html);
    assert!(!html.contains("<script"), "a script got in");
    assert!(!html.contains("&amp;amp;'"), "a quote got in");
    assert!(!html.contains(['\0', '\u{1b}']), "a control character got in");
    // Twenty-odd fields hold the text; each shows at least once.
    assert!(count(&html, "&lt;script&gt;alert(&quot;1&quot;)") >= 20);
}

#[test]
fn a_terminal_is_not_at_a_programs_mercy() {
    let text = filled(HOSTILE, 12, 2).text();
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text}");
}

#[test]
fn nothing_comes_from_elsewhere() {
    let html = sample().html();
    for outside in ["http", "src=", "href=", "url(", "@import", "<script", "<link", "//"] {
        assert!(!html.contains(outside), "{outside} in a page that must stand alone");
    }
}

#[test]
fn pages_are_well_formed_whatever_they_hold() {
    check_balance(&sample().html());
    check_balance(&Explanation::default().html());
    for number in [0, 1, 999, u64::MAX] {
        for steps in [0, 1, 2, 500] {
            let explanation = filled("x", number, steps);
            check_balance(&explanation.html());
            assert!(!explanation.text().contains("NaN"));
        }
    }
    let mut unknown = filled("x", 5, 1);
    unknown.summary[0].result = f64::NAN;
    unknown.summary[0].default = f64::INFINITY;
    unknown.front[0].values = vec![f64::NAN];
    unknown.timing.as_mut().unwrap().rows[0].1 = f64::NAN;
    unknown.order.start[0] = Some(f64::NEG_INFINITY);
    unknown.order.steps[0].figures = Vec::new();
    unknown.contributions[0].by_step = f64::NAN;
    check_balance(&unknown.html());
}

#[test]
fn the_chart_has_a_point_for_every_step() {
    let explanation = sample();
    let html = explanation.html();
    let points = |class: &str| count(&html, &format!("<circle class=\"point {class}"));
    assert_eq!(points("order"), explanation.order.steps.len());
    assert_eq!(points("default"), explanation.default_order.steps.len());
    assert_eq!(count(&html, "<circle class=\"outset"), 2);
    assert_eq!(count(&html, "FLOPs</th>"), 2, "a column of each table of steps");
    assert!(html.contains("<title>this order, step 3: cse\n1,698 operations (−402), "), "hover");
    assert!(html.contains("The vertical axis begins at "));
}

#[test]
fn an_empty_order_is_said_and_drawn() {
    let mut explanation = sample();
    explanation.order.steps.clear();
    explanation.contributions.clear();
    explanation.disabled_passes.clear();
    let html = explanation.html();
    check_balance(&html);
    assert!(html.contains("No order better than XLA&#39;s own is known."));
    assert!(html.contains("this order: no steps, 2,449 operations"));
    assert_eq!(count(&html, "<circle class=\"point order"), 0);
    assert!(!html.contains("What each pass brought"));
    assert!(Explanation::default().html().contains("No passes ran."));
}

#[test]
fn opcodes_that_differ_come_first_by_size() {
    let html = sample().html();
    let (_, section) = html.split_once("Opcodes at the end of the order").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let place = |opcode: &str| section.find(&format!(">{opcode}</td>")).unwrap();
    let details = section.find("<details>").unwrap();
    // Differences of 17, 14, 14 and 4; then those without any.
    assert!(place("multiply") < place("broadcast"));
    assert!(place("broadcast") < place("transpose"));
    assert!(place("transpose") < place("dot"));
    assert!(place("dot") < details && details < place("reduce"));
    let (_, last) = html.split_once("Opcodes of the final programs").unwrap();
    let (last, _) = last.split_once("</section>").unwrap();
    assert!(!last.contains(">start<"), "a column of zeros says nothing");
}

/// The columns of a table begin and end where the rule below its header says.
fn check_columns(text: &str) -> usize {
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut tables = 0;
    for (index, rule) in lines.iter().enumerate().filter(|(_, line)| line.starts_with(&['─'])) {
        tables += 1;
        let gaps: Vec<usize> = (0..rule.len()).filter(|place| rule[*place] == ' ').collect();
        let rows = lines[index + 1..].iter().take_while(|line| !line.is_empty());
        for line in rows.chain([&lines[index - 1]]) {
            assert!(line.len() <= rule.len(), "{}", String::from_iter(line));
            for gap in gaps.iter().filter(|gap| **gap < line.len()) {
                assert_eq!(line[*gap], ' ', "column {gap} of {}", String::from_iter(line));
            }
        }
    }
    tables
}

#[test]
fn columns_of_text_align_within_100() {
    let text = sample().text();
    assert_eq!(check_columns(&text), 4, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let mut long = sample();
    long.order.steps[3].pass = "ä-very-long-name-of-a-pass".repeat(8);
    long.contributions[3].pass = "ä-very-long-name-of-a-pass".repeat(8);
    long.summary[1].note = "words without end ".repeat(20);
    let text = long.text();
    check_columns(&text);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains('…'));
    check_columns(&filled("x", u64::MAX, 3).text());
    check_columns(&Explanation::default().text());
}

#[test]
fn an_explanation_survives_json() {
    let explanation = sample();
    let json = serde_json::to_string(&explanation).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), explanation);
}
