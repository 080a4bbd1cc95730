//! The baselines on real XLA.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session,
    protocol::{Counts, Observe, PipelineOptions},
};
use xla_gym_profile::{Finish, Finished, Profile, apply_all, finish, start_session};
use xla_gym_xla_profile::{INSTRUCTIONS, NORMALIZED, Xla, engine_config, is_optimization};

fn engine() -> Engine {
    let config = EngineConfig { quarantine: None, ..engine_config().expect("`make build`") };
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
    session.observe(Observe::COUNTS).unwrap().counts.unwrap().primary()
}

/// The real pipeline with every pass switched off that its own run recorded before layout assignment and
/// that does not optimize. The back end may refuse what is not legal; by then the counts are taken.
fn without_legalization(session: &mut Session, default: &Finished) -> Result<Counts, EngineError> {
    let pipelines: BTreeSet<&str> = default.passes.iter().map(|pass| &*pass.pipeline).collect();
    let disable: BTreeSet<&str> = default
        .before_first_stage()
        .iter()
        .map(|pass| &*pass.pass)
        .filter(|pass| !is_optimization(pass) && !pipelines.contains(pass))
        .collect();
    let options = PipelineOptions {
        finish: Finish {
            disabled: disable.into_iter().map(str::to_owned).collect(),
            ..Finish::default()
        },
        first_stage_only: true,
        ..PipelineOptions::default()
    };
    let report = session.scratch()?.pipeline(&options, Observe::COUNTS)?;
    Ok(report.stages[0].as_ref().unwrap().observation.counts.unwrap())
}

/// Two independent ways to the same number: our passes in the recorded order, and XLA itself
/// with its legalization switched off. They agree only if every pass has the compiler's own
/// options.
#[test]
fn the_recorded_passes_do_what_the_real_pipeline_does() {
    let engine = engine();
    let mut compared = 0;
    for file in graphs() {
        let name = file.display();
        let mut session = engine.load_file(&file).unwrap();
        let default = match finish(&mut session, &Finish::default()) {
            Ok(default) => default,
            // A program for several devices is not for the CPU compiler.
            Err(EngineError::Refused { .. }) if file.ends_with("collectives.hlo.zst") => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let passes = default.own_order(&Xla::default(), &session).unwrap();
        let theirs = without_legalization(&mut session, &default).unwrap();
        let failed = apply_all(&mut session, &passes).unwrap();
        assert_eq!(failed, [], "{name}");
        assert_eq!(operations(&mut session), theirs.primary(), "{name}");
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
        if session.observe(Observe::COUNTS).unwrap().counts.unwrap()[INSTRUCTIONS] > 500 {
            continue;
        }
        let Ok(default) = finish(&mut session, &Finish::default()) else { continue };
        let Ok(compiled) = session.scratch().unwrap().compile(&Finish::default()) else { continue };
        let theirs = compiled.memory.unwrap().temporaries as f64;
        let ours = default.finals.unwrap()[0];
        let name = file.display();
        assert!((ours - theirs).abs() <= 0.1 * theirs + 4096.0, "{name}: {ours}, {theirs}");
        same += usize::from(ours == theirs);
        near += 1;
    }
    assert!(near >= 10 && same * 10 >= near * 8, "{same} of {near} to the byte");
}

#[test]
fn a_normalized_start_is_another_program_and_a_fixed_point() {
    let (engine, xla) = (engine(), Xla::default());
    let normalized = xla.spec().start(NORMALIZED).unwrap();
    let file = graphs().into_iter().find(|file| file.ends_with("gpt2-train-1l.hlo.zst")).unwrap();
    let mut emitted = engine.load_file(&file).unwrap();
    let mut once = start_session(&xla, &mut emitted, normalized).unwrap();
    assert_ne!(emitted.fingerprint().unwrap(), once.fingerprint().unwrap());
    let mut again = start_session(&xla, &mut once, normalized).unwrap();
    assert_eq!(once.fingerprint().unwrap(), again.fingerprint().unwrap());
}
