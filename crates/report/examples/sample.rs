//! Writes a report of made-up figures: `cargo run -p xla-gym-report --example sample -- PATH`.
//! The tests use the same figures.

use xla_gym_report::{
    Baseline, Contribution, Explanation, FrontPoint, Metric, OpcodeRow, OpcodeTable, StepRow,
    SummaryRow, Timeline, TimingRows,
};

fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        print!("{}", sample().text());
        eprintln!("give a path to write the web page to");
        return Ok(());
    };
    std::fs::write(path, sample().html())
}

/// A report on a GPT-2 of two layers, as it might be.
pub fn sample() -> Explanation {
    let order = timeline(&[
        ("reshape-mover", 12),
        ("algsimp", -361),
        ("cse", -402),
        ("while-loop-simplifier", 0),
        ("algsimp:associative", -64),
        ("transpose-folding", -38),
        ("constant_folding:aggressive", -45),
        ("dot-merger:unlimited", 8),
        ("algsimp:reduce-through-dot", -27),
        ("cse", -71),
        ("zero_sized_hlo_elimination", 0),
        ("dce", 0),
        ("sort-simplifier", 0),
        ("algsimp", -9),
    ]);
    Explanation {
        title: "gpt2-train-2l".to_owned(),
        engine: "xla tensorflow-2.21.0".to_owned(),
        compiler: "XLA".to_owned(),
        baseline: Baseline::new("XLA's own", "XLA's own order"),
        objective: "kernels".to_owned(),
        command: "xla-gym explain gpt2-train-2l --recipe gpt2.json --html gpt2.html".to_owned(),
        summary: summary(),
        verdicts: vec![
            verdict("XLA's verifier accepts it", true, "after each of the 14 passes"),
            verdict("The outputs are equal", true, "3 inputs, largest difference 2.4e−7"),
            verdict("It is the same on a second run", true, ""),
        ],
        contributions: contributions(&order),
        order,
        default_order: default_order(),
        final_figure: "kernels".to_owned(),
        opcodes: vec![
            opcodes(
                "at the end of the order",
                &[
                    ("add", 512, 240, 231),
                    ("multiply", 633, 298, 281),
                    ("broadcast", 811, 301, 287),
                    ("transpose", 96, 48, 34),
                    ("reshape", 204, 40, 47),
                    ("dot", 75, 75, 71),
                    ("convert", 18, 6, 6),
                    ("reduce", 88, 74, 74),
                    ("exponential", 12, 12, 12),
                    ("while", 0, 0, 0),
                ],
            ),
            opcodes(
                "of the final programs",
                &[
                    ("fusion", 0, 301, 288),
                    ("dot", 0, 75, 71),
                    ("copy", 0, 22, 26),
                    ("reduce", 0, 4, 4),
                    ("custom-call", 0, 29, 29),
                ],
            ),
        ],
        timing: Some(TimingRows {
            rows: vec![
                ("run, XLA's own".to_owned(), 18_412_000.0, 18_240_000.0, 18_790_000.0),
                ("run, result".to_owned(), 17_930_000.0, 17_610_000.0, 18_350_000.0),
                ("compile, XLA's own".to_owned(), 1_912e6, 1_880e6, 1_990e6),
                ("compile, result".to_owned(), 1_702e6, 1_650e6, 1_760e6),
            ],
            sentences: vec![
                "One run takes 2.7% less time (95% interval: 1.1% to 4.0%).".to_owned(),
                "The default against itself differs by 0.3%.".to_owned(),
            ],
        }),
        disabled_passes: vec!["algsimp".to_owned(), "cse".to_owned(), "dot-merger".to_owned()],
        recipe_json: RECIPE.to_owned(),
        notes: vec![
            "Dropped: an order with 409 kernels, whose outputs differed by 3.1e−2.".to_owned(),
            "scatter_simplifier aborts on this program and was not tried again.".to_owned(),
        ],
        front: [
            ("order 1", 418.0, 52.9e6),
            ("order 7", 421.0, 51.2e6),
            ("order 12", 431.0, 50.7e6),
        ]
        .into_iter()
        .map(|(label, kernels, bytes)| FrontPoint {
            label: label.to_owned(),
            values: vec![kernels, bytes],
            chosen: kernels == 418.0,
        })
        .collect(),
        front_axes: vec!["kernels".to_owned(), "bytes".to_owned()],
    }
}

