//! Commands that are ended from outside leave no process and no half-written file.

mod common;

use std::{
    os::unix::process::ExitStatusExt,
    thread,
    time::{Duration, Instant},
};

use common::{Home, graph, mlp};

/// Long enough for a busy machine, and far less than what they were at work on would take.
const WORKERS_GONE: Duration = Duration::from_secs(15);

/// Starts a command, ends it by a signal once it is busy, and waits for its workers.
#[track_caller]
fn check(arguments: &[&str], after: Duration, signal: (&str, i32)) {
    let home = Home::new();
    home.write("kept.hlo", "precious");
    let running = home.start(arguments);
    // The command, its first worker and those forked from it.
    let start = Instant::now();
    while home.processes().len() < 5 {
        assert!(start.elapsed() < Duration::from_secs(60), "no workers start");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(after);
    running.signal(signal.0);
    let ran = running.wait();
    assert_eq!(ran.status.signal(), Some(signal.1), "{ran:#?}");
    let end = Instant::now();
    while !home.processes().is_empty() {
        assert!(end.elapsed() < WORKERS_GONE, "{:?} still run", home.processes());
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(home.read("kept.hlo"), b"precious");
    assert_eq!(home.files(), ["kept.hlo"]);
    assert_eq!(ran.stdout, "");
}

const CTRL_C: (&str, i32) = ("INT", 2);

#[test]
fn in_the_middle_of_runs() {
    let exec = ["exec", &mlp("hlo"), "--runs", "1000000000"];
    for signal in [CTRL_C, ("TERM", 15), ("KILL", 9)] {
        check(&exec, Duration::from_millis(300), signal);
    }
}

#[test]
fn in_the_middle_of_a_score() {
    let score = ["score", &graph("mlp-train"), "-p", "algsimp,cse,dce", "-o", "kept.hlo"];
    for millis in [0, 200, 600] {
        check(&score, Duration::from_millis(millis), CTRL_C);
    }
}

/// The compiler is in the middle of a long request, and nobody is left to wait for it.
#[test]
fn in_the_middle_of_a_long_compilation() {
    let show = ["show", "--memory", &graph("gpt2-train-12l")];
    check(&show, Duration::from_millis(500), CTRL_C);
}
