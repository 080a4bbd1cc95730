//! Every command on another compiler: nothing above the engine is written for one.

mod common;

use common::{Home, stage, testdata};
use serde_json::Value;

fn toy(name: &str) -> String {
    testdata(&format!("toy/{name}.toy")).to_str().unwrap().to_owned()
}

/// On this one the pass that miscompiles makes the program smaller than any right order does.
const TEMPTING: &str = "tempting";
const POLYNOMIAL: &str = "polynomial";
const ORDER: &str = "fold,simplify,copy-elim,dead";
/// Better than the toy's own on the polynomial.
const BETTER: &str = "simplify,fold,copy-elim,dedup,copy-elim,dedup,copy-elim,dead";

#[test]
fn programs_are_looked_at_and_passes_run() {
    let home = Home::new();
    let file = toy(POLYNOMIAL);
    let passes = home.run(&["passes", "--engine", "toy"]).expect(0);
    passes.prints(&["copy-elim", "[may change results]", "[only if named]"]);
    let shown = home.json(&["show", &file]);
    let lines = shown["counts"]["lines"].as_u64().unwrap();
    assert!(lines > 10 && shown["cost"]["work"].as_f64().unwrap() > 1.0, "{shown}");
    home.run(&["show", &file]).expect(0).prints(&["lines", "constants", "work", "mul"]);

    // A pass that never ends is one more row.
    let args = ["run", &file, "-p", "fold,hang,dead", "--pass-limit", "0.5", "-o", "b.toy"];
    let ran = home.run(&[&args[..], &["--json", "--verify"]].concat()).expect(1).json();
    assert_eq!(ran["rows"][1]["error_kind"], "timed out", "{ran}");
    let after = ran["rows"][2]["counts"]["lines"].as_u64().unwrap();
    assert!(after < lines, "{ran}");
    assert_eq!(home.json(&["show", "b.toy"])["counts"]["lines"], after);
    home.run(&["diff", &file, "b.toy"]).expect(0).prints(&["lines", "opcode"]);
    home.run(&["quarantine"]).expect(0).prints(&["hang"]);
    // XLA's forms are none of its.
    home.run(&["run", &file, "-p", "fold", "-o", "b.hlo"]).expect(1).says(&["toy writes no .hlo"]);
    home.run(&["show", &file, "--engine", "gcc"]).expect(2).says(&["xla", "llvm", "toy"]);
    home.run(&["run", &file, "-p", "fold", "--start", "normalized"])
        .expect(2)
        .says(&["is no start of the toy compiler", "emitted, lowered"]);
}

#[test]
fn its_own_pipeline_is_what_orders_are_compared_with() {
    let home = Home::new();
    let file = toy(POLYNOMIAL);
    let default = home.json(&["default", &file, "-o", "end.toy"]);
    assert_eq!(default["stages"][0]["name"], "final");
    let end = &default["stages"][0]["counts"]["lines"];
    assert_eq!(&home.json(&["show", "end.toy"])["counts"]["lines"], end);
    home.run(&["default", &file, "--disable", "lower"]).expect(1).says(&["cannot be left out"]);
    home.run(&["default", &file, "--all"]).expect(0).prints(&["lower", "optimizes", "prepares"]);

    let score = home.json(&["score", &file, "-p", BETTER]);
    assert_eq!(&stage(&score, "final")["default"], end, "{score}");
    assert!(stage(&score, "order")["value"].as_f64().unwrap() > 1.0, "{score}");
    assert_eq!(score["outputs_replace"]["verdict"], "equal");
    let text = home.run(&["score", &file, "-p", "dead"]).expect(0);
    text.prints(&["lines at the end of the order", "lines of the final program", "equal on "]);
}

#[test]
fn a_wrong_program_is_told_from_a_right_one() {
    let home = Home::new();
    let file = toy(TEMPTING);
    home.run(&["run", &file, "-p", "cancel,dead", "-o", "wrong.toy"]).expect(0);
    home.run(&["run", &file, "-p", ORDER, "-o", "right.toy"]).expect(0);
    home.run(&["check", &file, "right.toy"]).expect(0).prints(&["equal on "]);
    home.run(&["check", &file, "wrong.toy"]).expect(4).prints(&["DIFFERENT"]);
    let [first, right, wrong] = [&*file, "right.toy", "wrong.toy"]
        .map(|file| home.json(&["exec", file, "--runs", "3"])["digest"].clone());
    assert_eq!(first, right);
    assert_ne!(first, wrong);
    home.run(&["score", &file, "-p", "cancel,dead"]).expect(1).prints(&["DIFFERENT"]);
}

