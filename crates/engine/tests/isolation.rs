//! Whatever a pass, a worker program or a disk does, the caller gets a typed error and keeps
//! the session. The toy worker misbehaves on demand.

mod toy;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use toy::{LIMITS, PROGRAM, Toy, apply, failure, load, state};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, PassFailure, Session, Source,
    protocol::{Form, Limits, Observe, PassId},
};

/// Insists that a fault is reported as `kind` with `words`, leaves the session where it was, and
/// is refused from then on without being tried, in this process and in the next, unless it is one
/// that says nothing about the pass.
fn check_fault(pass: &str, kind: &str, words: &[&str]) {
    let toy = Toy::new();
    let mut forgotten = kind == "killed";
    for process in ["first", "second"] {
        let engine = toy.engine();
        let mut session = load(&engine);
        apply(&mut session, "shift");
        let before = state(&mut session);
        let id = engine.pass(pass).unwrap();

        if process == "first" || forgotten {
            let start = Instant::now();
            let (why, message) = failure(session.apply(id, Observe::NOTHING));
            // On a machine that is busy with others, a hanging worker does not get far.
            let starved = matches!(&why, PassFailure::Died(death) if death.is_idle());
            forgotten |= starved;
            // Its own alarm ends it; the client's later one is for workers that cannot even that.
            let patience = Duration::from_millis(LIMITS.pass_millis) + Duration::from_secs(3);
            assert!(starved || start.elapsed() < patience, "{:?}", start.elapsed());
            assert_eq!(why.kind(), kind, "{message}");
            for word in [pass].iter().chain(words) {
                assert!(message.contains(word), "{word:?} is missing in: {message}");
            }
            assert_eq!(state(&mut session), before);
        }
        check_refused(&mut session, id, words);
        assert_eq!(state(&mut session), before);
        assert!(apply(&mut session, "scale"), "the session works on");
        assert_ne!(state(&mut session), before);
    }
}

/// Insists that the quarantine refuses the pass, for the first reason, in less than 1 ms where
/// nothing comes between.
fn check_refused(session: &mut Session, pass: PassId, words: &[&str]) {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let result = session.apply(pass, Observe::NOTHING);
            let time = start.elapsed();
            let (why, message) = failure(result);
            assert!(matches!(why, PassFailure::Quarantined(_)), "{message}");
            for word in words {
                assert!(message.contains(word), "{word:?} is missing in: {message}");
            }
            time
        })
        .collect();
    times.sort();
    assert!(times[0] < Duration::from_millis(1), "{times:?}");
}

#[test]
fn an_abort_is_contained() {
    check_fault("abort", "aborted", &["aborted", "toy.cc:1: Check failed: toy (1 vs. 2)"]);
}

#[test]
fn a_panic_is_contained() {
    check_fault("panic", "aborted", &["aborted", "a bug in the worker"]);
}

#[test]
fn a_segmentation_fault_is_contained() {
    check_fault("segfault", "aborted", &["segmentation fault"]);
}

#[test]
fn a_stack_overflow_is_contained() {
    check_fault("overflow", "aborted", &["segmentation fault"]);
}

#[test]
fn a_hang_is_contained() {
    check_fault("hang", "timed out", &["300ms"]);
}

#[test]
fn hunger_for_memory_is_contained() {
    check_fault("hog", "out of memory", &["memory limit"]);
}

#[test]
fn an_orderly_failure_leaves_no_trace() {
    check_fault("half", "refused", &["toy.cc:2: the other half is missing"]);
}

#[test]
fn a_silent_exit_is_tried_again_and_then_contained() {
    check_fault("exit", "killed", &["without a word"]);
}

