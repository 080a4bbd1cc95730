//! The baselines on real XLA.

use std::path::{Path, PathBuf};

use xla_gym_engine::{Engine, EngineConfig, EngineError, Session, protocol::Observe};
use xla_gym_score::{
    Start, apply_all, default_passes, run_default, run_without_legalisation, start_session,
};

fn engine() -> Engine {
    let config = EngineConfig { quarantine: None, ..EngineConfig::xla().expect("`make build`") };
    Engine::start(config).expect("the engine starts")
}

fn graphs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/graphs");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn operations(session: &mut Session) -> u64 {
    session.observe(Observe::COUNTS).unwrap().counts.unwrap().operations
}

/// Two independent ways to the same number: our passes in the recorded order, and XLA itself
/// with its legalisation switched off. They agree only if every pass has the compiler's own
/// options.
#[test]
fn the_recorded_passes_do_what_the_real_pipeline_does() {
    let engine = engine();
    let mut compared = 0;
    for file in graphs() {
        let name = file.display();
        let mut session = engine.load_file(&file).unwrap();
        let default = match run_default(&mut session, &[]) {
            Ok(default) => default,
            // A program for several devices is not for the CPU compiler.
            Err(EngineError::Refused { .. }) if file.ends_with("collectives.hlo.zst") => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let passes = default_passes(&session, &default).unwrap();
        let theirs = run_without_legalisation(&mut session, &default).unwrap();
        let failed = apply_all(&mut session, &passes).unwrap();
        assert_eq!(failed, [], "{name}");
        assert_eq!(operations(&mut session), theirs.operations, "{name}");
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} graphs were compared");
}

/// What the pipeline says of the final program's memory without generating code is what the compiler says
/// of its code. Not always to the byte: the pipeline is told that there is one core.
#[test]
fn memory_is_what_compiled_code_needs() {
    let engine = engine();
    let (mut same, mut near) = (0, 0);
    for file in graphs() {
        let mut session = engine.load_file(&file).unwrap();
        if session.observe(Observe::COUNTS).unwrap().counts.unwrap().instructions > 500 {
            continue;
        }
        let Ok(default) = run_default(&mut session, &[]) else { continue };
        let Ok(compiled) = session.scratch().unwrap().compile(&[]) else { continue };
        let theirs = compiled.memory.unwrap().temporaries as f64;
        let ours = default.memory.unwrap().temporaries as f64;
        let name = file.display();
        assert!((ours - theirs).abs() <= 0.1 * theirs + 4096.0, "{name}: {ours}, {theirs}");
        same += usize::from(ours == theirs);
        near += 1;
    }
    assert!(near >= 10 && same * 10 >= near * 8, "{same} of {near} to the byte");
}

#[test]
fn a_normalised_start_is_another_program_with_the_same_default() {
    let engine = engine();
    let file = graphs().into_iter().find(|file| file.ends_with("gpt2-train-1l.hlo.zst")).unwrap();
    let mut emitted = engine.load_file(&file).unwrap();
    let mut normalised = start_session(&mut emitted, Start::Normalised).unwrap();
    assert_ne!(emitted.fingerprint().unwrap(), normalised.fingerprint().unwrap());
    assert_eq!(normalised.steps(), []);
    // The form is a fixed point: normalising again changes nothing.
    let mut again = start_session(&mut normalised, Start::Normalised).unwrap();
    assert_eq!(normalised.fingerprint().unwrap(), again.fingerprint().unwrap());
}
