//! The toy compiler as a whole: its pipeline, its runs, and what the oracle says of its passes.

use std::{fs, path::Path};

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use xla_gym_arrays::make_inputs;
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, Source,
    protocol::{
        Array, Fill, Form, Input, InputSet, Observe, PassId, PipelineOptions, PipelineReport,
    },
};
use xla_gym_oracle::{Options, Report, check};
use xla_gym_profile::{Finish, Profile, apply_all, finish, score};
use xla_gym_toy_profile::Toy;

/// The pass that is wrong on some programs.
const WRONG: &str = "cancel";

fn engine() -> Engine {
    let config = Toy::default().engine_config();
    let config = config.expect("`cargo build -p xla-gym-toy-worker` comes first");
    Engine::start(EngineConfig { quarantine: None, ..config }).expect("the engine starts")
}

fn load(engine: &Engine, name: &str, text: &str) -> Session {
    engine.load(&Source::from_bytes(name, text.into()).unwrap()).unwrap()
}

/// Name and text of the programs in `testdata/toy`.
fn programs() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/toy");
    let mut programs: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    programs.sort();
    programs
}

fn program(name: &str) -> String {
    programs().into_iter().find(|(other, _)| other == name).unwrap().1
}

fn lines(session: &mut Session) -> u64 {
    session.observe(Observe::COUNTS).unwrap().counts.unwrap().primary()
}

/// The default actions that mean well and are right.
fn right_passes(engine: &Engine) -> Vec<PassId> {
    let passes = engine.hello().passes.iter().enumerate();
    let right = passes.filter(|(_, pass)| pass.is_default_action && pass.name != WRONG);
    right.map(|(id, _)| PassId(id as u16)).collect()
}

/// What the oracle says of a program and of what comes of it.
fn compare(engine: &Engine, text: &str, passes: &[PassId]) -> Report {
    let mut original = load(engine, "program.toy", text);
    let mut result = original.fork().unwrap();
    result.multistep(passes, Observe::NOTHING, |_| {}).unwrap();
    let without = Toy::default().spec().instead.clone();
    check(&mut original, &mut result, Options::default(), &without).unwrap()
}

fn without(disabled: &[&str]) -> Finish {
    let disabled = disabled.iter().map(|&name| name.to_owned()).collect();
    Finish { disabled, ..Finish::default() }
}

fn run_pipeline(session: &mut Session, disable: &[&str]) -> Result<PipelineReport, EngineError> {
    let finish = without(disable);
    let options = PipelineOptions { finish, stages: true, ..PipelineOptions::default() };
    session.scratch()?.pipeline(&options, Observe::COUNTS)
}

#[test]
fn passes_can_be_left_out_of_the_pipeline() {
    let engine = engine();
    let mut session = load(&engine, "strides.toy", &program("strides"));
    let before = lines(&mut session);
    let ran = |report: &PipelineReport| -> Vec<String> {
        report.passes.iter().map(|pass| pass.pass.clone()).collect()
    };
    let end = |report: &PipelineReport| {
        let stage = report.end().unwrap();
        assert_eq!(stage.passes as usize, report.passes.len());
        stage.observation.counts.unwrap().primary()
    };
    let all = run_pipeline(&mut session, &[]).unwrap();
    assert_eq!(ran(&all), ["dead", "simplify", "fold", "copy-elim", "dead", "lower"]);
    let without_fold = run_pipeline(&mut session, &["fold"]).unwrap();
    assert_eq!(ran(&without_fold), ["dead", "simplify", "copy-elim", "dead", "lower"]);
    let none = run_pipeline(&mut session, &["dead", "simplify", "fold", "copy-elim"]).unwrap();
    assert_eq!(ran(&none), ["lower"]);
    // One negation becomes two lines.
    assert_eq!(end(&none), before + 1);
    assert!(end(&all) < end(&without_fold) && end(&without_fold) < end(&none));
    assert_eq!(lines(&mut session), before, "the session's own program stays as it was");
}

#[test]
fn what_the_back_end_needs_cannot_be_left_out() {
    let engine = engine();
    let mut session = load(&engine, "turns.toy", &program("turns"));
    for disable in [&["lower"][..], &["fold", "lower"]] {
        let Err(EngineError::Refused { message, .. }) = run_pipeline(&mut session, disable) else {
            panic!("it must be refused");
        };
        assert!(message.contains("`lower` cannot be left out"), "{message}");
        let compiled = session.scratch().unwrap().compile(&without(disable));
        assert!(matches!(compiled, Err(EngineError::Refused { .. })), "{compiled:?}");
    }
    assert!(run_pipeline(&mut session, &[]).is_ok(), "a refusal costs nothing");
}