#[test]
fn noise_from_a_worker_costs_the_worker_only() {
    let toy = Toy::new();
    let engine = toy.engine();
    let mut session = load(&engine);
    apply(&mut session, "shift");
    let before = state(&mut session);
    for _ in 0..3 {
        let garbage = engine.pass("garbage").unwrap();
        let error = session.apply(garbage, Observe::NOTHING).unwrap_err();
        assert!(matches!(error, EngineError::Internal(_)), "{error}");
        assert_eq!(state(&mut session), before);
    }
    assert!(apply(&mut session, "scale"));
}

/// Stops the worker that was forked from the first one, so that it does not even hear its alarm.
fn stop_first_child(toy: &Toy) {
    let processes = toy.processes();
    let stem = processes.iter().find(|process| process.parent == std::process::id() as i32);
    let child = processes.iter().find(|process| process.parent == stem.unwrap().pid);
    toy::signal(*child.unwrap(), rustix::process::Signal::STOP);
}

#[test]
fn a_worker_that_cannot_even_end_itself_is_ended() {
    let toy = Toy::new();
    let engine = Engine::start(EngineConfig { warm_workers: 0, ..toy.config() }).unwrap();
    let mut session = load(&engine);
    let before = state(&mut session);
    stop_first_child(&toy);
    // It did nothing, so the pass is not to blame.
    assert!(apply(&mut session, "shift"));
    assert!(!engine.quarantine().knows_pass("shift"));
    session.undo(1).unwrap();
    assert_eq!(state(&mut session), before);
    assert!(apply(&mut session, "scale"));
}

#[test]
fn a_pass_that_was_stopped_for_longer_than_it_may_take_is_tried_again() {
    let toy = Toy::new();
    let engine = Engine::start(EngineConfig { warm_workers: 0, ..toy.config() }).unwrap();
    let mut session = load(&engine);
    let slow = engine.pass("slow").unwrap();
    session.begin(slow, Observe::NOTHING);
    // All of them, as Ctrl-Z does, in the middle of the pass, which takes 50 ms.
    thread::sleep(Duration::from_millis(20));
    let stopped = toy.processes();
    stopped.iter().for_each(|process| toy::signal(*process, rustix::process::Signal::STOP));
    thread::sleep(Duration::from_millis(2 * LIMITS.pass_millis));
    stopped.iter().for_each(|process| toy::signal(*process, rustix::process::Signal::CONT));
    assert!(session.apply(slow, Observe::NOTHING).unwrap().changed);
    assert!(!engine.quarantine().knows_pass("slow"));
}

#[test]
fn a_worker_that_does_not_listen_is_given_up() {
    let toy = Toy::new();
    let limits = Limits { request_millis: 200, ..LIMITS };
    let engine = Engine::start(EngineConfig { limits, ..toy.config() }).unwrap();
    stop_first_child(&toy);
    // More than the connection holds, so that sending it does not end.
    let large = [PROGRAM, &"copy 0\n".repeat(100_000)].concat();
    let source = Source::from_bytes("large.toy", large.into()).unwrap();
    let start = Instant::now();
    let error = engine.load(&source).err().expect("nobody reads it").to_string();
    assert!(error.contains("large.toy") && error.contains("200ms"), "{error}");
    // The time counts from when the connection last took something.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    apply(&mut load(&engine), "shift");
}

#[test]
fn a_slow_caller_is_not_taken_for_a_slow_pass() {
    let toy = Toy::new();
    let engine = toy.engine();
    let mut session = load(&engine);
    // Far more answers than fit into the connection, and a caller that looks away for longer
    // than a pass may take.
    let passes = vec![engine.pass("shift").unwrap(); 2000];
    let mut seen = 0;
    let result = session.multistep(&passes, Observe::OPCODES, |_| {
        if seen == 0 {
            thread::sleep(Duration::from_millis(2 * LIMITS.pass_millis));
        }
        seen += 1;
    });
    result.unwrap();
    assert_eq!((seen, session.steps().len()), (2000, 2000));
}

