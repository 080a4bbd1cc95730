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
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence/pass-table.tsv");
    let committed = std::fs::read_to_string(committed).unwrap();
    let made = std::fs::read_to_string(table).unwrap();
    for (line, (committed, made)) in committed.lines().zip(made.lines()).enumerate() {
        assert_eq!(committed, made, "line {}", line + 1);
    }
    assert_eq!(committed.lines().count(), made.lines().count());
    // A header, 120 passes with their variants on 34 graphs.
    assert!(made.lines().count() > 80 + 3 && made.lines().nth(3).unwrap().split('\t').count() > 20);
}

/// The experiment behind `evidence/episodes.json`, in short.
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

/// What a command prints, and the rows that are in its file then.
fn lab(rows: &Path, command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    (text, std::fs::read_to_string(rows).unwrap())
}

/// The experiment behind `evidence/mutants.jsonl.zst`, in short: wrong programs are told apart, right ones
/// are not. And a run that is begun again does nothing twice.
#[test]
fn the_oracle_tells_wrong_programs_apart() {
    let out = tempfile::tempdir().unwrap();
    let rows = out.path().join("mutants.jsonl");
    let measure = || {
        lab(
            &rows,
            Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"))
                .args(["mutants", "--graphs", "6", "--mutants", "60", "--limit", "10", "-o"])
                .arg(&rows)
                .args(["hlo-v1/collective/matrix-product", "hlo-v1/mlp/classifier-forward-8l"])
                .args(["hlo-v1/ode/n-body", "hlo-v1/graphnet/gcn-forward-2l"])
                .args(["hlo-v1/linalg/gaussian-process-cpu", "hlo-v1/signal/wavelet"]),
        )
    };
    let (text, first) = measure();
    assert!(text.contains("6 of 6 graphs are equal to themselves"), "{text}");
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    let mut kinds = std::collections::BTreeSet::new();
    for line in first.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let outcome = row["outcome"].as_str().unwrap().to_owned();
        if outcome != "invalid" && outcome != "original" {
            kinds.insert(row["kind"].to_string());
        }
        *counts.entry(outcome).or_default() += 1;
    }
    let count = |outcome: &str| f64::from(counts.get(outcome).copied().unwrap_or_default());
    let (told, missed) = (count("killed") + count("rejected"), count("missed"));
    assert!(kinds.len() >= 12, "{kinds:?}");
    assert!(told >= 40.0 && told / (told + missed) >= 0.97, "{counts:?}\n{first}");
    assert_eq!(measure().1, first);
}

/// The experiment behind `evidence/soundness.jsonl.zst`, in short: a pass that is known to be wrong on scatters
/// with batch dimensions is found, alone and within walks, and no other is blamed. What is done is not
/// done again.
#[test]
fn passes_that_change_what_programs_compute_are_found() {
    let out = tempfile::tempdir().unwrap();
    let (rows, scatter) = (out.path().join("soundness.jsonl"), out.path().join("scatter.hlo"));
    let program = "HloModule m\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n\
        ENTRY e { x = f32[4,9] parameter(0)  i = s32[4,3,1] parameter(1)  u = f32[4,3] parameter(2)\n\
        s = f32[4,9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, \
        scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, \
        index_vector_dim=2, to_apply=add\n  y = f32[4,9] add(s, s)  ROOT r = f32[4,9] add(y, s) }\n";
    std::fs::write(&scatter, program).unwrap();
    let measure = || {
        lab(
            &rows,
            Command::new(env!("CARGO_BIN_EXE_xla-gym-lab"))
                .args(["soundness", "--walks", "2", "-o"])
                .arg(&rows)
                .arg(&scatter)
                .arg("hlo-v1/sorting/ranking"),
        )
    };
    let (text, first) = measure();
    let unsound: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("\tunsound"))
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(unsound, ["scatter_determinism_expander"], "{text}");
    assert!(text.lines().filter(|line| line.ends_with("\tsound")).count() >= 3, "{text}");
    assert_eq!(measure().1, first);
}