#[test]
fn an_order_is_found_proven_written_down_and_applied() {
    let home = Home::new();
    let file = toy(POLYNOMIAL);
    let args = ["optimize", &file, "--budget", "400", "--recipe", "r.json", "--report", "r.html"];
    let found = home.json(&[&args[..], &["-o", "out.toy"]].concat());
    let worth = |name: &str| stage(&found["evidence"], name)["value"].as_f64().unwrap();
    assert!(found["gain"].as_f64().unwrap() > 1.0 && worth("final") > 1.0, "{found}");
    assert_eq!(found["evidence"]["outputs"]["verdict"], "equal");
    assert_eq!(found["objective"], "final");
    let html = String::from_utf8(home.read("r.html")).unwrap();
    assert!(html.contains("its own") && !html.contains("XLA&#39;s"), "{html}");

    let applied = home.json(&["apply", "r.json", &file, "-o", "again.toy"]);
    assert_eq!(applied["outputs"]["verdict"], "equal", "{applied}");
    assert_eq!(home.read("again.toy"), home.read("out.toy"));
    let line = applied["commands"][0][1].as_str().unwrap();
    assert!(line.starts_with("xla-gym run FILE.toy -p "), "{line}");

    let other = toy(TEMPTING);
    home.run(&["apply", "r.json", &other]).expect(1).says(&["another program"]);
    let short = home.json(&["minimize", &file, "--recipe", "r.json"]);
    assert!(short["figures"]["final"].as_f64().unwrap() > 0.0, "{short}");
    let shown = home.json(&["attribute", &file, "--recipe", "r.json"]);
    assert_eq!(shown["order"]["metrics"][0]["name"], "lines");

    let listed = home.json(&["recipes", "list"]);
    assert!(listed[0]["engine"].as_str().unwrap().starts_with("toy "), "{listed}");
    home.run(&["recipes", "export", "all.jsonl"]).expect(0);
    home.run(&["optimize", &file, "--objective", "kernels"])
        .expect(2)
        .says(&["final, work, registers"]);
    home.run(&["optimize", &file, "--policy", "general"]).expect(2).says(&["toy"]);
    let front = home.json(&["optimize", &file, "--objective", "final,registers", "--no-store"]);
    assert!(front["front"].is_null() || front["front"].is_array(), "{front}");
}

#[test]
fn what_miscompiles_is_never_an_answer() {
    let home = Home::new();
    for name in [TEMPTING, "cancels"] {
        let found = home.json(&["optimize", &toy(name), "--budget", "600", "--no-store"]);
        let passes = found["passes"].as_array().unwrap();
        let verdict = &found["evidence"]["outputs"]["verdict"];
        assert!(verdict.is_null() || verdict == "equal", "{found}");
        if name == TEMPTING {
            assert!(!passes.iter().any(|pass| pass == "cancel"), "{found}");
            let dropped = found["evidence"]["dropped"].to_string();
            assert!(dropped.contains("outputs differ"), "{found}");
        }
    }
}

#[test]
fn agents_learn_compete_and_are_reported_on() {
    let home = Home::new();
    let folder = testdata("toy").to_str().unwrap().to_owned();
    let programs: Vec<String> =
        ["polynomial", "filters", "distances", "strides"].iter().map(|name| toy(name)).collect();
    home.write(
        "ppo.toml",
        "name = \"ppo\"\nbenchmarks = []\nsteps = 2000\n\n[network]\nhidden = [32, 32]\n\n\
         [algorithm]\nname = \"ppo\"\nepisodes = 8\nbatch = 64\nepochs = 4\n\n\
         [environment]\ntraj-limit = 12\n\n[environment.reward]\nobjective = \"record\"\n\n\
         [observation]\npolicy = [\"share\", \"applied\"]\n",
    );
    let mut train = vec!["train", "ppo.toml", "-o", "run", "--seed", "1"];
    for program in &programs {
        train.extend(["--benchmarks", program]);
    }
    let trained = home.json(&train);
    assert!(trained["steps"].as_u64().unwrap() >= 2000, "{trained}");
    let eval = ["eval", "run", "--engine", "toy", "--benchmarks", &folder, "--seeds", "0"];
    let eval = [&eval[..], &["--budget", "12", "-o", "out.jsonl"]].concat();
    // Whoever tried the pass that miscompiles gained nothing by it, and is told so.
    home.run(&eval).expect(0).prints(&["after cancel", "its own", "random"]);
    let rows = String::from_utf8(home.read("out.jsonl")).unwrap();
    let outcomes = |name: &str| {
        let name = format!("\"contestant\":\"{name}\"");
        rows.lines().filter(|row| row.contains(&name)).count()
    };
    assert_eq!((outcomes("default"), outcomes("run")), (12, 12), "{rows}");
    home.run(&["report", "out.jsonl", "--run", "run", "-o", "page"]).expect(0);
    let page = String::from_utf8(home.read("page/index.html")).unwrap();
    assert!(page.contains("its own") && !page.contains("kernels"), "{page}");
    // What was learnt on one compiler says nothing of another.
    let policy = "run/policy.safetensors";
    home.run(&[
        "eval",
        policy,
        "--benchmarks",
        "hlo-v1/mlp/classifier-forward-8l",
        "--against",
        "none",
    ])
    .expect(1);
    let guided = home.json(&["optimize", &toy(POLYNOMIAL), "--policy", policy, "--no-store"]);
    assert!(guided["gain"].as_f64().unwrap() >= 1.0, "{guided}");
}

#[test]
fn folders_are_scanned() {
    let home = Home::new();
    let folder = testdata("toy").to_str().unwrap().to_owned();
    let scanned = home.json(&["data", "scan", "--engine", "toy", &folder]);
    let programs = scanned["programs"].as_array().unwrap();
    assert!(programs.len() >= 8, "{scanned}");
    assert!(programs[0]["default"]["Ok"]["final"].as_u64().unwrap() > 0, "{scanned}");
    let Value::Array(skipped) = &scanned["skipped"] else { panic!("{scanned}") };
    assert!(skipped.is_empty(), "{scanned}");
}