#[test]
fn several_passes_stop_at_the_one_that_fails() {
    let toy = Toy::new();
    let engine = toy.engine();
    for fault in ["abort", "half", "hog"] {
        let mut session = load(&engine);
        let mut expected = load(&engine);
        let passes = engine.passes(["fold", "shift", fault, "scale"]).unwrap();
        let mut seen = Vec::new();
        let (_, message) = failure(session.multistep(&passes, Observe::COUNTS, |step| {
            assert!(step.observation.counts.is_some());
            seen.push(step.pass);
        }));
        assert!(message.contains(fault), "{message}");
        assert_eq!(seen, passes[..2], "{fault}");
        apply(&mut expected, "fold");
        apply(&mut expected, "shift");
        assert_eq!(state(&mut session), state(&mut expected), "{fault}");

        // Now that the pass is suspect, the batch is cut before it; the result is the same.
        session.reset().unwrap();
        let (why, _) = failure(session.multistep(&passes, Observe::NOTHING, |_| {}));
        assert_eq!(why.kind(), "quarantined");
        assert_eq!(state(&mut session), state(&mut expected), "{fault}");
    }
}

#[test]
fn forks_go_their_own_ways() {
    let toy = Toy::new();
    let engine = toy.engine();
    let mut first = load(&engine);
    apply(&mut first, "shift");
    let mut second = first.fork().unwrap();
    assert_eq!(state(&mut first), state(&mut second));
    let split = state(&mut first);

    apply(&mut first, "scale");
    let scaled = state(&mut first);
    assert_eq!(state(&mut second), split);
    // A fault in one is nothing to the other.
    failure(second.apply(engine.pass("abort").unwrap(), Observe::NOTHING));
    assert_eq!(state(&mut first), scaled);
    apply(&mut second, "fold");
    drop(first);
    assert_ne!(state(&mut second).1, scaled.1);
    second.undo(1).unwrap();
    assert_eq!(state(&mut second), split);
}

#[test]
fn undo_and_reset_lead_back_to_what_was() {
    let toy = Toy::new();
    // Once with a frozen copy after every pass, once with none but the first.
    for freeze_after in [Duration::ZERO, Duration::MAX] {
        let engine = Engine::start(EngineConfig { freeze_after, ..toy.config() }).unwrap();
        let mut session = load(&engine);
        let mut past = vec![state(&mut session)];
        for pass in ["shift", "fold", "scale", "simplify", "copy-elim", "dead"] {
            apply(&mut session, pass);
            past.push(state(&mut session));
        }
        for count in [1, 2, 0, 2] {
            session.undo(count).unwrap();
            past.truncate(past.len() - count);
            assert_eq!(Some(&state(&mut session)), past.last());
        }
        // A new way from here must not meet a frozen copy of the old one.
        apply(&mut session, "scale");
        let here = state(&mut session);
        session.kill_worker();
        assert_eq!(state(&mut session), here);
        session.undo(usize::MAX).unwrap();
        assert_eq!(state(&mut session), past[0]);
        apply(&mut session, "shift");
        session.reset().unwrap();
        assert_eq!(state(&mut session), past[0]);
    }
}

#[test]
fn the_known_best_order_is_better_than_its_reverse() {
    let toy = Toy::new();
    let engine = toy.engine();
    let check = |passes: [&str; 5], expected: u64| {
        let mut session = load(&engine);
        for pass in passes {
            apply(&mut session, pass);
        }
        let counts = session.observe(Observe::COUNTS).unwrap().counts.unwrap();
        assert_eq!(counts.primary(), expected);
    };
    check(["fold", "simplify", "dedup", "copy-elim", "dead"], 2);
    check(["dead", "copy-elim", "dedup", "simplify", "fold"], 7);
}

