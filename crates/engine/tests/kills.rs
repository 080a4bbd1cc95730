//! Workers are killed from outside, one by one and all at once, and so is their host.

mod toy;

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use rustix::process::set_child_subreaper;
use toy::{
    HONEST, LIMITS, PATIENCE, Process, Toy, apply, load, processes_named, state, wait_until,
};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session,
    protocol::{Observe, PassId},
};

fn is_stem(process: &Process) -> bool {
    process.parent == std::process::id() as i32
}

/// Random passes that do no harm; some of them slow, so that a kill often hits one at work.
fn random_passes(engine: &Engine, rng: &mut ChaCha8Rng, count: usize) -> Vec<PassId> {
    let names = (0..count).map(|_| match rng.random_ratio(1, 200) {
        true => "slow",
        false => HONEST.choose(rng).unwrap(),
    });
    names.map(|name| engine.pass(name).unwrap()).collect()
}

#[test]
fn a_thousand_steps_end_the_same_with_fifty_kills_and_without() {
    const ROUNDS: usize = 50;
    let toy = Toy::new();
    let engine = toy.engine();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut passes = random_passes(&engine, &mut rng, 1000);
    // On a busy machine the killer may come late; every fifth round waits for it.
    passes.iter_mut().step_by(100).for_each(|pass| *pass = engine.pass("slow").unwrap());
    let mut undisturbed = load(&engine);
    undisturbed.multistep(&passes, Observe::NOTHING, |_| {}).unwrap();
    let expected = state(&mut undisturbed);
    drop(undisturbed);

    let mut session = load(&engine);
    let mut hits = 0;
    for round in passes.chunks(1000 / ROUNDS) {
        // What dies, and when: one process, the stem, all copies of the program, everything.
        let (what, delay) = (rng.random_range(0..4), rng.random_range(0..1000));
        let lucky: usize = rng.random_range(0..1000);
        let victims = toy.processes();
        let one = victims[lucky % victims.len()].pid;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let killer = scope.spawn(|| {
                thread::sleep(Duration::from_micros(delay));
                let mid_flight = !done.load(Ordering::SeqCst);
                let killed = toy.kill(|process| match what {
                    0 => process.pid == one,
                    1 => is_stem(process),
                    2 => !is_stem(process),
                    _ => true,
                });
                mid_flight && killed > 0
            });
            session.multistep(round, Observe::NOTHING, |_| {}).unwrap();
            done.store(true, Ordering::SeqCst);
            hits += usize::from(killer.join().unwrap());
        });
    }
    assert!(state(&mut session) == expected, "the kills have left a trace");
    assert!(hits > ROUNDS / 10, "only {hits} kills came while passes ran");
}

#[test]
fn one_call_survives_any_number_of_kills() {
    let toy = Toy::new();
    let engine = toy.engine();
    let passes = random_passes(&engine, &mut ChaCha8Rng::seed_from_u64(2), 2000);
    let passes: Vec<PassId> =
        passes.into_iter().filter(|pass| engine.pass_name(*pass) != "slow").collect();
    let mut undisturbed = load(&engine);
    undisturbed.multistep(&passes, Observe::NOTHING, |_| {}).unwrap();

    let mut session = load(&engine);
    let mut seen = 0;
    let mut kills = 0;
    let result = session.multistep(&passes, Observe::NOTHING, |_| {
        seen += 1;
        if seen % 100 == 50 {
            kills += usize::from(toy.kill(|_| true) > 0);
        }
    });
    result.unwrap();
    assert!(kills > 15, "{kills} kills");
    assert!(state(&mut session) == state(&mut undisturbed));
    let suspect = HONEST.iter().find(|pass| engine.quarantine().knows_pass(pass));
    assert_eq!(suspect, None, "it was killed, not guilty");
}

/// Insists that an operation gives the same after the death of every process.
fn check_after_massacre(doing: &str, act: impl Fn(&mut Session) -> String) {
    let toy = Toy::new();
    // More warm workers, all of them dead, than there are attempts.
    let engine = Engine::start(EngineConfig { warm_workers: 8, ..toy.config() }).unwrap();
    let mut session = load(&engine);
    for pass in ["shift", "slow", "scale", "fold"] {
        apply(&mut session, pass);
    }
    let expected = act(&mut session.fork().unwrap());
    assert!(toy.kill(|_| true) > 8);
    assert_eq!(act(&mut session), expected, "{doing}");
}

#[test]
fn the_death_of_every_process_changes_nothing() {
    let show = |session: &mut Session| format!("{:?}", state(session));
    check_after_massacre("looking", show);
    check_after_massacre("applying", |session| {
        apply(session, "dead");
        show(session)
    });
    check_after_massacre("forking", |session| {
        let mut other = session.fork().unwrap();
        apply(&mut other, "shift");
        format!("{} {}", show(&mut other), show(session))
    });
    check_after_massacre("undoing", |session| {
        session.undo(2).unwrap();
        show(session)
    });
    check_after_massacre("resetting", |session| {
        session.reset().unwrap();
        show(session)
    });
    check_after_massacre("loading", |session| show(&mut load(session.engine())));
    check_after_massacre("copying", |session| format!("{}", session.scratch().is_ok()));
}

