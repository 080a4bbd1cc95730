//! Every pass on every program of `testdata/classics`, each in a forked worker: which ones abort, hang,
//! are refused or leave behind what the verifier refuses. Those that do are marked in the pass table,
//! and are no default actions.
//!
//! Shows its table with `--nocapture`. With `XLA_GYM_SLOW=1` every program that a pass has changed is
//! compiled, run, and must print what it did before.

mod common;

use std::{
    collections::{BTreeMap, HashMap},
    env,
    time::{Duration, Instant},
};

use common::{bitcode, classic_names, engine, misprint};
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Fingerprint, Observe, PassId},
};

/// What makes most programs ready for passes that look at loops and values.
const PREPARED: [&str; 6] = [
    "sroa",
    "early-cse",
    "simplifycfg",
    "instcombine<no-verify-fixpoint>",
    "loop-simplify",
    "loop-rotate",
];

/// Programs that stand for all others unless there is time: numbers, pointers, floating point, a large
/// function.
const QUICK: [&str; 4] = ["crc32", "trie", "fft", "interpreter"];

/// What was seen of one pass.
#[derive(Default)]
struct Seen {
    changed: usize,
    slowest: Duration,
    /// What went wrong, and on which programs.
    wrong: BTreeMap<String, Vec<String>>,
}

#[test]
fn passes_that_misbehave_are_no_default_actions() {
    let slow = env::var_os("XLA_GYM_SLOW").is_some();
    let engine = engine();
    let mut seen: BTreeMap<usize, Seen> = BTreeMap::new();
    let mut programs = 0;
    // Many passes make the same of a program, so that it need not be run again.
    let mut known = HashMap::new();
    for name in classic_names() {
        if !slow && !QUICK.contains(&name.as_str()) {
            continue;
        }
        let mut session = engine.load(&bitcode(&name)).unwrap();
        for state in ["raw", "prepared"] {
            if state == "prepared" {
                for pass in PREPARED {
                    common::apply(&mut session, pass);
                }
            }
            programs += 1;
            for pass in 0..engine.hello().passes.len() {
                let place = format!("{name} {state}");
                let known = slow.then_some(&mut known);
                try_pass(&mut session, pass, &name, &place, known, seen.entry(pass).or_default());
            }
        }
    }
    let table = engine.hello().passes.iter().zip(seen.values());
    let mut unmarked = Vec::new();
    println!("{} passes on {programs} states of programs", engine.hello().passes.len());
    for (pass, seen) in table {
        if seen.wrong.is_empty() {
            continue;
        }
        let wrong: Vec<String> =
            seen.wrong.iter().map(|(what, on)| format!("{what} ({})", on.join(", "))).collect();
        println!("{}\t{} changed\t{}", pass.name, seen.changed, wrong.join("; "));
        if pass.is_default_action {
            unmarked.push(pass.name.clone());
        }
    }
    let mut by_time: Vec<_> = engine.hello().passes.iter().zip(seen.values()).collect();
    by_time.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.slowest));
    for (pass, seen) in by_time.iter().take(10) {
        println!("slowest: {}\t{:?}", pass.name, seen.slowest);
    }
    let idle = seen.values().filter(|seen| seen.changed == 0 && seen.wrong.is_empty()).count();
    println!("{idle} passes changed nothing");
    assert!(unmarked.is_empty(), "{unmarked:?}");
}

fn try_pass(
    session: &mut Session,
    pass: usize,
    program: &str,
    place: &str,
    printed: Option<&mut HashMap<Fingerprint, Option<String>>>,
    seen: &mut Seen,
) {
    let mut fork = session.fork().unwrap();
    let begin = Instant::now();
    let result = fork.apply(PassId(pass as u16), Observe::VERDICT | Observe::FINGERPRINT);
    seen.slowest = seen.slowest.max(begin.elapsed());
    let lossy = session.engine().hello().passes[pass].lossy;
    let wrong = match result {
        Ok(applied) => {
            seen.changed += usize::from(applied.changed);
            match applied.observation.verdict {
                Some(Err(message)) => {
                    Some(format!("breaks: {}", message.lines().next().unwrap_or_default()))
                }
                _ => match (printed, applied.observation.fingerprint) {
                    // What instruments a program needs libraries, so that only the others can be run.
                    (Some(known), Some(state)) if applied.changed && !lossy => {
                        known.entry(state).or_insert_with(|| misprint(&mut fork, program)).clone()
                    }
                    _ => None,
                },
            }
        }
        Err(EngineError::Pass(error)) => {
            let message = error.failure.to_string();
            Some(format!(
                "{}: {}",
                error.failure.kind(),
                message.lines().next().unwrap_or_default()
            ))
        }
        Err(error) => panic!("{error}"),
    };
    if let Some(wrong) = wrong {
        seen.wrong.entry(wrong).or_default().push(place.to_owned());
    }
}