/// Insists that the program is refused as a worker, soon, with a message that names it.
fn check_start(worker: &Path, words: &[&str]) {
    let toy = Toy::new();
    let mut config = toy.config();
    config.worker = worker.to_owned();
    config.limits = Limits { request_millis: 200, ..LIMITS };
    let start = Instant::now();
    let error = Engine::start(config).err().expect("it must not start");
    // The limit, and the grace for a worker that ends itself.
    assert!(start.elapsed() < Duration::from_millis(200 + 3000 + 1000), "{:?}", start.elapsed());
    assert!(matches!(&error, EngineError::WorkerStart { path, .. } if path == worker), "{error:?}");
    let message = error.to_string();
    for word in [worker.to_str().unwrap()].iter().chain(words) {
        assert!(message.contains(word), "{word:?} is missing in: {message}");
    }
}

/// An executable shell script. Written by another process, because a file that is open for
/// writing anywhere, if only in a process that another test is about to start, cannot be run.
fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#, "sh", text]);
    assert!(shell.arg(&path).status().unwrap().success());
    path
}

#[test]
fn a_program_that_is_no_worker_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    check_start(&folder.path().join("missing"), &["No such file"]);
    check_start(&plain, &["Permission denied"]);
    check_start(Path::new("/bin/true"), &["status: 0"]);
    check_start(Path::new("/bin/echo"), &["status: 0"]);
    let broken = "echo cannot open libxla.so >&2; exit 127";
    check_start(&script(folder.path(), "broken", broken), &["status: 127", "libxla.so"]);
    let noise = "echo noise >&3; exec sleep 1000";
    check_start(&script(folder.path(), "noise", noise), &["could not be understood"]);
    let small = r"printf '\001\000\000\000\377' >&3; exec sleep 1000";
    check_start(&script(folder.path(), "small", small), &["could not be understood"]);
}

#[test]
fn a_program_that_never_speaks_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    check_start(&script(folder.path(), "silent", "exec sleep 1000"), &["200ms"]);
}

/// Insists that a session lives through a fault although its quarantine cannot be written.
fn check_quarantine_path(path: &Path) {
    let toy = Toy::new();
    let mut config = toy.config();
    config.quarantine = Some(path.to_owned());
    let engine = Engine::start(config).unwrap();
    let mut session = load(&engine);
    let before = state(&mut session);
    let abort = engine.pass("abort").unwrap();
    assert_eq!(failure(session.apply(abort, Observe::NOTHING)).0.kind(), "aborted");
    assert_eq!(state(&mut session), before);
    // Within the process it is remembered all the same.
    check_refused(&mut session, abort, &["Check failed"]);
    assert!(apply(&mut session, "scale"));
}

#[test]
fn a_quarantine_that_cannot_be_written_costs_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check_quarantine_path(Path::new("/proc/no-such-folder/quarantine.jsonl"));
    check_quarantine_path(&file.join("below-a-file.jsonl"));
    // A disk that is always full.
    check_quarantine_path(Path::new("/dev/full"));
    check_quarantine_path(Path::new("/dev/null"));
}

#[test]
fn a_folder_as_quarantine_is_refused_at_the_start() {
    let toy = Toy::new();
    let mut config = toy.config();
    config.quarantine = Some(toy.folder.path().to_owned());
    let error = Engine::start(config).err().expect("it must not start").to_string();
    assert!(error.contains(toy.folder.path().to_str().unwrap()), "{error}");
}

#[test]
fn what_is_no_program_is_refused_with_the_compilers_words() {
    let toy = Toy::new();
    let engine = toy.engine();
    let check = |text: &str, words: &str| {
        let source = Source::from_bytes("bad.toy", text.into()).unwrap();
        let error = engine.load(&source).err().expect("it must not load");
        assert!(matches!(error, EngineError::Load { .. }), "{error:?}");
        assert!(error.to_string().starts_with("bad.toy: "), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    check("", "first line");
    check("toy\nadd 0 1\n", "`add 0 1` makes no sense");
    check("toy\n", "needs a result");
    let mut session = load(&engine);
    assert!(session.print(Form(2)).is_err());
    assert!(apply(&mut session, "shift"), "a form that is not there costs nothing");
}
