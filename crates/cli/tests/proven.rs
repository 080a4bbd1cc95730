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

fn outcomes(home: &Home, file: &str) -> Vec<Value> {
    let text = String::from_utf8(home.read(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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
    for part in ["outputs", "legal_outputs"] {
        assert_eq!(right[part], "equal", "{right}");
        assert_eq!(find("default")[part], "equal");
    }
    // Made legal, the scatter has no batch dimensions any more, and the same pass is right.
    assert_eq!(wrong["outputs"], "different", "{wrong}");
    assert_eq!(wrong["legal_outputs"], "equal", "{wrong}");
    assert!(right["order"]["result"].as_u64() < right["order"]["initial"].as_u64());
    assert!(right.get("claimed").is_none(), "{right}");
    // What it claims is written down, and does not count.
    assert_eq!(wrong["order"]["result"], wrong["order"]["initial"], "{wrong}");
    assert!(wrong["claimed"]["order"].as_u64() < wrong["order"]["initial"].as_u64(), "{wrong}");
    assert!(wrong["claimed"].get("kernels").is_none(), "{wrong}");
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
    assert_eq!(rows[0]["outputs"], "unchecked");
    assert!(rows[0]["order"]["result"].as_u64() < rows[0]["order"]["initial"].as_u64());
    let checked = home.run(&[&eval[..], &["--trials", "1"]].concat()).expect(0);
    assert!(checked.stdout.contains("scatter.hlo, wrong"), "{}", checked.stdout);
    assert_eq!(outcomes(&home, "out.jsonl")[1]["outputs"], "different");
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
