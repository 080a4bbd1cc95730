//! The oracle on real XLA: what it must call equal, and what it must not be fooled by.

use std::path::Path;

use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, Source,
    protocol::{Finish, Form},
};
use xla_gym_oracle::{Options, Reference, ReferenceKind, Report, Verdict, check};
use xla_gym_xla_profile::engine_config;

fn engine() -> Engine {
    let config = EngineConfig { quarantine: None, ..engine_config().expect("`make build`") };
    Engine::start(config).expect("the engine starts")
}

/// `header` goes behind the module's name: aliases and donors.
fn program(engine: &Engine, header: &str, body: &str) -> Session {
    let text = format!("HloModule m{header}\n{body}");
    let source = Source::from_bytes("test", text.into_bytes()).unwrap();
    engine.load(&source).unwrap_or_else(|error| panic!("{error}\n{body}"))
}

/// What the pipeline can do without, as far as these programs are concerned.
fn without() -> Finish {
    let disabled = ["algsimp", "cse", "constant_folding", "tree_reduction_rewriter"];
    Finish { disabled: disabled.map(str::to_owned).to_vec(), ..Finish::default() }
}

fn compare(engine: &Engine, a: &str, b: &str) -> Report {
    let (mut a, mut b) = (program(engine, "", a), program(engine, "", b));
    check(&mut a, &mut b, Options::default(), &without()).unwrap()
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
        // A constant that is folded is rounded once more.
        (
            "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant(3)
           b = f32[64] broadcast(c), dimensions={}  ROOT r = f32[64] divide(x, b) }",
            "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant(0.333333343)
           b = f32[64] broadcast(c), dimensions={}  ROOT r = f32[64] multiply(x, b) }",
        ),
        // More precision than was asked for is no harm.
        (
            "ENTRY e { x = f32[64] parameter(0)  n = bf16[64] convert(x)  w = f32[64] convert(n)
           ROOT r = bf16[64] convert(w) }",
            "ENTRY e { x = f32[64] parameter(0)  ROOT r = bf16[64] convert(x) }",
        ),
    ] {
        let report = compare(&engine, a, b);
        assert!(report.is_equal(), "{report:?}\n{b}");
        assert!(report.compared.finite > 0 && report.trials >= 4, "{report:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_not_called_equal() {
    let engine = engine();
    let nan = "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant(nan)
        b = f32[4] broadcast(z), dimensions={}  ROOT r = f32[4] add(x, b) }";
    // The counter is a number, the rest never is: both outputs have to be.
    let counter_and_nan = "ENTRY e { s = s32[] parameter(0)  x = f32[4] parameter(1)
        o = s32[] constant(1)  n = s32[] add(s, o)  z = f32[] constant(nan)
        b = f32[4] broadcast(z), dimensions={}  m = f32[4] OP(x, b)
        ROOT r = (s32[], f32[4]) tuple(n, m) }";
    let with = |operation: &str| counter_and_nan.replace("OP", operation);
    let feed = "ENTRY e { t = token[] after-all()  i = (f32[4], token[]) infeed(t)
        ROOT r = f32[4] get-tuple-element(i), index=0 }";
    for (a, b) in [
        (nan.to_owned(), nan.to_owned()),
        (with("add"), with("multiply")),
        (feed.to_owned(), feed.to_owned()),
    ] {
        let verdict = compare(&engine, &a, &b).verdict;
        assert!(matches!(verdict, Verdict::NotComparable { .. }), "{verdict:?} for {a}");
    }
}

/// A random generator with a hidden state begins with the same one in a fresh process.
#[test]
fn programs_with_a_hidden_random_state_are_equal_to_themselves() {
    let engine = engine();
    let random = "ENTRY e { a = f32[] constant(0)  b = f32[] constant(1)
        ROOT r = f32[8] rng(a, b), distribution=rng_uniform }";
    let doubled = "ENTRY e { a = f32[] constant(0)  b = f32[] constant(2)
        ROOT r = f32[8] rng(a, b), distribution=rng_uniform }";
    assert_eq!(compare(&engine, random, random).verdict, Verdict::Equal);
    // Another number of draws may be harmless, so nobody says that these differ.
    let verdict = compare(&engine, random, doubled).verdict;
    assert!(matches!(verdict, Verdict::NotComparable { .. }), "{verdict:?}");
}

