//! Short versions of the experiments, and the committed pass table against the engine of today.

use std::{path::Path, process::Command};

#[test]
fn the_committed_table_is_true() {
    let out = tempfile::tempdir().unwrap();
    let table = out.path().join("table.tsv");
    let status = Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"))
        .args(["pass-table", "-o"])
        .arg(&table)
        .status()
        .unwrap();
    assert!(status.success());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/pass-table.tsv");
    let committed = std::fs::read_to_string(committed).unwrap();
    let made = std::fs::read_to_string(table).unwrap();
    for (line, (committed, made)) in committed.lines().zip(made.lines()).enumerate() {
        assert_eq!(committed, made, "line {}", line + 1);
    }
    assert_eq!(committed.lines().count(), made.lines().count());
    // A header, 120 passes with their variants on 34 graphs.
    assert!(made.lines().count() > 80 + 3 && made.lines().nth(3).unwrap().split('\t').count() > 20);
}

/// The experiment behind `data/episodes.json`, in short.
#[test]
fn random_episodes_do_not_hurt_the_host() {
    let output = Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"))
        .args(["episodes", "--episodes", "150", "--length", "20", "--checks", "8", "--seed", "3"])
        .args(["--check-up-to", "300"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("150 episodes"), "{text}");
    assert!(text.contains("equal"), "{text}");
}

/// The experiment over broken files, in short.
#[test]
fn broken_files_do_not_hurt_the_host() {
    let output = Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"))
        .args(["fuzz", "--seconds", "5"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("0 host crashes") && text.contains("refused"), "{text}");
}
