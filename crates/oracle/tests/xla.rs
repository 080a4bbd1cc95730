//! The oracle on real XLA: what it must call equal, and what it must not.

use std::path::Path;

use xla_gym_engine::{Engine, EngineConfig, Session, Source};
use xla_gym_oracle::{Options, Reference, Verdict, check};

fn engine() -> Engine {
    let config = EngineConfig { quarantine: None, ..EngineConfig::xla().expect("`make build`") };
    Engine::start(config).expect("the engine starts")
}

fn program(engine: &Engine, body: &str) -> Session {
    let text = format!("HloModule m\n{body}");
    engine.load(&Source::from_bytes("test", text.into_bytes()).unwrap()).unwrap()
}

fn verdict(engine: &Engine, a: &str, b: &str) -> Verdict {
    check(&mut program(engine, a), &mut program(engine, b), Options::default()).unwrap().verdict
}

#[test]
fn equal_programs_are_equal() {
    let engine = engine();
    for (a, b) in [
        // Regrouped sums round differently.
        (
            "ENTRY e { x = f32[64] parameter(0)  y = f32[64] parameter(1)  z = f32[64] parameter(2)
           s = f32[64] add(x, y)  ROOT r = f32[64] add(s, z) }",
            "ENTRY e { x = f32[64] parameter(0)  y = f32[64] parameter(1)  z = f32[64] parameter(2)
           s = f32[64] add(y, z)  ROOT r = f32[64] add(x, s) }",
        ),
        // NaN for negative inputs; positive ones are tried instead.
        (
            "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] sqrt(x) }",
            "ENTRY e { x = f32[64] parameter(0)  h = f32[] constant(0.5)
           b = f32[64] broadcast(h), dimensions={}  ROOT r = f32[64] power(x, b) }",
        ),
        (
            "ENTRY e { x = s32[9] parameter(0)  ROOT r = s32[9] add(x, x) }",
            "ENTRY e { x = s32[9] parameter(0)  t = s32[] constant(2)
           b = s32[9] broadcast(t), dimensions={}  ROOT r = s32[9] multiply(x, b) }",
        ),
    ] {
        assert_eq!(verdict(&engine, a, b), Verdict::Equal, "{b}");
    }
}

#[test]
fn different_programs_are_different() {
    let engine = engine();
    for (a, b) in [
        (
            "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] sine(x) }",
            "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant(1.001)
           b = f32[64] broadcast(c), dimensions={}  s = f32[64] sine(x)
           ROOT r = f32[64] multiply(s, b) }",
        ),
        (
            "ENTRY e { x = s32[9] parameter(0)  ROOT r = s32[9] add(x, x) }",
            "ENTRY e { x = s32[9] parameter(0)  ROOT r = s32[9] multiply(x, x) }",
        ),
        // Only the second of two outputs differs, and only in its last element.
        (
            "ENTRY e { x = f32[3] parameter(0)  z = f32[3] constant({1, 1, 1})
           p = f32[3] multiply(x, z)  ROOT t = (f32[3], f32[3]) tuple(x, p) }",
            "ENTRY e { x = f32[3] parameter(0)  z = f32[3] constant({1, 1, 1.01})
           p = f32[3] multiply(x, z)  ROOT t = (f32[3], f32[3]) tuple(x, p) }",
        ),
    ] {
        match verdict(&engine, a, b) {
            Verdict::Different { differences } => assert_eq!(differences.len(), 1, "{b}"),
            other => panic!("{other:?} for {b}"),
        }
    }
}

#[test]
fn what_cannot_be_compared_is_not_called_equal() {
    let engine = engine();
    let random = "ENTRY e { a = f32[] constant(0)  b = f32[] constant(1)
        ROOT r = f32[8] rng(a, b), distribution=rng_uniform }";
    let nan = "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant(nan)
        b = f32[4] broadcast(z), dimensions={}  ROOT r = f32[4] add(x, b) }";
    let other_inputs = "ENTRY e { x = f32[5] parameter(0)  ROOT r = f32[5] negate(x) }";
    for (a, b) in [(random, random), (nan, nan), (nan, other_inputs)] {
        let verdict = verdict(&engine, a, b);
        assert!(matches!(verdict, Verdict::NotComparable { .. }), "{verdict:?} for {a}");
    }
}

/// Indices must stay within bounds, or the gathers of an embedding all read the last row.
#[test]
fn a_training_step_is_compared_on_finite_numbers() {
    let engine = engine();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/graphs/gpt2-train-1l.hlo.zst");
    let mut start = engine.load_file(file).unwrap();
    let mut result = start.fork().unwrap();
    let passes = engine.passes(["call-inliner", "algsimp", "cse", "reshape-mover", "dce"]).unwrap();
    result.multistep(&passes, Default::default(), |_| {}).unwrap();
    let reference = Reference::new(&mut start, Options { trials: 2, seed: 5 }).unwrap();
    let report = reference.compare(&mut result, &[]).unwrap();
    assert!(report.is_equal(), "{report:?}");
    assert!(report.elements > 10_000 && report.non_finite == 0, "{report:?}");
}
