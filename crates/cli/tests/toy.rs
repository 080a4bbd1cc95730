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

#[test]
fn programs_are_looked_at() {
    let home = Home::new();
    let file = toy(POLYNOMIAL);
    home.run(&["passes", "--engine", "toy"]).expect(0).prints(&["copy-elim", "[may change results]"]);
    let shown = home.json(&["show", &file]);
    let lines = shown["counts"]["lines"].as_u64().unwrap();
    assert!(lines > 10 && shown["cost"]["work"].as_f64().unwrap() > 1.0, "{shown}");
    let ran = home.json(&["run", &file, "-p", "fold,dead,hang", "--pass-limit", "0.3", "-o", "b.toy"]);
}
