//! Orders to learn from, on real XLA: variants of a pass, functions that are copied, and where a policy
//! goes astray.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};
use xla_gym_agents::TrainedPolicy;
use xla_gym_profile::Profile;
use xla_gym_search::Budget;
use xla_gym_teaching::{Renamed, Searches, Setting, canonical, demonstrations, late_copies};
use xla_gym_xla_profile::Xla;

const COPIES: &str = "call-inliner";

fn setting() -> Setting<'static> {
    let profile = Arc::new(Xla::default());
    let engine = profile.engine_config().expect("`make build` comes first");
    Setting { profile, engine, stop: Arc::default(), watch: &() }
}

fn write(path: &Path, rows: &[Value]) {
    fs::write(path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_variant_that_does_the_same_takes_the_name_that_is_used_most() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.jsonl"), folder.path().join("to.jsonl"));
    let row = |after: &[&str], passes: &[&str]| json!({"benchmark": "hlo-v1/mlp/classifier-forward-8l", "after": after, "passes": passes});
    let rows = [
        row(&[], &["algsimp", "dce"]),
        row(&[], &["algsimp:dot-strength", "dce"]),
        row(&["algsimp"], &["dce"]),
    ];
    write(&from, &rows);
    let done = canonical(&from, &to, &setting()).unwrap();
    // Nobody had said how many operations they leave.
    assert_eq!(done, Renamed { passes: 5, renamed: 1, elsewhere: 3 });
    let said = read(&to);
    let all = |name: &str| -> Vec<Value> { said.iter().map(|row| row[name].clone()).collect() };
    assert_eq!(
        all("passes"),
        [json!(["algsimp", "dce"]), json!(["algsimp", "dce"]), json!(["dce"])]
    );
    let operations = all("operations");
    assert!(operations.iter().all(|count| *count == operations[0] && count.as_u64() > Some(0)));
    assert_eq!(canonical(&from, &to, &setting()).unwrap(), done, "and is not done again");
}

#[test]
fn functions_are_copied_last_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let from = file("from.jsonl");
    let postpone = |output: &str, operations: u64| {
        let row = json!({"benchmark": "hlo-v1/gpt2/train-1l-adamw", "operations": operations,
                         "passes": [COPIES, "algsimp", "cse"]});
        write(&from, &[row]);
        let done = late_copies(&[&from], &file(output), 0, 1, &setting()).unwrap();
        let row = read(&file(output)).remove(0);
        let passes: Vec<String> = serde_json::from_value(row["passes"].clone()).unwrap();
        (done, passes, row["operations"].as_u64().unwrap())
    };
    let (done, passes, operations) = postpone("without.jsonl", 1_000_000);
    assert_eq!((done.copied, done.without, done.late), (1, 1, 0));
    assert!(!passes.contains(&COPIES.to_owned()), "{passes:?}");
    // Where fewer are wanted than are left without copies, they come last or stay where they are.
    let (done, passes, _) = postpone("late.jsonl", operations - 1);
    assert_eq!((done.copied, done.without), (1, 0));
    let at = passes.iter().position(|pass| pass == COPIES).unwrap();
    assert_eq!(at > 0, done.late == 1, "{passes:?}");
    let (done, passes, _) = postpone("as-it-was.jsonl", 0);
    assert_eq!((done.without, done.late), (0, 0));
    assert_eq!(passes, [COPIES, "algsimp", "cse"]);
}

#[test]
fn steps_astray_depend_on_the_seed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let search = |name: &str, seed: u64| {
        let how = Searches {
            benchmarks: vec!["hlo-v1/mlp/classifier-forward-8l".to_owned()],
            largest: u64::MAX,
            budget: Budget::passes(20),
            seed,
            trials: 1,
            policy: Some(TrainedPolicy::find("general", "xla").unwrap()),
            astray: Some(2),
        };
        let output = folder.path().join(name);
        demonstrations(&how, &output, &setting()).unwrap();
        read(&output)
    };
    let rows = search("one.jsonl", 0);
    assert_eq!(rows.len(), 4, "two from each start");
    let after =
        |row: &Value| -> Vec<String> { serde_json::from_value(row["after"].clone()).unwrap() };
    assert!(rows.iter().all(|row| (1..=12).contains(&after(row).len())));
    assert!(rows.iter().any(|row| after(row) != after(&rows[0])));
    assert_eq!(search("again.jsonl", 0), rows);
    // A policy that is sure of itself goes the same way with most seeds.
    let differs = |seed: u64| search(&format!("{seed}.jsonl"), seed) != rows;
    assert!((1..20).any(differs), "no seed makes a difference");
}
