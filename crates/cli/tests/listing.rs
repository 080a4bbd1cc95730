//! Commands that load no program: the list of passes, help, completions, wrong usage.

mod common;

use std::collections::BTreeSet;

use common::{Home, mlp};

#[test]
fn passes_are_many_and_described() {
    let home = Home::new();
    let passes = home.json(&["passes"]);
    let mut names = BTreeSet::new();
    for pass in passes.as_array().unwrap() {
        let field = |name: &str| pass[name].as_str().unwrap();
        names.insert(field("name").split(':').next().unwrap().to_owned());
        assert!(!field("kind").is_empty() && !field("description").is_empty(), "{pass}");
    }
    assert!(names.len() >= 80, "only {}: {names:?}", names.len());
}

#[test]
fn passes_can_be_filtered() {
    let home = Home::new();
    let loops = home.json(&["passes", "--kind", "loop"]);
    let loops = loops.as_array().unwrap();
    assert!(loops.len() > 5 && loops.iter().all(|pass| pass["kind"] == "loop"), "{loops:?}");
    let text = home.run(&["passes", "--kind", "loop"]).expect(0);
    assert_eq!(text.stdout.lines().count(), 2 + loops.len(), "a header, a rule and the passes");
    let found = home.run(&["passes", "fold"]).expect(0).prints(&["constant_folding"]);
    assert!(!found.stdout.contains("dce"));
}

#[test]
fn every_command_has_help() {
    let home = Home::new();
    let all = home.run(&["--help"]).expect(0).prints(&["Exit codes:"]);
    let commands: Vec<&str> = all
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Longer descriptions go on in lines that are indented further.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        home.run(&[command, "--help"]).expect(0).prints(&["Usage: xla-gym"]);
    }
    home.run(&["--version"]).expect(0).prints(&[env!("CARGO_PKG_VERSION")]);
}

#[test]
fn completions_know_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        home.run(&["completions", shell]).expect(0).prints(&["quarantine", "middle-output"]);
    }
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let home = Home::new();
    let mlp = mlp("hlo");
    let check = |arguments: &[&str], words: &[&str]| {
        home.run(arguments).expect(2).says(words);
    };
    check(&["run", &mlp, "-p", "algsim"], &["\"algsim\"", "did you mean algsimp "]);
    check(&["run", &mlp, "-p", "constant-folding"], &["did you mean constant_folding "]);
    check(&["score", &mlp, "-p", "dce,quantum"], &["\"quantum\"", "`xla-gym passes`"]);
    check(&["run", &mlp], &["--passes"]);
    check(&["frobnicate"], &["frobnicate"]);
    check(&["passes", "--pass-limit", "0"], &["greater than 0"]);
    check(&["score", &mlp, "-p", "dce", "--trials", "0"], &["--trials"]);
    check(&["check", &mlp, &mlp, "--trials", "0"], &["--trials"]);
    // Known before any work is done.
    check(&["run", &mlp, "-p", "dce", "-o", "a.exe"], &["a.exe", "must end in .hlo"]);
    check(&["run", &mlp, "-p", "dce", "-o", "nowhere/a.hlo"], &["no directory nowhere"]);
    check(&["default", &mlp, "--middle-output", "nowhere/a.pb"], &["no directory nowhere"]);
    std::fs::create_dir(home.path("folder.hlo")).unwrap();
    check(&["score", &mlp, "-p", "dce", "-o", "folder.hlo"], &["is a directory"]);
    home.expect_clean(1);
}

#[test]
fn a_missing_worker_is_a_matter_of_set_up() {
    let home = Home::new();
    let mut command = home.command(&["passes"]);
    let ran = command.env("XLA_GYM_WORKER_XLA", "/nowhere/worker").output().unwrap();
    let error = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(6), "{error}");
    assert!(error.contains("/nowhere/worker"), "{error}");
}
