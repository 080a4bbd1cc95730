//! Passes that fail, and the quarantine that remembers them.

mod common;

use common::{Home, graph};

/// Makes XLA abort on the gathers of this graph.
const FATAL: &str = "scatter_simplifier";
const GRAPH: &str = "gpt2-train-1l";
const CHECK: &str = "Check failed: dim_to_insert < output_shape_rank";

#[test]
fn later_passes_run_after_one_that_aborts() {
    let home = Home::new();
    let passes = format!("algsimp,{FATAL},dce");
    let run = ["run", &graph(GRAPH), "-p", &passes];
    let first = home.run(&run).expect(1);
    assert!(first.row("algsimp").contains("yes"), "{first:#?}");
    assert!(first.row("dce").contains("yes"), "{first:#?}");
    let row = first.row(FATAL);
    assert!(row.contains("aborted") && row.contains(CHECK), "{row}");

    let second = home.run(&run).expect(1);
    let row = second.row(FATAL);
    assert!(row.contains("quarantined") && row.contains(CHECK), "{row}");
    assert!(second.row("dce").contains("yes"), "{second:#?}");

    let free = home.run(&[&run[..], &["--no-quarantine", "--json"]].concat()).expect(1).json();
    assert_eq!(free["failed"], 1);
    assert_eq!(free["rows"][1]["error_kind"], "aborted");
    assert_eq!(free["rows"][1]["changed"], serde_json::Value::Null);
    assert_eq!(free["rows"][2]["changed"], true);
    home.expect_clean(0);
}

#[test]
fn strict_stops_at_the_first_failure() {
    let home = Home::new();
    let passes = format!("algsimp,{FATAL},dce");
    let run = ["run", &graph(GRAPH), "-p", &passes, "--strict", "-o", "a.hlo"];
    let ran = home.run(&run).expect(1).prints(&["aborted"]);
    assert!(!ran.stdout.contains("dce"), "{ran:#?}");
    // The result is the state before the failure.
    home.run(&["run", &graph(GRAPH), "-p", "algsimp", "-o", "b.hlo"]).expect(0);
    assert_eq!(home.fingerprint("a.hlo"), home.fingerprint("b.hlo"));
}

#[test]
fn the_quarantine_can_be_seen_and_cleared() {
    let home = Home::new();
    let path = home.state().join("quarantine.jsonl");
    let path = path.to_str().unwrap();
    home.run(&["quarantine"]).expect(0).prints(&["nothing is in quarantine", path]);
    assert_eq!(home.json(&["quarantine"]), serde_json::json!([]));
    assert_eq!(home.run(&["quarantine", "--path"]).expect(0).stdout.trim(), path);

    home.run(&["run", &graph(GRAPH), "-p", FATAL]).expect(1);
    home.run(&["quarantine"]).expect(0).prints(&[FATAL, "aborted", CHECK]);
    let entries = home.json(&["quarantine"]);
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["pass"], FATAL);
    assert_eq!(entries[0]["kind"], "aborted");
    assert_eq!(entries[0]["state"], home.fingerprint(&graph(GRAPH)).as_str());

    home.run(&["quarantine", "--clear"]).expect(0).prints(&["forgot 1 "]);
    assert_eq!(home.json(&["quarantine"]), serde_json::json!([]));
    home.run(&["quarantine", "--clear"]).expect(0).prints(&["forgot 0 "]);
}

#[test]
fn another_quarantine_file_can_be_used() {
    let home = Home::new();
    let run = ["run", &graph(GRAPH), "-p", FATAL, "--quarantine", "mine.jsonl"];
    home.run(&run).expect(1).prints(&["aborted"]);
    home.run(&run).expect(1).prints(&["quarantined"]);
    let entries = home.json(&["quarantine", "--quarantine", "mine.jsonl"]);
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(home.json(&["quarantine"]), serde_json::json!([]));
    // Lines that are none cost only themselves.
    let mut lines = home.read("mine.jsonl");
    lines.splice(0..0, *b"\xff noise\n{\n");
    home.write("mine.jsonl", &lines[..lines.len() - 1]);
    home.run(&run).expect(1).prints(&["quarantined"]);
}

#[test]
fn two_runs_share_a_quarantine() {
    let home = Home::new();
    let passes = format!("{FATAL},algsimp,{FATAL},dce");
    let run = ["run", &graph(GRAPH), "-p", &passes, "--json"];
    let running = [home.start(&run), home.start(&run)];
    for ran in running.map(|running| running.wait().expect(1)) {
        let rows = ran.json()["rows"].clone();
        for (index, failed) in [true, false, true, false].into_iter().enumerate() {
            assert_eq!(rows[index]["error"].is_string(), failed, "{ran:#?}");
        }
    }
    let entries = home.json(&["quarantine"]);
    let entries = entries.as_array().unwrap();
    assert!((2..=4).contains(&entries.len()), "{entries:?}");
    assert!(entries.iter().all(|entry| entry["pass"] == FATAL), "{entries:?}");
    home.run(&run).expect(1).prints(&["quarantined"]);
    home.expect_clean(0);
}