#[test]
fn a_changed_signature_is_different() {
    let engine = engine();
    let plain = "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)
        ROOT r = f32[4] add(x, y) }";
    let larger = "ENTRY e { x = f32[5] parameter(0)  y = f32[5] parameter(1)
        ROOT r = f32[5] add(x, y) }";
    let wider = "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)
        s = f32[4] add(x, y)  ROOT r = f64[4] convert(s) }";
    let alias = ", input_output_alias={ {}: (0, {}, may-alias) }";
    let other = ", input_output_alias={ {}: (1, {}, may-alias) }";
    let donor = ", buffer_donor={ (0, {}) }";
    for (a, header_a, b, header_b, equal) in [
        (plain, "", plain, "", true),
        (plain, "", larger, "", false),
        (plain, "", wider, "", false),
        // An input that nobody gave away must not be overwritten.
        (plain, "", plain, alias, false),
        (plain, alias, plain, other, false),
        // Who gave one away expects that no second buffer is needed.
        (plain, alias, plain, "", false),
        (plain, alias, plain, alias, true),
        (plain, donor, plain, alias, true),
        (plain, "", plain, donor, false),
    ] {
        let (mut a, mut b) = (program(&engine, header_a, a), program(&engine, header_b, b));
        let report = check(&mut a, &mut b, Options::default(), &without()).unwrap();
        match report.verdict {
            Verdict::Equal => assert!(equal, "{header_a} {header_b}"),
            Verdict::OtherSignature { .. } => assert!(!equal, "{header_a} {header_b}"),
            other => panic!("{other:?}"),
        }
    }
}

/// The pass that reuses buffers may take only those that were given away.
#[test]
fn only_donated_inputs_are_reused() {
    let engine = engine();
    let body = "ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] add(x, x) }";
    let pass = engine.pass("optimize_input_output_buffer_alias").unwrap();
    for (header, expected) in [("", 0), (", buffer_donor={ (0, {}) }", 1)] {
        let mut original = program(&engine, header, body);
        let mut result = original.fork().unwrap();
        result.apply(pass, Default::default()).unwrap();
        assert_eq!(result.signature().unwrap().aliases.len(), expected, "{header}");
        let report = check(&mut original, &mut result, Options::default(), &without()).unwrap();
        assert!(report.is_equal(), "{report:?}");
    }
}

/// XLA folds a gather with batch dimensions wrongly (most of its elements become zeros), unless it is
/// brought into another form first.
#[test]
fn a_gather_with_batch_dimensions_is_folded_rightly() {
    let engine = engine();
    let body = "ENTRY e {
        x = s32[2,4,14,2,16] parameter(0)
        one = s32[] constant(1)  table = s32[2,16,16] broadcast(one), dimensions={}
        zero = s32[] constant(0)  at = s32[2,4,14,2,1] broadcast(zero), dimensions={}
        g = s32[2,4,14,2,16] gather(table, at), offset_dims={4}, collapsed_slice_dims={1},
          start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0},
          index_vector_dim=4, slice_sizes={1,1,16}
        ROOT r = s32[2,4,14,2,16] add(x, g) }";
    let original = || program(&engine, "", body);
    for fold in ["constant_folding", "constant_folding:aggressive"] {
        let mut result = original();
        result.apply(engine.pass(fold).unwrap(), Default::default()).unwrap();
        let report = check(&mut original(), &mut result, Options::default(), &without()).unwrap();
        assert!(report.is_equal(), "{fold}: {report:?}");
    }
    // What folding would have made of it is recognised too.
    let folded = "ENTRY e { x = s32[2,4,14,2,16] parameter(0)  zero = s32[] constant(0)
        z = s32[2,4,14,2,16] broadcast(zero), dimensions={}
        ROOT r = s32[2,4,14,2,16] add(x, z) }";
    let mut folded = program(&engine, "", folded);
    let report = check(&mut original(), &mut folded, Options::default(), &without()).unwrap();
    assert!(report.is_different(), "{report:?}");
}