#[test]
fn nothing_is_negated_at_the_end() {
    let engine = engine();
    for (name, text) in programs() {
        let mut session = load(&engine, &name, &text);
        let mut scratch = session.scratch().unwrap();
        let options = PipelineOptions { keep: true, ..PipelineOptions::default() };
        let report = scratch.pipeline(&options, Observe::NOTHING).unwrap();
        let kept = report.end().unwrap().program.unwrap();
        let text = String::from_utf8(scratch.print(kept, Form::TEXT).unwrap()).unwrap();
        assert!(!text.contains("neg"), "{name}: {text}");
        let registers = report.finals.unwrap()[0];
        assert!(registers >= 1.0 && registers < text.lines().count() as f64, "{name}");
    }
}

/// What a program computes, read from its text: shares nothing with the worker.
fn evaluate(text: &str, inputs: &[i64]) -> i64 {
    let mut values: Vec<i64> = Vec::new();
    for line in text.lines().skip(1) {
        let (opcode, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<i64> = numbers.split(' ').map(|word| word.parse().unwrap()).collect();
        let value = |place: usize| values[numbers[place] as usize];
        let next = match opcode {
            "input" => inputs[numbers[0] as usize],
            "const" => numbers[0],
            "add" => value(0).wrapping_add(value(1)),
            "mul" => value(0).wrapping_mul(value(1)),
            "neg" => value(0).wrapping_neg(),
            "copy" => value(0),
            other => panic!("{other} is no opcode"),
        };
        values.push(next);
    }
    *values.last().unwrap()
}

fn number(array: &Array) -> i64 {
    assert_eq!((array.dtype.as_str(), &array.dims[..]), ("s64", &[][..]));
    i64::from_le_bytes(array.bytes.as_slice().try_into().unwrap())
}

#[test]
fn a_run_gives_what_the_program_says() {
    let engine = engine();
    for (name, text) in programs() {
        let mut session = load(&engine, &name, &text);
        let takes = session.signature().unwrap().inputs;
        for (seed, fill) in [
            (1, Fill::Integers { low: -9, high: 9 }),
            (2, Fill::Bits),
            (3, Fill::Extremes),
            (4, Fill::Constant(0.0)),
        ] {
            let input = |_| Input { dtype: "s64".to_owned(), dims: vec![], fill, held_as: None };
            let set = InputSet { seed, nudge: None, inputs: takes.iter().map(input).collect() };
            let values: Vec<i64> = make_inputs(&set).unwrap().iter().map(number).collect();
            let mut scratch = session.scratch().unwrap();
            let compiled = scratch.compile(&Finish::default()).unwrap();
            scratch.make_inputs(&compiled, &set).unwrap();
            let (nanos, outputs) = scratch.execute(&compiled, 3, true).unwrap();
            assert_eq!((nanos.len(), outputs.len()), (3, 1), "{name}");
            assert_eq!(number(&outputs[0]), evaluate(&text, &values), "{name} on {values:?}");
        }
    }
}

#[test]
fn the_oracle_finds_the_wrong_pass_and_no_other() {
    let engine = engine();
    let wrong = engine.pass(WRONG).unwrap();
    let mut different = Vec::new();
    for (name, text) in programs() {
        for pass in right_passes(&engine) {
            let report = compare(&engine, &text, &[pass]);
            assert!(report.is_equal(), "{name}, {}: {report:?}", engine.pass_name(pass));
        }
        let report = compare(&engine, &text, &[wrong]);
        assert!(report.is_equal() || report.is_different(), "{name}: {report:?}");
        if report.is_different() {
            different.push(name);
        }
    }
    assert!(different.contains(&"tempting".to_owned()), "{different:?}");
    assert!(!different.contains(&"cancels".to_owned()), "it is right there: {different:?}");
}

/// Any lines at all; some of them are read by nobody, also inputs.
fn random_program(rng: &mut ChaCha8Rng) -> String {
    let inputs = rng.random_range(1..5);
    let mut lines: Vec<String> = (0..inputs).map(|which| format!("input {which}")).collect();
    for _ in 0..rng.random_range(2..60) {
        let (a, b) = (rng.random_range(0..lines.len()), rng.random_range(0..lines.len()));
        lines.push(match rng.random_range(0..7) {
            0 => format!("const {}", rng.random_range(-1..3)),
            1 => format!("neg {a}"),
            2 => format!("copy {a}"),
            3 => format!("input {}", rng.random_range(0..inputs)),
            4 => format!("mul {a} {b}"),
            _ => format!("add {a} {b}"),
        });
    }
    format!("toy\n{}\n", lines.join("\n"))
}

#[test]
fn any_order_of_right_passes_keeps_what_a_program_computes() {
    let engine = engine();
    let right = right_passes(&engine);
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut changed = 0;
    for round in 0..60 {
        let text = random_program(&mut rng);
        let passes: Vec<PassId> =
            (0..rng.random_range(1..20)).map(|_| *right.choose(&mut rng).unwrap()).collect();
        let report = compare(&engine, &text, &passes);
        let names: Vec<&str> = passes.iter().map(|pass| engine.pass_name(*pass)).collect();
        assert!(report.is_equal(), "round {round}: {names:?} on\n{text}{report:?}");
        let mut result = load(&engine, "program.toy", &text);
        let before = lines(&mut result);
        result.multistep(&passes, Observe::NOTHING, |_| {}).unwrap();
        changed += usize::from(lines(&mut result) != before);
    }
    assert!(changed > 30, "only {changed} programs changed their size");
}

#[test]
fn an_input_that_nobody_reads_is_still_taken() {
    let engine = engine();
    let dead = engine.pass("dead").unwrap();
    let report = compare(&engine, "toy\ninput 0\ninput 1\nadd 0 0\n", &[dead]);
    assert!(report.is_equal(), "{report:?}");
}

/// Some orders of the same passes are better than others, and some are better than the toy's own: on all
/// programs of the tests' own set but one.
#[test]
fn the_order_of_passes_matters() {
    let (engine, toy) = (engine(), Toy::default());
    let passes = |names: &[&str]| engine.passes(names.iter().copied()).unwrap();
    let honest = passes(&["fold", "simplify", "dedup", "copy-elim", "dead"]);
    let orders: Vec<Vec<PassId>> = (0..honest.len())
        .map(|first| honest.iter().cycle().skip(first).take(honest.len()).copied().collect())
        .collect();
    let round = passes(&["fold", "simplify", "copy-elim", "dedup", "copy-elim", "dead"]);
    let rounds: Vec<PassId> = round.iter().copied().cycle().take(8 * round.len()).collect();
    let lowered = [&rounds[..], &passes(&["lower"]), &rounds].concat();
    let programs = programs();
    assert!(programs.len() >= 8);
    for (name, text) in programs {
        assert!((10..=200).contains(&(text.lines().count() - 1)), "{name}");
        let mut session = load(&engine, &name, &text);
        let lengths: Vec<u64> = orders
            .iter()
            .map(|order| {
                let mut result = session.fork().unwrap();
                assert_eq!(apply_all(&mut result, order).unwrap(), []);
                lines(&mut result)
            })
            .collect();
        let (best, worst) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        let mut value = |order: &[PassId], stage: &str| {
            let score = score(&toy, &mut session, order, 0, |_| {}).unwrap().0;
            score.stages.iter().find(|one| one.stage == stage).unwrap().value
        };
        // Where the toy's own order removes nothing there is nothing to compare with.
        assert!(value(&rounds, "order").is_none_or(|ratio| ratio >= 1.0), "{name}");
        let last = value(&lowered, "final").unwrap();
        if name == "minimal" {
            assert_eq!((*best, *worst, last), (10, 10, 1.0));
        } else {
            assert!(best < worst && last > 1.0, "{name}: {best} to {worst}, {last}");
        }
    }
}

#[test]
fn the_usual_way_is_the_pipeline_as_it_is() {
    let engine = engine();
    let mut session = load(&engine, "filters.toy", &program("filters"));
    let finished = finish(&mut session, &Finish::default()).unwrap();
    let toy = Toy::default();
    let names = toy.own_order(finished.before_first_stage());
    assert_eq!(names, ["dead", "simplify", "fold", "copy-elim", "dead"]);
    let prepared: Vec<&str> = finish(&mut session, &toy.spec().instead)
        .unwrap()
        .preparation(&toy, &session)
        .into_iter()
        .map(|pass| engine.pass_name(pass))
        .collect();
    assert_eq!(prepared, ["lower"]);
}
