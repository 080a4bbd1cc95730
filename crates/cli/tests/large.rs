//! Time and memory, which large programs are short of.

mod common;

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use common::Home;

const GPT2: &str = "hlo-v1/gpt2/train-1l-adamw";

/// A slow machine proves something of it in twenty seconds too.
const SMALL: &str = "hlo-v1/gpt2/forward-1l";

/// What depends on time runs alone.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn the_time_for_everything_is_kept_and_something_is_proven() {
    let _alone = ALONE.lock();
    let home = Home::new();
    let begin = Instant::now();
    let recipe = home.json(&["optimize", SMALL, "--seconds", "20", "--no-store"]);
    let took = begin.elapsed().as_secs_f64();
    assert!(took < 20.0 * 1.15 + 1.0, "{took}");
    let evidence = &recipe["evidence"];
    assert_eq!(evidence["outputs"]["verdict"], "equal", "{recipe}");
    assert!(recipe["gain"].as_f64().unwrap() > 1.0, "{recipe}");
    let predictions = &recipe["predictions"];
    let (runs, real) = (predictions["runs"].as_u64().unwrap(), predictions["real"].as_f64());
    assert!(runs > 100 && real.unwrap() > 0.0, "{predictions}");
}

#[test]
fn ctrl_c_gives_what_is_proven_at_once() {
    let _alone = ALONE.lock();
    let home = Home::new();
    let running = home.start(&["optimize", SMALL, "--seconds", "100", "--no-store", "--json"]);
    std::thread::sleep(Duration::from_secs(30));
    let begin = Instant::now();
    running.signal("INT");
    let recipe = running.wait().expect(0).json();
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
    assert_eq!(recipe["evidence"]["outputs"]["verdict"], "equal", "{recipe}");
}

#[test]
fn ctrl_c_while_the_original_runs_ends_that_too() {
    let _alone = ALONE.lock();
    let home = Home::new();
    // A run of it takes several seconds, and its compilation too.
    let graph = "hlo-full-v1/gpt2/forward-124m";
    let running = home.start(&["optimize", graph, "--no-store", "--json"]);
    std::thread::sleep(Duration::from_secs(8));
    let begin = Instant::now();
    running.signal("INT");
    let recipe = running.wait().expect(0).json();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(recipe["passes"].as_array().unwrap().len(), 0, "{recipe}");
    assert_eq!(recipe["evidence"]["search"]["stopped"], "interrupted", "{recipe}");
}

#[test]
fn memory_can_be_the_objective_and_may_not_grow_unsaid() {
    let _alone = ALONE.lock();
    let home = Home::new();
    let graph = "hlo-v1/mlp/classifier-gradient-6l-gelu";
    let recipe =
        home.json(&["optimize", graph, "--objective", "memory", "--budget", "100", "--no-store"]);
    let memory = &recipe["evidence"]["figures"]["memory"];
    let (before, now) = (memory[0].as_f64().unwrap(), memory[1].as_f64().unwrap());
    assert!(now < before && before < 1e6, "{recipe}");
    assert_eq!(recipe["evidence"]["outputs"]["verdict"], "equal", "{recipe}");
    // As if the default needed much more.
    let common = ["optimize", GPT2, "--budget", "100", "--no-store"];
    let ran = home.run(&[&common[..], &["--memory-growth", "0.1"]].concat()).expect(0);
    ran.prints(&[
        "keep it",
        "memory of the final program",
        "where XLA's own needs",
        "--memory-growth",
    ]);
}

#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_before_it_begins() {
    let _alone = ALONE.lock();
    let home = Home::new();
    let graph = "hlo-full-v1/gpt2/decode-step-124m";
    let ran = home.run(&["check", graph, graph, "--memory-limit", "1.5"]);
    ran.expect(5).prints(&["a run takes about 2.", "the limit is 1.5 (--memory-limit)"]);
}
