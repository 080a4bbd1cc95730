//! The toy worker as the object of tests: built if need be, started under a name of its own, and
//! found in the process table by that name.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, PassFailure, Session, Source,
    protocol::{Fingerprint, Form, Limits, Observe, PassId},
};

/// x * (2 - 1) + x, the long way; the passes of the toy make two lines of it.
pub const PROGRAM: &str = "toy\ninput 0\nconst 2\nconst -1\nadd 1 2\nmul 0 3\ninput 0\nadd 4 5\n";

/// The passes that do no harm, without the slow one.
pub const HONEST: [&str; 7] = ["fold", "simplify", "dedup", "copy-elim", "dead", "shift", "scale"];

/// Tight, so that tests are short.
pub const LIMITS: Limits =
    Limits { pass_millis: 300, request_millis: 5_000, memory_bytes: 256 << 20 };

/// How long to wait for what should happen at once, on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One test's worker program and its folder. Insists, when it goes out of scope, that no process
/// is left; declare it before the engine.
pub struct Toy {
    pub folder: TempDir,
    /// The processes' name, which the kernel cuts at 15 characters and keeps even for zombies.
    name: String,
}

/// A process of the toy worker.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// `R` for running, `Z` for a zombie.
    pub state: char,
}

impl Toy {
    pub fn new() -> Toy {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}-{number}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        symlink(binary(), folder.path().join(&name)).unwrap();
        Toy { folder, name }
    }

    pub fn worker(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub fn config(&self) -> EngineConfig {
        EngineConfig {
            limits: LIMITS,
            quarantine: Some(self.folder.path().join("quarantine.jsonl")),
            freeze_after: Duration::from_millis(1),
            ..EngineConfig::new(self.worker())
        }
    }

    pub fn engine(&self) -> Engine {
        Engine::start(self.config()).unwrap()
    }

    /// All processes that run this worker program, and the dead ones that one of us has to reap.
    /// Orphans of a killed worker fall to process 1, which may take its time.
    pub fn processes(&self) -> Vec<Process> {
        let mut processes = processes_named(&self.name);
        processes.retain(|process| process.state != 'Z' || process.parent != 1);
        processes
    }

    /// Kills what `which` selects, as `kill -9` would; how many there were.
    pub fn kill(&self, which: impl Fn(&Process) -> bool) -> usize {
        let victims: Vec<Process> = self.processes().into_iter().filter(which).collect();
        victims.iter().for_each(|victim| signal(*victim, Signal::KILL));
        victims.len()
    }

    /// Whether no process is left, within `patience`.
    pub fn gone_within(&self, patience: Duration) -> bool {
        wait_until(patience, || self.processes().is_empty())
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert!(self.gone_within(PATIENCE), "left over: {:?}", self.processes());
        }
    }
}

/// Sends a signal, unless the process has gone.
pub fn signal(process: Process, signal: Signal) {
    let pid = Pid::from_raw(process.pid).unwrap();
    if let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) {
        let _ = pidfd_send_signal(descriptor, signal);
    }
}

pub fn wait_until(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

pub fn processes_named(name: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| parse_stat(&entry.path().join("stat"), name)).collect()
}

/// Reads `pid (name) state parent ...`.
fn parse_stat(path: &Path, name: &str) -> Option<Process> {
    path.parent()?.file_name()?.to_str()?.parse::<i32>().ok()?;
    let stat = fs::read_to_string(path).ok()?;
    let (pid, rest) = stat.split_once(" (")?;
    let mut rest = rest.strip_prefix(name)?.strip_prefix(") ")?.split(' ');
    Some(Process {
        pid: pid.parse().ok()?,
        state: rest.next()?.chars().next()?,
        parent: rest.next()?.parse().ok()?,
    })
}

/// [`PROGRAM`], loaded.
pub fn load(engine: &Engine) -> Session {
    engine.load(&Source::from_bytes("program.toy", PROGRAM.into()).unwrap()).unwrap()
}

/// Applies a pass that is meant to work; whether it changed the program.
pub fn apply(session: &mut Session, pass: &str) -> bool {
    let pass = session.engine().pass(pass).unwrap();
    session.apply(pass, Observe::NOTHING).unwrap().changed
}

/// Everything a caller can know about a session: two that agree in this are the same.
pub fn state(session: &mut Session) -> (Vec<PassId>, String, Option<Fingerprint>) {
    let text = String::from_utf8(session.print(Form::TEXT).unwrap()).unwrap();
    let seen = session.observe(Observe::FINGERPRINT).unwrap();
    assert_eq!(session.fingerprint().ok(), seen.fingerprint, "what it remembers and what it is");
    (session.steps().to_vec(), text, seen.fingerprint)
}

/// Insists that a pass did not take place, and says why: the kind and the whole message.
pub fn failure<T: std::fmt::Debug>(result: Result<T, EngineError>) -> (PassFailure, String) {
    match result {
        Err(EngineError::Pass(error)) => (error.failure.clone(), error.to_string()),
        other => panic!("a failed pass was expected, not {other:?}"),
    }
}

/// The worker program beside this test program; built now if it is missing or older than its
/// source, because `cargo test -p xla-gym-engine` does not do so.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // target/PROFILE/deps/TEST
        let test = env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        let binary = folder.join("xla-gym-worker-toy");
        let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        if changed(&binary) < newest_source() {
            let profile = match folder.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                other => other,
            };
            let status = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
                .args(["build", "--quiet", "--package", "xla-gym-toy-worker", "--profile", profile])
                .arg("--target-dir")
                .arg(folder.parent().unwrap())
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(status.is_ok_and(|status| status.success()), "the toy worker does not build");
        }
        binary
    })
}

fn newest_source() -> Option<SystemTime> {
    ["protocol", "worker", "toy-worker"]
        .into_iter()
        .map(|part| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src"))
        .flat_map(|folder| fs::read_dir(folder).unwrap().flatten())
        .filter_map(|file| file.metadata().and_then(|data| data.modified()).ok())
        .max()
}
