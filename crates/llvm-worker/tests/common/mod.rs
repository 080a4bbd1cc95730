//! What the tests share: the worker of this build, and programs in C made into bitcode by clang.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use xla_gym_engine::{
    Engine, EngineConfig, Session, Source,
    protocol::{Form, Limits, Observe},
};

/// As of the house, but for the time of a pass.
pub const LIMITS: Limits =
    Limits { pass_millis: 10_000, request_millis: 60_000, memory_bytes: 4 << 30 };

pub fn config() -> EngineConfig {
    EngineConfig {
        limits: LIMITS,
        ..EngineConfig::new(env!("CARGO_BIN_EXE_xla-gym-worker-llvm").into())
    }
}

pub fn engine() -> Engine {
    Engine::start(config()).unwrap()
}

/// A program of the same LLVM, found as the build finds it.
pub fn tool(name: &str) -> Command {
    let prefix = env::var_os("LLVM_SYS_191_PREFIX").unwrap_or("/usr/lib/llvm-19".into());
    Command::new(Path::new(&prefix).join("bin").join(name))
}

pub fn clang() -> Command {
    tool("clang")
}

pub fn classics() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/classics")
}

/// The programs of the folder, by name.
pub fn classic_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(classics())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Runs a command that is meant to work.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}

/// A program of the folder as clang hands it to the passes: with no optimisation done, and none
/// forbidden.
pub fn bitcode(name: &str) -> Source {
    let path = classics().join(format!("{name}.c"));
    let output = run(clang()
        .args(["-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-o", "-"])
        .arg(path));
    Source::from_bytes(name, output.stdout).unwrap()
}

pub fn text(text: &str) -> Source {
    Source::from_bytes("program.ll", text.as_bytes().to_vec()).unwrap()
}

/// Applies a pass that is meant to work; whether it changed the program.
pub fn apply(session: &mut Session, pass: &str) -> bool {
    let pass = session.engine().pass(pass).unwrap();
    let applied = session.apply(pass, Observe::VERDICT).unwrap();
    assert_eq!(applied.observation.verdict, Some(Ok(())));
    applied.changed
}

pub fn instructions(session: &mut Session) -> u64 {
    session.observe(Observe::COUNTS).unwrap().counts.unwrap().primary()
}

/// Everything a caller can know about a state.
pub fn state(session: &mut Session) -> (Vec<u8>, xla_gym_engine::protocol::Observation) {
    let everything = Observe::COUNTS | Observe::OPCODES | Observe::FINGERPRINT | Observe::EXACT;
    let seen = session.observe(everything | Observe::VERDICT).unwrap();
    (session.print(Form::TEXT).unwrap(), seen)
}

/// What is wrong with what the program prints.
pub fn misprint(session: &mut Session, program: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("program.bc"), folder.path().join("program"));
    fs::write(&source, session.print(Form::BINARY).unwrap()).unwrap();
    let built = clang().arg("-O0").arg(&source).arg("-o").arg(&binary).output().unwrap();
    if !built.status.success() {
        let words = String::from_utf8_lossy(&built.stderr).into_owned();
        return Some(format!("does not compile: {}", words.lines().next().unwrap_or_default()));
    }
    let (argument, expected) = small_case(program);
    let output = Command::new("timeout").arg("20").arg(&binary).arg(argument).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() && printed == format!("{program} {expected}\n") {
        true => None,
        false => Some(format!("miscompiles: {} {}", output.status, printed.trim())),
    }
}

/// Argument and checksum of the small size.
fn small_case(program: &str) -> (String, String) {
    let text = fs::read_to_string(classics().join("classics.tsv")).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("{program}\tsmall\t"))).unwrap();
    let cells: Vec<&str> = row.split('\t').collect();
    (cells[2].to_owned(), cells[3].to_owned())
}