/// The simplifier would multiply by a reciprocal that is rounded to the narrow type.
#[test]
fn narrow_floats_are_divided_and_not_multiplied_by_a_rounded_reciprocal() {
    let engine = engine();
    let text = |dtype: &str, by: &str| {
        let body = format!(
            "ENTRY e {{ x = {dtype}[64] parameter(0)  c = {dtype}[] constant({by})
             b = {dtype}[64] broadcast(c), dimensions={{}}  ROOT r = {dtype}[64] divide(x, b) }}"
        );
        let mut session = program(&engine, "", &body);
        session.apply(engine.pass("algsimp").unwrap(), Default::default()).unwrap();
        String::from_utf8(session.print(Form::TEXT).unwrap()).unwrap()
    };
    for (dtype, by, divides) in [
        ("bf16", "0.9", true),
        ("f16", "3", true),
        // Its reciprocal is exact.
        ("bf16", "4", false),
        // And here it is rounded as any result is.
        ("f32", "0.9", false),
    ] {
        let text = text(dtype, by);
        assert_eq!(text.contains("divide("), divides, "{text}");
        assert!(!text.contains("custom-call"), "{text}");
    }
}

/// A causal attention whose mask hides the first position has nothing to look at, and gradients are no
/// numbers. Here they are only if all rows begin with a one and something is hidden.
#[test]
fn masks_that_leave_nothing_to_look_at_are_not_all_that_is_tried() {
    let engine = engine();
    let body = |op: &str| {
        format!(
            "ENTRY e {{ x = f32[16,8] parameter(0)  m = s32[16,8] parameter(1)
             first = s32[16,1] slice(m), slice={{[0:16], [0:1]}}  f = s32[16] reshape(first)
             i = s32[] constant(1)  is = s32[16] broadcast(i), dimensions={{}}
             seen = pred[16] compare(f, is), direction=EQ
             one = f32[] constant(1)  ones = f32[16] broadcast(one), dimensions={{}}
             minus = f32[] constant(-1)  minuses = f32[16] broadcast(minus), dimensions={{}}
             chosen = f32[16] select(seen, ones, minuses)  logs = f32[16] log(chosen)
             zero = f32[] constant(0)
             rows = f32[] reduce(logs, zero), dimensions={{0}}, to_apply=sum
             most = s32[] constant(99)  least = s32[] reduce(m, most), dimensions={{0,1}}, to_apply=min
             none = s32[] constant(0)  some = pred[] compare(least, none), direction=EQ
             hidden = f32[] select(some, one, minus)  log = f32[] log(hidden)
             all = f32[] add(rows, log)
             b = f32[16,8] broadcast(all), dimensions={{}}
             y = f32[16,8] {op}(x, x)  ROOT r = f32[16,8] add(y, b) }}"
        )
    };
    let sum = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
        min { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = s32[] minimum(a, b) }\n";
    let (multiply, add) = (format!("{sum}{}", body("multiply")), format!("{sum}{}", body("add")));
    let report = compare(&engine, &multiply, &multiply);
    assert!(report.is_equal(), "{report:?}");
    let report = compare(&engine, &multiply, &add);
    assert!(report.is_different(), "{report:?}");
}

/// Programs that once could not be compared at all.
#[test]
fn variances_unknown_functions_and_several_devices_are_compared() {
    let engine = engine();
    // Keras' batch normalisation at inference: a variance under a root.
    let norm = "ENTRY e { x = f32[8,4] parameter(0)  v = f32[4] parameter(1)
        eps = f32[] constant(0.001)  be = f32[4] broadcast(eps), dimensions={}
        s = f32[4] add(v, be)  r = f32[4] rsqrt(s)  br = f32[8,4] broadcast(r), dimensions={1}
        ROOT m = f32[8,4] OP(x, br) }";
    let lapack = "ENTRY e { x = f32[4,4] parameter(0)
        c = (f32[4,4], s32[4], s32[]) custom-call(x), custom_call_target=\"lapack_sgetrf_ffi\"
        l = f32[4,4] get-tuple-element(c), index=0  ROOT r = f32[4,4] OP(l, x) }";
    let devices = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
        ENTRY e { x = f32[8] parameter(0)
        s = f32[8] custom-call(x), custom_call_target=\"Sharding\", sharding={devices=[2]<=[2]}
        m = f32[4] custom-call(s), custom_call_target=\"SPMDFullToShardShape\", sharding={manual}
        d = f32[4] OP(m, m)
        a = f32[4] all-reduce(d), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true,
          to_apply=sum
        t = f32[4] custom-call(a), custom_call_target=\"Sharding\", sharding={manual}
        ROOT r = f32[4] custom-call(t), custom_call_target=\"SPMDShardToFullShape\", sharding={replicated} }";
    for body in [norm, lapack, devices] {
        let (multiply, add) = (body.replace("OP", "multiply"), body.replace("OP", "add"));
        let report = compare(&engine, &multiply, &multiply);
        assert!(report.is_equal(), "{report:?}\n{body}");
        let report = compare(&engine, &multiply, &add);
        assert!(report.is_different(), "{report:?}\n{body}");
    }
}