#[test]
fn eight_threads_of_faults_and_forks_leave_nothing_behind() {
    let toy = Toy::new();
    let engine = toy.engine();
    thread::scope(|scope| {
        for seed in 0..8 {
            let engine = engine.clone();
            scope.spawn(move || random_life(&engine, seed));
        }
    });
    // Now the toy insists that no process is left.
}

/// Steps, faults, forks and ways back at random; checks after each that the session is where a
/// caller would think it is.
fn random_life(engine: &Engine, seed: u64) {
    const FAULTS: [&str; 7] = ["abort", "panic", "segfault", "overflow", "hog", "half", "exit"];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut session = load(engine);
    let mut past = vec![state(&mut session)];
    let check_fault = |session: &mut Session, fault: &str| {
        let result = session.apply(engine.pass(fault).unwrap(), Observe::NOTHING);
        assert!(matches!(result, Err(EngineError::Pass(_))), "{result:?}");
    };
    check_fault(&mut session, "hang");
    for _ in 0..60 {
        match rng.random_range(0..10) {
            0..5 => {
                apply(&mut session, HONEST.choose(&mut rng).unwrap());
                past.push(state(&mut session));
            }
            5..7 => check_fault(&mut session, FAULTS.choose(&mut rng).unwrap()),
            7 => session.kill_worker(),
            8 => session = session.fork().unwrap(),
            _ => {
                let count = rng.random_range(0..past.len());
                session.undo(count).unwrap();
                past.truncate(past.len() - count);
            }
        }
        assert_eq!(Some(&state(&mut session)), past.last());
    }
}

/// Starts this test program again, as a host with a life of its own.
fn start_host(role: &str, toy: &Toy) -> Command {
    let mut host = Command::new(env::current_exe().unwrap());
    host.args(["host_process", "--exact", "--nocapture", "--test-threads=1"])
        .env("XLA_GYM_TEST_HOST", role)
        .env("XLA_GYM_TEST_WORKER", toy.worker());
    host
}

/// Does nothing by itself: the body of the processes that the tests below start.
#[test]
fn host_process() {
    let Ok(role) = env::var("XLA_GYM_TEST_HOST") else { return };
    let worker = env::var_os("XLA_GYM_TEST_WORKER").unwrap();
    let name = std::path::Path::new(&worker).file_name().unwrap().to_str().unwrap().to_owned();
    let config = EngineConfig {
        limits: LIMITS,
        warm_workers: 30,
        freeze_after: Duration::ZERO,
        ..EngineConfig::new(worker.clone().into())
    };
    match role.as_str() {
        "hang" => {
            let engine = Engine::start(config).unwrap();
            let mut session = load(&engine);
            apply(&mut session, "shift");
            println!("about to hang");
            let _ = session.apply(engine.pass("hang").unwrap(), Observe::NOTHING);
        }
        // Like the first process of a container: orphans come to it, and it knows nothing of them.
        "container" => {
            set_child_subreaper(Some(rustix::process::getpid())).unwrap();
            let engine = Engine::start(config).unwrap();
            for _ in 0..5 {
                let mut session = load(&engine);
                for pass in ["shift", "scale", "fold"] {
                    apply(&mut session, pass);
                }
                let abort = engine.pass("abort").unwrap();
                session.apply(abort, Observe::NOTHING).unwrap_err();
                session.reset().unwrap();
                drop(session.fork().unwrap());
            }
            let zombies = || processes_named(&name).iter().filter(|one| one.state == 'Z').count();
            assert!(wait_until(PATIENCE, || zombies() == 0), "{} zombies", zombies());
            drop(engine);
            let nobody = || processes_named(&name).is_empty();
            assert!(wait_until(PATIENCE, nobody), "{:?}", processes_named(&name));
        }
        other => panic!("no role {other}"),
    }
}

#[test]
fn workers_do_not_outlive_a_killed_host() {
    let toy = Toy::new();
    let mut host = start_host("hang", &toy).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("about to hang")));
    let running = || toy.processes().iter().any(|process| process.state == 'R');
    assert!(wait_until(PATIENCE, running), "{:?}", toy.processes());
    host.kill().unwrap();
    host.wait().unwrap();
    // The pass itself would never end.
    assert!(toy.gone_within(PATIENCE), "{:?}", toy.processes());
}

#[test]
fn no_zombies_gather_under_a_host_that_reaps_nobody() {
    let toy = Toy::new();
    let output = start_host("container", &toy).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
