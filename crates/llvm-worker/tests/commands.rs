//! The commands on LLVM, and what the profile says of the worker.

mod common;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use common::{bitcode, engine};
use serde_json::Value;
use tempfile::TempDir;
use xla_gym_engine::{Source, protocol::Observe};
use xla_gym_llvm_profile::{INSTRUCTIONS, Llvm, TEXT};
use xla_gym_profile::{Profile, finish};

const ORDER: &str =
    "sroa,instcombine<no-verify-fixpoint>,inline:inline-threshold=0,gvn,simplifycfg";

/// A folder with a program in it, and the command beside the test program's folder.
struct Home {
    folder: TempDir,
    program: String,
}

impl Home {
    fn new(program: &str) -> Home {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("{program}.bc");
        fs::write(folder.path().join(&file), &bitcode(program).bytes).unwrap();
        Home { folder, program: file }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn command(&self, words: &[&str]) -> Command {
        let test = env::current_exe().unwrap();
        let binary = test.ancestors().nth(2).unwrap().join("xla-gym");
        assert!(binary.is_file(), "`make test-llvm` builds {}", binary.display());
        let mut command = Command::new(binary);
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("XLA_GYM_WORKER_LLVM", env!("CARGO_BIN_EXE_xla-gym-worker-llvm"))
            .env("XLA_GYM_STATE_DIR", self.path("state"));
        command
    }

    fn run(&self, words: &[&str]) -> String {
        let output = common::run(&mut self.command(words));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[words, &["--json"]].concat())).unwrap()
    }

    fn fails(&self, words: &[&str]) -> String {
        let output: Output = self.command(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn stage<'a>(json: &'a Value, name: &str) -> &'a Value {
    let stages = json["stages"].as_array().unwrap();
    let is = |stage: &&Value| stage["name"] == name || stage["stage"] == name;
    stages.iter().find(is).unwrap_or_else(|| panic!("{json}"))
}

#[test]
fn a_file_of_bitcode_is_llvms() {
    let home = Home::new("crc32");
    let shown = home.json(&["show", &home.program]);
    let before = shown["counts"]["instructions"].as_u64().unwrap();
    assert!(before > 50, "{shown}");
    home.run(&["run", &home.program, "-p", ORDER, "-o", "after.ll"]);
    let after = home.json(&["show", "after.ll"])["counts"]["instructions"].as_u64().unwrap();
    assert!(after < before);
    let text = fs::read_to_string(home.path("after.ll")).unwrap();
    assert!(text.contains("define "), "{text}");
    assert!(home.run(&["diff", &home.program, "after.ll"]).contains("instructions"));
    let passes = home.run(&["passes", "--engine", "llvm"]);
    assert!(passes.contains("inline:inline-threshold=0") && passes.contains("default<O3>"));
}

#[test]
fn oz_itself_is_worth_exactly_one() {
    let home = Home::new("sort");
    let default = home.json(&["default", &home.program, "-o", "end.bc"]);
    let end = &stage(&default, "ir")["counts"]["instructions"];
    assert_eq!(&home.json(&["show", "end.bc"])["counts"]["instructions"], end);
    let score = home.json(&["score", &home.program, "-p", "default<Oz>", "--no-check"]);
    assert_eq!(&stage(&score, "order")["result"], end, "{score}");
    for name in ["order", "text"] {
        assert_eq!(stage(&score, name)["value"].as_f64(), Some(1.0), "{score}");
    }
    let less = home.json(&["score", &home.program, "-p", "sroa", "--no-check"]);
    let value = stage(&less, "order")["value"].as_f64().unwrap();
    assert!(0.0 < value && value < 1.0, "{less}");
    let error = home.fails(&["default", &home.program, "--disable", "gvn"]);
    assert!(error.contains("`gvn` cannot be left out"), "{error}");
}

#[test]
fn commands_for_llvms_own_tools_do_the_same() {
    let home = Home::new("fft");
    let engine = engine();
    let profile = Llvm::default();
    let mut session = engine.load(&bitcode("fft")).unwrap();
    let passes: Vec<String> = ORDER.split(',').map(str::to_owned).collect();
    for pass in &passes {
        common::apply(&mut session, pass);
    }
    let spec = profile.spec();
    let finished = finish(&mut session, &spec.instead).unwrap();
    let text = finished.figures(spec, 0).get(TEXT).unwrap();
    let commands = profile.commands("emitted", &passes, &spec.instead);
    assert!(commands.approximated.is_empty());
    for (_, line) in &commands.lines {
        let line = line.replace("PROGRAM.bc", &home.program);
        let found = common::tool("").get_program().to_owned();
        let path = format!("{}:{}", Path::new(&found).display(), env::var("PATH").unwrap());
        // Beside LLVM's own folder, where the programs have no version in their names.
        let line = line.replace("opt-19", "opt").replace("llc-19", "llc");
        common::run(
            Command::new("bash")
                .args(["-o", "pipefail", "-c", &line])
                .current_dir(home.folder.path())
                .env("PATH", path),
        );
    }
    let theirs = engine.load(&Source::read(&home.path("RESULT.bc")).unwrap());
    assert_eq!(theirs.unwrap().fingerprint().unwrap(), session.fingerprint().unwrap());
    let object = fs::read(home.path("RESULT.o")).unwrap();
    assert_eq!(xla_gym_llvm_shim::text_size(&object).unwrap() as f64, text);
}

#[test]
fn the_profile_knows_the_workers_passes_and_pipelines() {
    let engine = engine();
    let profile = Llvm::default();
    let spec = profile.spec();
    let mut session = engine.load(&bitcode("trie")).unwrap();
    for (place, pipeline) in engine.hello().pipelines.iter().enumerate() {
        let how = xla_gym_profile::Finish { pipeline: place as u16, disabled: Vec::new() };
        let ran = finish(&mut session, &how).unwrap().passes;
        let named = profile.commands("emitted", &[], &how).lines[0].1.clone();
        match &ran[..] {
            [] => assert_eq!((&*pipeline.name, how), ("as-is", spec.instead.clone())),
            [pass] => assert!(named.contains(&pass.pass), "{named}"),
            more => panic!("{more:?}"),
        }
    }
    assert_eq!(engine.hello().pipelines[usize::from(spec.usual.pipeline)].name, "Oz");
    spec.cleaning(&engine).unwrap();
    let inlining = spec.inlining.unwrap();
    engine.passes([inlining.copies, inlining.moves]).unwrap();
    for order in profile.first_orders(&|_| true) {
        let mut session = engine.load(&bitcode("trie")).unwrap();
        for pass in engine.passes(order.iter().map(String::as_str)).unwrap() {
            session.apply(pass, Observe::NOTHING).unwrap();
        }
        assert_eq!(session.observe(Observe::VERDICT).unwrap().verdict, Some(Ok(())));
    }
    assert!(spec.is_of_order(INSTRUCTIONS));
}

#[test]
fn without_proof_llvms_own_order_is_the_answer() {
    let home = Home::new("crc32");
    let args = ["optimize", &home.program, "--budget", "300", "--no-store"];
    let text = home.run(&args);
    assert!(text.contains("Nothing beats -Oz here: keep it."), "{text}");
    assert!(text.contains("Dropped: ") && text.contains("offers no execution"), "{text}");

    let unproven = home.command(&args).arg("--unproven").output().unwrap();
    let text = String::from_utf8_lossy(&unproven.stdout);
    assert_eq!(unproven.status.code(), Some(5), "{text}");
    assert!(text.contains("NOT PROVEN") && text.contains("opt-19"), "{text}");
}