#[test]
fn terabytes_are_refused_with_a_sentence() {
    let engine = engine();
    let body = "ENTRY e { ROOT p = f32[1000000000000] parameter(0) }";
    let mut session = program(&engine, "", body);
    match Reference::new(&mut session, Options::default(), &Finish::default()) {
        Err(EngineError::Refused { message, .. }) => {
            assert!(message.contains("3725.3 GiB"), "{message}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("nobody has so much memory"),
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
    let options = Options { trials: 2, seed: 5, ..Options::default() };
    let reference = Reference::new(&mut start, options, &without()).unwrap();
    let report = reference.compare(&mut result, &Finish::default()).unwrap();
    assert!(report.is_equal(), "{report:?}");
    // Ids past the end, tried because comparisons with the end fell one way, give no numbers.
    assert!(report.compared.finite > 100_000, "{report:?}");
    assert!(report.higher_precision && report.accuracy.is_some(), "{report:?}");
}

/// All sets of inputs but the one of ties, whose decisions higher precision cannot judge.
#[test]
fn both_references_are_asked_on_all_inputs() {
    let engine = engine();
    let mut a =
        program(&engine, "", "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] sine(x) }");
    let mut b = a.fork().unwrap();
    for reference in [ReferenceKind::Both, ReferenceKind::Interpreter] {
        let options = Options { reference, ..Options::default() };
        let report = check(&mut a, &mut b, options, &without()).unwrap();
        assert!(report.is_equal() && report.trials >= 8, "{report:?}");
        assert_eq!(report.interpreted, report.trials - 1, "{report:?}");
    }
}

/// Gigabytes do not leave the worker, and one wrong element in forty million is still seen.
#[test]
fn large_outputs_are_compared_in_brief() {
    let engine = engine();
    let sum = |rest: &str| {
        format!(
            "ENTRY e {{ x = f32[40000000] parameter(0)  y = f32[40000000] parameter(1)
             {rest} }}"
        )
    };
    let options = Options { trials: 1, ..Options::default() };
    let mut original =
        program(&engine, "", &sum("a = f32[40000000] add(x, y)  ROOT r = f32[40000000] add(a, x)"));
    let reference = Reference::new(&mut original, options, &without()).unwrap();
    let compare = |rest: &str| {
        reference.compare(&mut program(&engine, "", &sum(rest)), &Finish::default()).unwrap()
    };
    let other = compare("a = f32[40000000] add(x, x)  ROOT r = f32[40000000] add(a, y)");
    assert!(other.is_equal() && !other.higher_precision, "{other:?}");
    assert!(other.notes.iter().any(|note| note.contains("large")), "{other:?}");
    assert_eq!(other.compared.finite, 40_000_000, "{other:?}");
    let wrong = compare(
        "a = f32[40000000] add(x, y)  b = f32[40000000] add(a, x)  i = s32[] constant(31234567)
         c = f32[] constant(0.001)  s = f32[1] dynamic-slice(b, i), dynamic_slice_sizes={1}
         d = f32[1] broadcast(c), dimensions={}  t = f32[1] add(s, d)
         ROOT r = f32[40000000] dynamic-update-slice(b, t, i)",
    );
    let Verdict::Different { differences } = &wrong.verdict else { panic!("{wrong:?}") };
    assert_eq!(differences[0].element, 31_234_567 / 512 * 512, "{differences:?}");
}
