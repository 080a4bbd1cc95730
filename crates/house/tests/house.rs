//! The rules, on the workspace as it is.

use xla_gym_house::{graph, words, workspace};

#[track_caller]
fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n\n"));
}

#[test]
fn dependencies_point_one_way_and_general_crates_know_no_compiler() {
    let crates = graph::read(&workspace()).unwrap();
    assert!(
        crates.contains_key("engine") && crates["engine"].needs.contains(&"protocol".to_owned())
    );
    none(graph::check(&crates, graph::LEAVING));
}

#[test]
fn general_crates_speak_of_no_compiler() {
    let places = words::find(&workspace()).unwrap();
    none(words::check(&places, &words::ceilings(&workspace()).unwrap()));
}
