//! Commands that read, change and write programs: show, run, default, diff.

mod common;

use std::fs;

use common::{Home, graph, mlp, testdata};

const PASSES: &str = "call-inliner,algsimp,cse,dce";

#[test]
fn show_counts_a_program() {
    let home = Home::new();
    let file = mlp("hlo");
    let shown = home.json(&["show", &file]);
    assert_eq!(shown["counts"]["instructions"], 55);
    assert_eq!(shown["counts"]["operations"], 37);
    assert_eq!(shown["opcodes"]["dot"], 3);
    assert!(shown["cost"]["flops"].as_f64().unwrap() > 0.0);
    let text = home.run(&["show", &file]).expect(0);
    for (name, value) in [("instructions", "55"), ("operations", "37"), ("dot", "3")] {
        assert!(text.row(name).ends_with(&format!(" {value}")), "{text:#?}");
    }
    assert!(text.row("fingerprint").ends_with(shown["fingerprint"].as_str().unwrap()));
    let memory = home.json(&["show", "--memory", &file]);
    assert!(memory["memory"]["peak"].as_u64().unwrap() > 0, "{memory}");
}

#[test]
fn every_format_and_standard_input_give_the_same_program() {
    let home = Home::new();
    let expected = home.fingerprint(&mlp("hlo"));
    let mut files = 0;
    for entry in fs::read_dir(testdata("formats")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(home.fingerprint(path.to_str().unwrap()), expected, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 7);
    for extension in ["hlo", "pb.zst"] {
        let path = testdata("formats").join(format!("mlp.{extension}"));
        let read = home.run_reading(&["show", "-", "--json"], &path).expect(0).json();
        assert_eq!(read["fingerprint"], expected.as_str());
        assert_eq!(read["file"], "standard input");
    }
}

#[test]
fn run_reports_each_pass() {
    let home = Home::new();
    let file = mlp("hlo");
    let text = home.run(&["run", &file, "-p", PASSES]).expect(0);
    assert_eq!(text.stdout.lines().count(), 2 + 1 + 4, "header, rule, start, passes: {text:#?}");
    assert!(text.row("(start)").contains(" 37 "), "{text:#?}");
    assert!(text.row("algsimp").contains("yes"), "{text:#?}");

    home.write("list.txt", "call-inliner # first\nalgsimp cse\n\n dce\n");
    let listed = home.json(&["run", &file, "-p", "@list.txt", "--verify"]);
    let rows = listed["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["pass"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), PASSES);
    assert_eq!(listed["start"]["counts"]["operations"], 37);
    let operations: Vec<u64> =
        rows.iter().map(|row| row["counts"]["operations"].as_u64().unwrap()).collect();
    assert!(operations.is_sorted_by(|a, b| a >= b) && operations[3] < 37, "{operations:?}");
    assert!(rows.iter().all(|row| row["invalid"].is_null() && row["error"].is_null()), "{rows:?}");

    assert_eq!(home.json(&["run", &file, "-p", ""])["rows"], serde_json::json!([]));
}

#[test]
fn results_can_be_read_back_in_every_form() {
    let home = Home::new();
    let file = mlp("hlo");
    let write = |name: &str| home.run(&["run", &file, "-p", PASSES, "-o", name]).expect(0);
    write("a.hlo");
    let expected = home.fingerprint("a.hlo");
    assert_ne!(expected, home.fingerprint(&file));
    for name in ["a.pb", "a.hlo.gz", "a.pb.zst"] {
        write(name);
        assert_eq!(home.fingerprint(name), expected, "{name}");
    }
    // These lose the names and the layouts, not the meaning.
    for name in ["a.mlir", "a.mlirbc"] {
        write(name);
        home.run(&["check", &file, name]).expect(0).prints(&["equal on "]);
    }
    assert!(home.read("a.hlo").starts_with(b"HloModule"));
    assert!(home.read("a.hlo.gz").starts_with(b"\x1f\x8b"));
    assert!(home.read("a.pb.zst").starts_with(b"\x28\xb5\x2f\xfd"));
    assert!(String::from_utf8(home.read("a.mlir")).unwrap().contains("module @"));
    assert!(home.read("a.mlirbc").starts_with(b"ML\xefR"));
    home.expect_clean(6);
}

#[test]
fn default_shows_what_xla_does() {
    let home = Home::new();
    let file = mlp("hlo");
    let outputs = ["--middle-output", "middle.pb", "-o", "end.hlo"];
    let shown = home.json(&[&["default", &file], &outputs[..]].concat());
    let passes = shown["passes"].as_array().unwrap();
    assert!(passes.len() > 100, "only {}", passes.len());
    assert!(passes.iter().all(|pass| pass["changed"].is_boolean()));
    assert!(passes.iter().any(|pass| pass["pass"] == "layout-assignment"));
    assert_eq!(shown["start"]["operations"], 37);
    for (name, at, stage) in [("middle.pb", 0, "legal"), ("end.hlo", 1, "final")] {
        assert_eq!(home.json(&["show", name])["counts"], shown["stages"][at]["counts"], "{name}");
        assert_eq!(shown["stages"][at]["name"], stage);
    }
    home.run(&["check", &file, "middle.pb"]).expect(0);
    home.expect_clean(2);

    let text = home.run(&["default", &file]).expect(0).prints(&["layout-assignment", "final"]);
    let all = home.run(&["default", &file, "--all"]).expect(0);
    assert!(all.stdout.lines().count() > text.stdout.lines().count() + 50);
}

#[test]
fn diff_tells_what_changed() {
    let home = Home::new();
    let file = mlp("hlo");
    home.run(&["diff", &file, &mlp("stablehlo.bc")]).expect(0).prints(&["are the same program"]);
    home.run(&["run", &file, "-p", "algsimp", "-o", "b.hlo"]).expect(0);
    let text = home.run(&["diff", &file, "b.hlo"]).expect(0);
    assert!(text.row("reshape").ends_with(" -10"), "{text:#?}");
    let changes = home.json(&["diff", &file, "b.hlo"]);
    assert_eq!(changes["identical"], false);
    let reshape = serde_json::json!({"name": "reshape", "a": 10, "b": 0});
    assert!(changes["opcodes"].as_array().unwrap().contains(&reshape), "{changes}");
    assert_eq!(home.json(&["diff", "b.hlo", "b.hlo"])["identical"], true);
}

#[test]
fn relative_paths_are_those_of_the_caller() {
    let home = Home::new();
    fs::create_dir(home.path("folder")).unwrap();
    fs::copy(mlp("hlo"), home.path("folder/a b ü.hlo")).unwrap();
    home.run(&["run", "folder/a b ü.hlo", "-p", "dce", "-o", "folder/c.hlo"]).expect(0);
    let mut command = home.command(&["show", "../folder/c.hlo"]);
    let ran = command.current_dir(home.path("folder")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::new();
    let mut child =
        home.command(&["default", &graph("mlp-train"), "--all"]).stdout(pipe()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

fn pipe() -> std::process::Stdio {
    std::process::Stdio::piped()
}
