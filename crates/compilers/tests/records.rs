//! Files of outcomes, as they are written and as they were.

use std::path::Path;

use serde_json::{Value, json};
use xla_gym_compilers::profile;
use xla_gym_contest::{Outputs, Records, RecordsError};
use xla_gym_report::results::{Header, Outcome, summary};

fn committed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence").join(name);
    xla_gym_rows::text(&path).unwrap()
}

/// What XLA's figures are, which earlier files do not say.
fn header() -> Header {
    xla_gym_contest::header(profile("xla").unwrap().spec())
}

/// The line that a file begins with.
fn first_line(header: &Header) -> String {
    serde_json::to_string(&Records::first_row(header)).unwrap() + "\n"
}

fn read(text: &str) -> Records {
    let mut records = Records::default();
    records.add(text, &header()).unwrap();
    records
}

/// Everything that an earlier line says of a stage is said by the outcome, and the other way round.
fn check_stage(line: &Value, outcome: &Outcome, name: &str, outputs: &str, passes: &str) {
    let counts = line.get(name).filter(|counts| counts.is_object());
    let Some(stage) = outcome.stage(name) else {
        assert!(counts.is_none(), "{name} is lost: {line}");
        return;
    };
    let counts = counts.unwrap();
    assert_eq!(stage.initial, counts["initial"].as_f64(), "{line}");
    assert_eq!(Some(stage.default), counts["default"].as_f64(), "{line}");
    assert_eq!(Some(stage.result), counts["result"].as_f64(), "{line}");
    assert_eq!(stage.claimed, line["claimed"][name].as_f64(), "{line}");
    let said = stage.outputs.as_ref().map(Outputs::to_string);
    let unchecked = (name == "order").then_some("unchecked");
    assert_eq!(said.as_deref(), line[outputs].as_str().or(unchecked), "{line}");
    assert_eq!(json!(stage.passes), line[passes], "{line}");
}

#[test]
fn committed_outcomes_are_read_as_they_are() {
    for name in ["proven.jsonl", "agents.jsonl", "guided.jsonl"] {
        let text = committed(name);
        let records = read(&text);
        assert_eq!(records.header, Some(header()));
        assert_eq!(records.outcomes.len(), text.lines().count());
        for (line, outcome) in text.lines().zip(&records.outcomes) {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["contestant"], outcome.contestant);
            check_stage(&line, outcome, "order", "outputs", "passes");
            check_stage(&line, outcome, "end", "end_outputs", "none");
            check_stage(&line, outcome, "legal", "legal_outputs", "legal_passes");
            let kernels = outcome.stage("kernels");
            assert_eq!(kernels.map(|stage| stage.result), line["kernels"].as_f64());
            assert_eq!(kernels.map(|stage| stage.default), line["kernels_default"].as_f64());
            assert_eq!(json!(outcome.guilty), line["guilty"]);
        }
    }
}

#[test]
fn a_committed_table_stays_as_it_is() {
    let rows = summary(&header(), &read(&committed("proven.jsonl")).outcomes);
    let row = rows.iter().find(|row| (&*row.split, &*row.contestant) == ("gpt2", "ensemble"));
    let row = row.unwrap();
    assert_eq!((row.graphs, row.outputs.equal), (45, 45));
    let ratios: Vec<String> = row
        .stages
        .iter()
        .map(|stage| format!("{} {:.3}", stage.stage, stage.estimate.mean.unwrap().value))
        .collect();
    // As evidence/README.md has it.
    assert_eq!(
        (&*ratios[0], &*ratios[2], &*ratios[3]),
        ("order 1.225", "legal 1.116", "kernels 1.259")
    );
}

#[test]
fn what_is_written_is_read() {
    let known = read(&committed("proven.jsonl"));
    let mut text = first_line(&header());
    for outcome in &known.outcomes[..5] {
        text += &(serde_json::to_string(outcome).unwrap() + "\n");
    }
    let again = read(&text);
    assert_eq!(again.header, Some(header()));
    for (read, written) in again.outcomes.iter().zip(&known.outcomes) {
        // Not every fraction of a second is read as it was written.
        assert_eq!(Outcome { seconds: written.seconds, ..read.clone() }, *written);
    }
    // A line that was cut off by a kill is none yet.
    assert_eq!(read(&format!("{text}{{\"graph\":\"hl")).outcomes.len(), 5);
    // Earlier lines, and those of a second file, stand beside later ones.
    let mut both = again.clone();
    both.add(&committed("guided.jsonl"), &header()).unwrap();
    assert!(both.outcomes.len() > 5);
}

#[test]
fn figures_of_another_compiler_are_not_mixed_in() {
    let other = xla_gym_contest::header(profile("toy").unwrap().spec());
    assert_ne!(other.baseline, header().baseline);
    let mut records = read(&first_line(&other));
    let error = records.add(&committed("guided.jsonl"), &header()).unwrap_err();
    assert!(matches!(error, RecordsError::OtherHeader { line: 1 }), "{error}");
    let error = read(&committed("guided.jsonl")).add(&first_line(&other), &header());
    assert!(matches!(error, Err(RecordsError::OtherHeader { line: 1 })));
    let error = Records::default().add("{\"graph\":\"a\"}\n", &header()).unwrap_err();
    assert!(matches!(error, RecordsError::Line { line: 1, .. }), "{error}");
}
