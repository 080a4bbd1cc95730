//! Orders in files, run again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

fn graph() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/proof");
    path.join("batched-scatter.hlo").canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Runs `recheck` and returns what it prints.
fn recheck(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"));
    let output = command.arg("recheck").args(["--trials", "1"]).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn write(path: &Path, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const WRONG: [&str; 3] = ["algsimp", "scatter_determinism_expander", "dce"];

#[test]
fn wrong_orders_are_found_blamed_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let (orders, outcomes) = (file("orders.jsonl"), file("outcomes.jsonl"));
    let row = |passes: &[&str]| json!({"benchmark": graph(), "passes": passes, "operations": 2});
    write(&orders, &[row(&["algsimp"]), row(&WRONG), row(&["algsimp", "cse"])]);
    let outcome = |name: &str, passes: &[&str]| {
        json!({"graph": graph(), "contestant": name, "kind": "rollout", "seed": 1, "passes": passes,
               "order": {"initial": 62, "default": 2, "result": 2},
               "legal": {"initial": 62, "default": 2, "result": 2}, "legal_passes": ["algsimp"]})
    };
    write(&outcomes, &[outcome("ppo", &WRONG), outcome("a2c", &["algsimp"])]);
    let (orders_, outcomes_) = (orders.to_str().unwrap(), outcomes.to_str().unwrap());

    let verdicts = file("verdicts.jsonl");
    let all = [orders_, outcomes_, "-o", verdicts.to_str().unwrap()];
    let text = recheck(&all);
    assert!(text.contains("orders.jsonl | demonstration | order | 3 | 2 | 1 | 0"), "{text}");
    assert!(text.contains("outcomes.jsonl | ppo | order | 1 | 0 | 1 | 0"), "{text}");
    assert!(text.contains("outcomes.jsonl | ppo | legal | 1 | 1 | 0 | 0"), "{text}");
    assert!(text.contains("orders.jsonl, line 2"), "{text}");
    assert!(text.contains("after scatter_determinism_expander"), "{text}");
    let written = lines(&verdicts);
    assert_eq!(written.len(), 7);
    for verdict in &written {
        let wrong = verdict["outputs"] == "different";
        assert_eq!(verdict["guilty"] == "scatter_determinism_expander", wrong, "{verdict}");
    }

    // A call that is made again runs nothing, also if it was killed in the middle of a line.
    let whole = fs::read_to_string(&verdicts).unwrap();
    fs::write(&verdicts, format!("{whole}{{\"file\":\"or")).unwrap();
    assert_eq!(recheck(&all), text);
    assert!(fs::read_to_string(&verdicts).unwrap().starts_with(&whole));
    // An order that was changed is another one, and its verdict does not stand behind half a line.
    write(&orders, &[row(&["algsimp"]), row(&["algsimp", "dce"]), row(&["algsimp", "cse"])]);
    assert!(recheck(&all).contains("orders.jsonl | demonstration | order | 3 | 3 | 0 | 0"));
    assert_eq!(lines(&verdicts).len(), 8);

    let kept = file("kept.jsonl");
    let keep = ["--keep-equal", "-o", kept.to_str().unwrap()];
    let text = recheck(&[&[outcomes_], &keep[..]].concat());
    assert!(text.contains("1 of 2 rows are proven"), "{text}");
    let rows = lines(&kept);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["contestant"], "a2c");
    assert_eq!(
        (&rows[0]["outputs"], &rows[0]["legal_outputs"]),
        (&json!("equal"), &json!("equal"))
    );
    assert!(file("kept.jsonl.verdicts").is_file());

    let sampled = file("sampled.jsonl");
    let text = recheck(&[
        orders_,
        outcomes_,
        "--sample",
        "1",
        "--contestant",
        "ppo",
        "-o",
        sampled.to_str().unwrap(),
    ]);
    assert!(text.contains("ppo") && !text.contains("a2c") && !text.contains("demonstration"));
}
