//! The baselines on real XLA.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session,
    protocol::{Counts, Observe, PipelineOptions},
};
use xla_gym_profile::{Finish, Finished, Profile, apply_all, finish, score, start_session};
use xla_gym_xla_profile::{
    INSTRUCTIONS, KERNELS, LEGAL, MEMORY, NORMALIZED, OPERATIONS, ORDER, TRAFFIC, WORK, Xla,
    engine_config, is_optimization,
};

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

/// What was printed for the same graph and order before there were profiles, when these figures had code of
/// their own.
#[test]
fn figures_and_ratios_are_what_they_always_were() {
    let (engine, xla) = (engine(), Xla::default());
    let file = graphs().into_iter().find(|file| file.ends_with("lstm-scan-train.hlo.zst")).unwrap();
    let mut session = engine.load_file(&file).unwrap();
    let names = [
        "call-inliner",
        "algsimp",
        "cse",
        "constant_folding",
        "while-loop-invariant-code-motion",
        "dce",
    ];
    let passes = engine.passes(names).unwrap();

    let default = finish(&mut session, &xla.spec().usual).unwrap();
    assert_eq!(default.passes_before[0], 242);
    assert_eq!(&default.counts[0][..], [391, 569, 391, 27]);
    assert_eq!(&default.counts[1][..], [131, 1307, 131, 126]);
    assert_eq!(&default.costs[1].unwrap()[..], [775_735.0, 14_758.0, 1_339_966.0]);
    assert_eq!(&default.finals.unwrap()[..], [50_272.0, 32.0]);
    assert_eq!(default.fingerprint.unwrap().to_string(), "917d7f443096c5400314f88a776f24bd");
    let figures = default.figures(xla.spec(), 358);
    for (figure, expected) in [
        (ORDER, 358.0),
        (LEGAL, default.counts[0][OPERATIONS] as f64),
        (KERNELS, default.counts[1][OPERATIONS] as f64),
        (WORK, 775_735.0 + 14_758.0),
        (TRAFFIC, 1_339_966.0),
        (MEMORY, 50_272.0 + 32.0),
    ] {
        assert_eq!(figures.get(figure), Some(expected), "{}", xla.spec().figure_name(figure));
    }

    let mut check = |start: &str, end: &str, expected: [(&str, [u64; 3], Option<u64>, f64); 3]| {
        let at = xla.spec().start(start).unwrap();
        let (score, mut result) = score(&xla, &mut session, &passes, at, |_| {}).unwrap();
        assert_eq!((score.start, score.skipped.len()), (start, 0));
        for (found, (stage, [initial, default, result], before, value)) in
            score.stages.iter().zip(expected)
        {
            let ratio = found.ratio;
            assert_eq!(
                (found.stage, ratio.default, ratio.result, found.value),
                (stage, default, result, Some(value)),
                "{start}"
            );
            // The start's own kernels were not printed, and before layout assignment nothing was said of
            // the untouched pipeline.
            if stage == "kernels" {
                assert_eq!(found.before, before, "{start}");
            } else {
                assert_eq!(ratio.initial, initial, "{start}, {stage}");
            }
        }
        assert_eq!(result.fingerprint().unwrap().to_string(), end, "{start}");
    };
    check(
        "emitted",
        "e025517685cc6334dd36a9bac8440cb7",
        [
            ("order", [398, 358, 377], None, 0.525),
            ("legal", [437, 391, 408], None, 29.0 / 46.0),
            ("kernels", [0, 131, 119], Some(130), 131.0 / 119.0),
        ],
    );
    check(
        NORMALIZED,
        "9c66b57b62204a7563a8ea1e28ea1560",
        [
            ("order", [428, 389, 387], None, 41.0 / 39.0),
            ("legal", [437, 391, 399], None, 38.0 / 46.0),
            ("kernels", [0, 131, 118], Some(131), 131.0 / 118.0),
        ],
    );
}