fn summary() -> Vec<SummaryRow> {
    let row = |name: &str, start, default, result, ratio, note: &str| SummaryRow {
        name: name.to_owned(),
        start,
        default,
        result,
        ratio,
        note: note.to_owned(),
    };
    vec![
        row("operations, order", Some(2449.0), 1511.0, 1452.0, Some(1.063), ""),
        row("operations, legal", Some(2502.0), 1598.0, 1542.0, Some(1.062), ""),
        row("kernels", None, 431.0, 418.0, Some(1.031), ""),
        row("FLOPs", None, 4_812_339_712.0, 4_810_112_000.0, Some(1.0005), ""),
        row("bytes", None, 52_734_912.0, 52_901_120.0, Some(0.997), "more than by default"),
        row("run time, ms", None, 18.412, 17.93, Some(1.027), "above noise"),
    ]
}

fn verdict(claim: &str, holds: bool, words: &str) -> (String, bool, String) {
    (claim.to_owned(), holds, words.to_owned())
}

fn opcodes(stage: &str, rows: &[(&str, u64, u64, u64)]) -> OpcodeTable {
    let row = |&(opcode, start, default, result): &(&str, u64, u64, u64)| OpcodeRow {
        opcode: opcode.to_owned(),
        start,
        default,
        result,
    };
    OpcodeTable { stage: stage.to_owned(), rows: rows.iter().map(row).collect() }
}

/// XLA's own order repeats a few passes many times, and most of them find nothing any more.
fn default_order() -> Timeline {
    let passes = [
        "algsimp",
        "sort-simplifier",
        "cse",
        "dce",
        "reshape-mover",
        "constant_folding",
        "simplify-conditional",
        "transpose-folding",
    ];
    let changes = [
        -361, 0, -390, 0, 12, -20, 0, -30, -66, 0, -41, 0, 0, -8, 0, 0, -19, 0, -12, 0, 0, 0, 0, 0,
        -3,
    ];
    let steps: Vec<(&str, i64)> = (0..72)
        .map(|step| (passes[step % passes.len()], changes.get(step).copied().unwrap_or(0)))
        .collect();
    timeline(&steps)
}

fn timeline(steps: &[(&str, i64)]) -> Timeline {
    let metrics = vec![
        Metric::new("operations", "operations", ""),
        Metric::new("instructions", "instructions", ""),
        Metric::new("flops", "FLOPs", "FLOPs"),
        Metric::new("bytes", "bytes", "bytes"),
    ];
    let figures = |operations: u64| {
        let count = operations as f64;
        vec![
            Some(count),
            Some(count * 2.0 + 310.0),
            Some(4.8e9 + count * 1e4),
            Some(50e6 + count * 21e3),
        ]
    };
    let mut operations = 2449u64;
    let start = figures(operations);
    let steps = steps.iter().enumerate().map(|(index, &(pass, change))| {
        operations = operations.saturating_add_signed(change);
        StepRow {
            pass: pass.to_owned(),
            changed: change != 0,
            figures: figures(operations),
            nanos: 180_000 + 7_300 * change.unsigned_abs() + 41_000 * (index as u64 % 5),
        }
    });
    Timeline { metrics, start, steps: steps.collect() }
}

fn contributions(order: &Timeline) -> Vec<Contribution> {
    let mut before = order.start().unwrap_or_default();
    let steps = order.steps.iter().enumerate().map(|(index, step)| {
        let after = step.primary().unwrap_or_default();
        let by_step = before - after;
        before = after;
        Contribution {
            position: index + 1,
            pass: step.pass.clone(),
            by_step,
            left_out: Some(match by_step {
                0.0 => 0.0,
                adds if adds < 0.0 => 31.0,
                removes => (removes / 3.0).trunc() - 4.0,
            }),
            left_out_final: Some(match by_step {
                0.0 => 0.0,
                other => (other.abs() / 40.0).trunc() - 1.0,
            }),
            seconds: step.nanos as f64 / 1e9,
        }
    });
    steps.collect()
}

const RECIPE: &str = r#"{
  "version": 1,
  "engine": "xla tensorflow-2.21.0",
  "program": { "name": "gpt2-train-2l", "fingerprint": "5f1c09d2a7b34e86", "instructions": 5208 },
  "passes": ["reshape-mover", "algsimp", "cse", "algsimp:associative", "transpose-folding"],
  "disabled_passes": ["algsimp", "cse", "dot-merger"],
  "objective": "kernels",
  "gain": 1.031
}"#;
