//! A better order for one program.

mod common;

use std::time::Duration;

use common::{Home, mlp};

const GPT2: &str = "hlo-v1/gpt2/train-1l-adamw";

#[test]
fn the_answer_is_better_proven_and_repeatable() {
    let home = Home::new();
    let args = ["optimize", GPT2, "--method", "random", "--budget", "2000", "--recipe", "r.json"];
    let recipe = home.json(&args);
    let count = |ratio: &str, side: &str| recipe[ratio][side].as_u64().unwrap();
    assert!(count("legal", "result") < count("legal", "default"), "{recipe}");
    assert_eq!(recipe["outputs"]["verdict"], "equal", "{recipe}");
    assert!(recipe["searched_passes"].as_u64().unwrap() <= 2000);
    let written: serde_json::Value = serde_json::from_slice(&home.read("r.json")).unwrap();
    assert_eq!(written["passes"], recipe["passes"]);

    // `score` knows nothing of the search.
    let passes: Vec<&str> =
        recipe["passes"].as_array().unwrap().iter().map(|pass| pass.as_str().unwrap()).collect();
    let list = passes.join(",");
    let score = home.json(&["score", GPT2, "--normalise", "--no-check", "--passes", &list]);
    assert_eq!(score["legal"], recipe["legal"]);
    assert_eq!(score["order"], recipe["order"]);
    assert_eq!(score["kernels"]["replace"], recipe["kernels"]);
}

#[test]
fn where_nothing_is_better_xla_keeps_its_order() {
    let home = Home::new();
    let recipe = home.json(&["optimize", &mlp("hlo"), "--budget", "3"]);
    assert!(recipe["legal"]["result"].as_u64() <= recipe["legal"]["default"].as_u64(), "{recipe}");
}

#[test]
fn ctrl_c_keeps_the_best_so_far() {
    let home = Home::new();
    let running =
        home.start(&["optimize", GPT2, "--method", "random", "--budget", "100000000", "--json"]);
    std::thread::sleep(Duration::from_secs(5));
    running.signal("INT");
    let ran = running.wait().expect(0);
    assert_eq!(ran.json()["stopped"], "interrupted");
}

#[test]
fn wrong_inputs_are_named() {
    let home = Home::new();
    home.run(&["optimize", "none.hlo"]).expect(3).says(&["none.hlo"]);
    home.write("bad.hlo", "garbage");
    home.run(&["optimize", "bad.hlo"]).expect(3).says(&["bad.hlo"]);
    home.run(&["optimize", "hlo-v1/mlp/*"]).expect(1).says(&["name one"]);
}
