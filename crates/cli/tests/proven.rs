//! `eval` counts a gain only if its outputs were run and found equal.

mod common;

use common::{Home, testdata};
use serde_json::Value;

/// A scatter with batch dimensions, on which `scatter_determinism_expander` is wrong, and a long
/// chain that any order can tidy up.
fn batched_scatter() -> String {
    std::fs::read_to_string(testdata("proof/batched-scatter.hlo")).unwrap()
}

const RIGHT: &str = "right=algsimp,dce";
const WRONG: &str = "wrong=scatter_determinism_expander,algsimp,dce";

/// The outcomes of a file, after the line that says what their figures are.
fn outcomes(home: &Home, file: &str) -> Vec<Value> {
    let text = String::from_utf8(home.read(file)).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let first: Value = lines.next().unwrap();
    assert_eq!(first["header"]["stages"][0]["name"], "order", "{first}");
    lines.collect()
}

fn stage<'a>(outcome: &'a Value, name: &str) -> &'a Value {
    let stages = outcome["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["name"] == name).unwrap()
}

#[test]
fn a_wrong_order_gains_nothing() {
    let home = Home::new();
    home.write("scatter.hlo", batched_scatter());
    let eval = ["eval", "--benchmarks", "scatter.hlo", "--against", "default", "-o", "out.jsonl"];
    let eval = [&eval[..], &["--order", RIGHT, "--order", WRONG]].concat();
    let ended = home.run(&eval).expect(0);
    let said = &ended.stdout;
    for words in ["Not found equal", "scatter.hlo, wrong", "after scatter_determinism_expander"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert!(!said.contains("scatter.hlo, right"), "{said}");
    let rows = outcomes(&home, "out.jsonl");
    let find = |name: &str| rows.iter().find(|row| row["contestant"] == name).unwrap();
    let (right, wrong) = (find("right"), find("wrong"));
    for part in ["order", "legal"] {
        assert_eq!(stage(right, part)["outputs"], "equal", "{right}");
        assert_eq!(stage(find("default"), part)["outputs"], "equal");
        assert!(stage(right, part).get("claimed").is_none(), "{right}");
    }
    // Made legal, the scatter has no batch dimensions any more, and the same pass is right.
    assert_eq!(stage(wrong, "legal")["outputs"], "equal", "{wrong}");
    let (right, order) = (stage(right, "order"), stage(wrong, "order"));
    assert_eq!(order["outputs"], "different", "{wrong}");
    assert!(right["result"].as_f64() < right["initial"].as_f64());
    // What it claims is written down, and does not count.
    assert_eq!(order["result"], order["initial"], "{wrong}");
    assert!(order["claimed"].as_f64() < order["initial"].as_f64(), "{wrong}");
    assert!(stage(wrong, "kernels").get("claimed").is_none(), "{wrong}");
    assert_eq!(wrong["guilty"], "scatter_determinism_expander", "{wrong}");

    // Nothing is done again, and the table is the same.
    assert_eq!(home.run(&eval).expect(0).stdout, *said);
    assert_eq!(outcomes(&home, "out.jsonl").len(), rows.len());
    home.run(&["report", "out.jsonl", "-o", "page"]).expect(0);
    let page = String::from_utf8(home.read("page/index.html")).unwrap();
    assert!(page.contains("counts as if nothing had been done"));
}

#[test]
fn without_a_check_outcomes_say_so_and_are_done_again_with_one() {
    let home = Home::new();
    home.write("scatter.hlo", batched_scatter());
    let eval = ["eval", "--benchmarks", "scatter.hlo", "--against", "none", "-o", "out.jsonl"];
    let eval = [&eval[..], &["--order", WRONG, "--no-legal"]].concat();
    let ended = home.run(&[&eval[..], &["--no-check"]].concat()).expect(0);
    assert!(ended.stdout.contains("never run"), "{}", ended.stdout);
    let rows = outcomes(&home, "out.jsonl");
    let order = stage(&rows[0], "order");
    assert_eq!(order["outputs"], "unchecked");
    assert!(order["result"].as_f64() < order["initial"].as_f64());
    let checked = home.run(&[&eval[..], &["--trials", "1"]].concat()).expect(0);
    assert!(checked.stdout.contains("scatter.hlo, wrong"), "{}", checked.stdout);
    assert_eq!(stage(&outcomes(&home, "out.jsonl")[1], "order")["outputs"], "different");
}

#[test]
fn outcomes_of_old_are_unchecked() {
    let home = Home::new();
    let old = "{\"graph\":\"g\",\"splits\":[\"test\"],\"contestant\":\"ppo\",\"kind\":\"rollout\",\
               \"seed\":0,\"budget\":64,\"charged\":64,\
               \"order\":{\"initial\":100,\"default\":80,\"result\":70},\"seconds\":1.0}\n";
    home.write("old.jsonl", old);
    home.run(&["report", "old.jsonl", "-o", "page"]).expect(0);
    let page = String::from_utf8(home.read("page/index.html")).unwrap();
    assert!(page.contains("unchecked") && page.contains("never run"));
}
