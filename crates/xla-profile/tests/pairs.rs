//! Pairs of programs that are nearly the same. Each must be told apart with default settings: a
//! checker that has never met a wrong program is no evidence.

use xla_gym_engine::{Engine, EngineConfig, Session, Source, protocol::Finish};
use xla_gym_oracle::{Options, Reference};
use xla_gym_xla_profile::engine_config;

/// What the pair is about, and a program with `[right|wrong]` in it.
const PAIRS: &[(&str, &str)] = &[
    // The six that an earlier oracle called equal.
    ("the lowest bit of a u64", "ENTRY e { x = u64[8] parameter(0)  a = u64[8] add(x, x)  o = u64[] constant([0|1])
        b = u64[8] broadcast(o), dimensions={}  ROOT r = u64[8] or(a, b) }"),
    ("a scaled f8", "ENTRY e { x = f32[8] parameter(0)  c = f32[] constant([1|4])  b = f32[8] broadcast(c), dimensions={}
        m = f32[8] multiply(x, b)  ROOT r = f8e4m3fn[8] convert(m) }"),
    ("a sign under a mask", "ENTRY e { m = pred[32] parameter(0)  x = f32[32] parameter(1)  n = f32[32] [copy|negate](x)
        s = f32[] constant(-1e9)  b = f32[32] broadcast(s), dimensions={}  ROOT r = f32[32] select(m, n, b) }"),
    ("a step beside numbers under a root", "ENTRY e { s = s32[] parameter(0)  x = f32[4] parameter(1)  o = s32[] constant(1)
        n = s32[] add(s, o)  q = f32[4] [sqrt|rsqrt](x)  ROOT r = (s32[], f32[4]) tuple(n, q) }"),
    ("the sign of an integer", "ENTRY e { x = s32[9] parameter(0)  ROOT r = s32[9] [abs|copy](x) }"),
    // Integers.
    ("an s64 that is one larger", "ENTRY e { x = s64[8] parameter(0)  o = s64[] constant([0|1])
        b = s64[8] broadcast(o), dimensions={}  ROOT r = s64[8] add(x, b) }"),
    ("a logical shift for an arithmetic one", "ENTRY e { x = s32[9] parameter(0)  o = s32[] constant(1)
        b = s32[9] broadcast(o), dimensions={}  ROOT r = s32[9] shift-right-[arithmetic|logical](x, b) }"),
    ("unsigned for signed maximum", "ENTRY e { x = s8[64] parameter(0)  y = s8[64] parameter(1)
        ROOT r = s8[64] [maximum|minimum](x, y) }"),
    ("a lost carry", "ENTRY e { x = u32[8] parameter(0)  y = u32[8] parameter(1)  a = u64[8] convert(x)
        b = u64[8] convert(y)  s = u64[8] add(a, b)  t = u32[8] add(x, y)  w = u64[8] convert(t)
        ROOT r = u64[8] copy([s|w]) }"),
    ("a remainder of negative numbers", "ENTRY e { x = s32[64] parameter(0)  c = s32[] constant(4)  m = s32[] constant(3)
        b = s32[64] broadcast(c), dimensions={}  d = s32[64] broadcast(m), dimensions={}
        p = s32[64] remainder(x, b)  q = s32[64] and(x, d)  ROOT r = s32[64] copy([p|q]) }"),
    ("truncation to 16 bits", "ENTRY e { x = s32[64] parameter(0)  n = s16[64] convert(x)  w = s32[64] convert(n)
        ROOT r = s32[64] copy([x|w]) }"),
    ("a predicate turned round", "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)
        ROOT r = pred[8] compare(x, y), direction=[LT|GT] }"),
    ("less or equal on ties", "ENTRY e { x = f32[64] parameter(0)  y = f32[64] parameter(1)
        ROOT r = pred[64] compare(x, y), direction=[LT|LE] }"),
    ("equal integers", "ENTRY e { x = s32[64] parameter(0)  y = s32[64] parameter(1)
        ROOT r = pred[64] compare(x, y), direction=[GT|GE] }"),
    ("and for or of masks", "ENTRY e { x = pred[64] parameter(0)  y = pred[64] parameter(1)
        ROOT r = pred[64] [and|or](x, y) }"),
    // Floats.
    ("a factor a thousandth off", "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant([1|1.001])
        b = f32[64] broadcast(c), dimensions={}  s = f32[64] sine(x)  ROOT r = f32[64] multiply(s, b) }"),
    ("a factor a hundred thousandth off", "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant([1|1.00001])
        b = f32[64] broadcast(c), dimensions={}  s = f32[64] sine(x)  ROOT r = f32[64] multiply(s, b) }"),
    ("the last of three elements", "ENTRY e { x = f32[3] parameter(0)  z = f32[3] constant({1, 1, [1|1.01]})
        p = f32[3] multiply(x, z)  ROOT t = (f32[3], f32[3]) tuple(x, p) }"),
    ("an epsilon", "ENTRY e { x = f32[64] parameter(0)  m = f32[64] multiply(x, x)  c = f32[] constant([1e-5|1e-6])
        b = f32[64] broadcast(c), dimensions={}  s = f32[64] add(m, b)  ROOT r = f32[64] rsqrt(s) }"),
    ("a step of an optimiser", "ENTRY e { p = f32[64] parameter(0)  g = f32[64] parameter(1)  l = f32[] constant([3e-4|3.1e-4])
        b = f32[64] broadcast(l), dimensions={}  s = f32[64] multiply(g, b)  ROOT r = f32[64] subtract(p, s) }"),
    ("a gradient that is added for one that is multiplied", "ENTRY e { p = f32[64] parameter(0)  m = f32[64] parameter(1)
        x = f32[64] parameter(2)  y = f32[64] parameter(3)  g = f32[64] [multiply|add](x, y)
        a = f32[] constant(0.9)  ba = f32[64] broadcast(a), dimensions={}  c = f32[] constant(3e-4)
        bc = f32[64] broadcast(c), dimensions={}  n = f32[64] multiply(m, ba)  k = f32[64] add(n, g)
        s = f32[64] multiply(k, bc)  ROOT r = f32[64] subtract(p, s) }"),
    ("tanh for the logistic function", "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] [tanh|logistic](x) }"),
    ("log1p for log", "ENTRY e { x = f32[64] parameter(0)  a = f32[64] abs(x)  ROOT r = f32[64] [log-plus-one|log](a) }"),
    ("rounding to even", "ENTRY e { x = f32[64] parameter(0)  c = f32[] constant(0.5)  b = f32[64] broadcast(c), dimensions={}
        h = f32[64] multiply(x, b)  ROOT r = f32[64] round-nearest-[even|afz](h) }"),
    ("the sign of zero's neighbours", "ENTRY e { x = f32[64] parameter(0)  ROOT r = f32[64] [floor|ceil](x) }"),
    ("a leak below zero", "ENTRY e { x = f32[64] parameter(0)  z = f32[] constant(0)  b = f32[64] broadcast(z), dimensions={}
        c = f32[] constant([0|0.0001])  d = f32[64] broadcast(c), dimensions={}  l = f32[64] multiply(x, d)
        p = pred[64] compare(x, b), direction=GT  ROOT r = f32[64] select(p, x, l) }"),
    ("a clamp that cuts too early", "ENTRY e { x = f32[64] parameter(0)  l = f32[] constant(-6)  h = f32[] constant([6|5])
        bl = f32[64] broadcast(l), dimensions={}  bh = f32[64] broadcast(h), dimensions={}
        ROOT r = f32[64] clamp(bl, x, bh) }"),
    ("a half precision that was lost", "ENTRY e { x = f32[64] parameter(0)  n = bf16[64] convert(x)  w = f32[64] convert(n)
        ROOT r = f32[64] multiply([x|w], [x|w]) }"),
    ("f16 for bf16", "ENTRY e { x = f32[64] parameter(0)  n = f16[64] convert(x)  w = f32[64] convert(n)
        a = f32[64] sine([x|w])  ROOT r = f16[64] convert(a) }"),
    ("bf16 sums instead of f32 sums", "sum { a = [f32|bf16][] parameter(0)  b = [f32|bf16][] parameter(1)  ROOT s = [f32|bf16][] add(a, b) }
        ENTRY e { x = bf16[8,512] parameter(0)  z = [f32|bf16][] constant(0)  w = [f32|bf16][8,512] convert(x)
        k = [f32|bf16][8,512] multiply(w, w)  t = [f32|bf16][8] reduce(k, z), dimensions={1}, to_apply=sum
        ROOT r = f32[8] convert(t) }"),
    ("a bf16 factor", "ENTRY e { x = bf16[64] parameter(0)  c = bf16[] constant([0.5|0.625])  b = bf16[64] broadcast(c), dimensions={}
        ROOT r = bf16[64] multiply(x, b) }"),
    ("an f8 of another format", "ENTRY e { x = f32[8] parameter(0)  n = f8e5m2[8] convert(x)  m = f8e4m3fn[8] convert(x)
        a = f32[8] convert(n)  b = f32[8] convert(m)  ROOT r = f32[8] copy([a|b]) }"),
    ("a conjugate", "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  n = f32[8] negate(y)
        ROOT r = c64[8] complex(x, [y|n]) }"),
    ("the imaginary part", "ENTRY e { x = c64[8] parameter(0)  ROOT r = f32[8] [real|imag](x) }"),
    ("the largest finite number for infinity", "ENTRY e { m = pred[64] parameter(0)  x = f32[64] parameter(1)
        c = f32[] constant([-inf|-3.40282347e+38])  b = f32[64] broadcast(c), dimensions={}  ROOT r = f32[64] select(m, x, b) }"),
    ("NaN that is swallowed", "ENTRY e { x = f32[64] parameter(0)  l = f32[64] [log|copy](x)  q = f32[64] multiply(l, l)
        ROOT r = f32[64] sqrt(q) }"),
    // Shapes and positions.
    ("operands of a subtraction", "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  ROOT r = f32[8] subtract([x, y|y, x]) }"),
    ("a slice that begins one later", "ENTRY e { x = f32[9] parameter(0)  ROOT r = f32[4] slice(x), slice={[[2:6]|[3:7]]} }"),
    ("a slice with a stride", "ENTRY e { x = f32[9] parameter(0)  ROOT r = f32[4] slice(x), slice={[[1:5]|[1:9:2]]} }"),
    ("a permuted transpose", "ENTRY e { x = f32[4,4,4] parameter(0)  ROOT r = f32[4,4,4] transpose(x), dimensions={[1,2,0|2,0,1]} }"),
    ("another dimension of a reduction", "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[4,4] parameter(0)  z = f32[] constant(0)  ROOT r = f32[4] reduce(x, z), dimensions={[0|1]}, to_apply=sum }"),
    ("a maximum for a sum", "f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] [add|maximum](a, b) }
        ENTRY e { x = f32[4,4] parameter(0)  z = f32[] constant(0)  ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=f }"),
    ("the first value of a reduction", "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[4,4] parameter(0)  z = f32[] constant([0|1])  ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=sum }"),
    ("the contracted dimension of a product", "ENTRY e { x = f32[4,4] parameter(0)  y = f32[4,4] parameter(1)
        ROOT r = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={[0|1]} }"),
    ("the dimension of a broadcast", "ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4,4] broadcast(x), dimensions={[0|1]} }"),
    ("the dimension of an iota", "ENTRY e { x = f32[4,4] parameter(0)  i = f32[4,4] iota(), iota_dimension=[0|1]  ROOT r = f32[4,4] add(x, i) }"),
    ("the order of a concatenation", "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  ROOT r = f32[8] concatenate([x, y|y, x]), dimensions={0} }"),
    ("a padding value", "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant([0|1])  ROOT r = f32[6] pad(x, z), padding=1_1 }"),
    ("padding on the other side", "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant(0)  ROOT r = f32[6] pad(x, z), padding=[0_2|2_0] }"),
    ("a reversed dimension", "ENTRY e { x = f32[4,4] parameter(0)  ROOT r = f32[4,4] reverse(x), dimensions={[0|1]} }"),
    ("an index that is one larger", "ENTRY e { t = f32[8,4] parameter(0)  i = s32[3,1] parameter(1)  o = s32[] constant([0|1])
        b = s32[3,1] broadcast(o), dimensions={}  j = s32[3,1] add(i, b)
        ROOT r = f32[3,4] gather(t, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4} }"),
    ("the start of a dynamic slice", "ENTRY e { x = f32[8] parameter(0)  i = s32[] parameter(1)  o = s32[] constant([0|1])  j = s32[] add(i, o)
        ROOT r = f32[3] dynamic-slice(x, j), dynamic_slice_sizes={3} }"),
    ("a scatter that replaces", "f { a = f32[] parameter(0)  b = f32[] parameter(1)  s = f32[] add(a, b)  ROOT r = f32[] copy([s|b]) }
        ENTRY e { x = f32[8] parameter(0)  i = s32[5,1] parameter(1)  u = f32[5] parameter(2)
        ROOT r = f32[8] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"),
    ("the order of a sort", "f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=[LT|GT] }
        ENTRY e { x = f32[16] parameter(0)  ROOT r = f32[16] sort(x), dimensions={0}, to_apply=f }"),
    ("a branch", "t { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }  f { p = f32[4] parameter(0)  ROOT r = f32[4] exponential(p) }
        ENTRY e { c = pred[] parameter(0)  x = f32[4] parameter(1)
        ROOT r = f32[4] conditional(c, x, x), true_computation=[t|f], false_computation=[f|t] }"),
    ("a branch that is seldom taken", "ENTRY e { i = s32[16] parameter(0)  x = f32[16] parameter(1)  c = s32[] constant(7)
        b = s32[16] broadcast(c), dimensions={}  p = pred[16] compare(i, b), direction=GT  n = f32[16] [negate|abs](x)
        ROOT r = f32[16] select(p, n, x) }"),
    ("one turn more of a loop", "cond { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant([3|4])
        ROOT r = pred[] compare(i, n), direction=LT }
        body { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
        o = s32[] constant(1)  j = s32[] add(i, o)  y = f32[4] sine(x)  ROOT r = (s32[], f32[4]) tuple(j, y) }
        ENTRY e { x = f32[4] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[4]) tuple(z, x)
        w = (s32[], f32[4]) while(t), condition=cond, body=body  ROOT r = f32[4] get-tuple-element(w), index=1 }"),
    ("outputs in another order", "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  ROOT r = (f32[4], f32[4]) tuple([x, y|y, x]) }"),
    ("another random stream", "ENTRY e { k = u64[2] parameter(0)  g = (u64[2], u32[8]) rng-bit-generator(k), algorithm=rng_[three_fry|philox]
        ROOT r = u32[8] get-tuple-element(g), index=1 }"),
    ("a window that is larger", "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[1,8] parameter(0)  z = f32[] constant(0)
        ROOT r = f32[1,8] reduce-window(x, z), window={size=1x[3|5] pad=0_0x[1_1|2_2]}, to_apply=sum }"),
    ("a dilated convolution", "ENTRY e { x = f32[1,8,1] parameter(0)  k = f32[3,1,1] parameter(1)
        ROOT r = f32[1,8,1] convolution(x, k), window={size=3 pad=[1_1|2_2] rhs_dilate=[1|2]}, dim_labels=b0f_0io->b0f }"),
    // What seeded mutants of real programs slipped through by.
    ("a gain beyond a hundred", "ENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  c = f32[] constant(100)
        g = f32[] subtract(x, c)  z = f32[] constant(0)  m = f32[] maximum(g, z)  k = f32[] constant([1|1.01])
        e = f32[] multiply(y, k)  ROOT r = f32[] multiply(m, e) }"),
    ("ids that count from the end", "ENTRY e { x = f32[64,4] parameter(0)  i = s32[2,3] parameter(1)  z = s32[] constant(0)
        bz = s32[2,3] broadcast(z), dimensions={}  l = pred[2,3] compare(i, bz), direction=LT  n = s32[] constant([64|65])
        bn = s32[2,3] broadcast(n), dimensions={}  a = s32[2,3] add(i, bn)  s = s32[2,3] select(l, a, i)
        ROOT r = f32[2,3,4] gather(x, s), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4} }"),
    ("ids past the end", "ENTRY e { x = f32[64,4] parameter(0)  i = s32[6] parameter(1)  c = s32[] constant(63)
        b = s32[6] broadcast(c), dimensions={}  l = pred[6] compare(i, b), direction=LE
        g = f32[6,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
        w = pred[6,4] broadcast(l), dimensions={0}  f = f32[] constant([nan|0])  bf = f32[6,4] broadcast(f), dimensions={}
        ROOT r = f32[6,4] select(w, g, bf) }"),
    ("a softmax without its maximum", "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
        ENTRY e { x = f32[8,16] parameter(0)  i = f32[] constant(-inf)  m = f32[8] reduce(x, i), dimensions={1}, to_apply=max
        b = f32[8,16] broadcast(m), dimensions={0}  d = f32[8,16] subtract(x, b)  p = f32[8,16] exponential([d|x])
        z = f32[] constant(0)  t = f32[8] reduce(p, z), dimensions={1}, to_apply=add  w = f32[8,16] broadcast(t), dimensions={0}
        ROOT r = f32[8,16] divide(p, w) }"),
];

fn engine() -> Engine {
    let config = EngineConfig { quarantine: None, ..engine_config().expect("`make build`") };
    Engine::start(config).expect("the engine starts")
}

/// The program with the `which`th of each `[right|wrong]`; brackets of shapes have no bar in them.
fn variant(pattern: &str, which: usize) -> String {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(start) = rest.find('[') {
        let inside = &rest[start + 1..];
        // A choice may have brackets of its own.
        let mut depth = 1;
        let end = inside.find(|c| {
            depth += match c {
                '[' => 1,
                ']' => -1,
                _ => 0,
            };
            depth == 0
        });
        let end = end.expect("brackets are balanced");
        text.push_str(&rest[..start]);
        match inside[..end].split_once('|') {
            Some((right, wrong)) => text.push_str(if which == 0 { right } else { wrong }),
            None => text.push_str(&rest[start..start + end + 2]),
        }
        rest = &inside[end + 1..];
    }
    text + rest
}

fn load(engine: &Engine, what: &str, body: &str) -> Session {
    let source = Source::from_bytes("test", format!("HloModule m\n{body}").into_bytes()).unwrap();
    engine.load(&source).unwrap_or_else(|error| panic!("{what}: {error}\n{body}"))
}

#[test]
fn programs_that_are_nearly_the_same_are_told_apart() {
    assert!(PAIRS.len() >= 46);
    let engine = engine();
    let disabled = vec!["algsimp".to_owned(), "cse".to_owned()];
    let without = Finish { disabled, ..Finish::default() };
    let mut failed = Vec::new();
    for (what, pattern) in PAIRS {
        let mut right = load(&engine, what, &variant(pattern, 0));
        let mut wrong = load(&engine, what, &variant(pattern, 1));
        let mut again = load(&engine, what, &variant(pattern, 0));
        let reference = match Reference::new(&mut right, Options::default(), &without) {
            Ok(reference) => reference,
            Err(error) => {
                failed.push(format!("{what}: {error}"));
                continue;
            }
        };
        let report = reference.compare(&mut again, &Finish::default()).unwrap();
        if !report.is_equal() {
            failed.push(format!("{what}: not equal to itself: {}", report.summary()));
        }
        let report = reference.compare(&mut wrong, &Finish::default()).unwrap();
        if !report.is_different() {
            failed.push(format!("{what}: {}", report.summary()));
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), PAIRS.len(), failed.join("\n"));
}
