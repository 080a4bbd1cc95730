//! The changes themselves: each gets an instruction and gives the lines in its place.

mod constants;
mod dimensions;
mod header;

pub use constants::{
    constant_element, constant_one_percent, constant_plus_one, constant_scaled, constant_sign,
    constant_special, loop_bound, pad_value, reduce_first_value,
};
pub use dimensions::{
    broadcast_dimensions, dot_dimensions, iota_dimension, pad_amount, reduce_dimensions,
    reverse_dimensions, slice_start, transpose_dimensions, window_dilation, window_padding,
};
pub use header::{alias_added, alias_dropped};

use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::hlo_text::{Instruction, Program, Role, dims, dtype, of_type, split};

type Rand<'a> = &'a mut ChaCha8Rng;

fn edited(i: &Instruction, edit: impl FnOnce(&mut Instruction)) -> Option<String> {
    let mut other = i.clone();
    edit(&mut other);
    (other != *i).then(|| other.text())
}

fn in_body(p: &Program, i: &Instruction) -> bool {
    matches!(p.role(i), Role::Body | Role::Condition)
}

/// Another opcode of the same group.
fn similar(i: &Instruction, groups: &[&[&str]], r: Rand) -> Option<String> {
    let groups = groups.iter().filter(|group| group.contains(&&*i.opcode));
    let others: Vec<&str> =
        groups.flat_map(|group| group.iter().copied()).filter(|other| *other != i.opcode).collect();
    let other = *others.choose(r)?;
    edited(i, |i| i.opcode = other.to_owned())
}

pub fn swapped_operands(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    const ORDERED: &[&str] = &[
        "subtract",
        "divide",
        "power",
        "remainder",
        "atan2",
        "shift-left",
        "shift-right-logical",
        "shift-right-arithmetic",
        "complex",
    ];
    (ORDERED.contains(&&*i.opcode) && in_body(p, i)).then_some(())?;
    edited(i, |i| i.operands.swap(0, 1))
}

pub fn swapped_product(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "dot").then_some(())?;
    let [a, b] = &i.operands[..] else { return None };
    (dims(p.shape_of(a)?) == dims(p.shape_of(b)?)).then_some(())?;
    edited(i, |i| i.operands.swap(0, 1))
}

pub fn other_arithmetic(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (in_body(p, i) && dtype(&i.shape) != "pred").then_some(())?;
    similar(i, &[&["add", "multiply", "subtract"], &["multiply", "divide"]], r)
}

pub fn other_extreme(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    in_body(p, i).then_some(())?;
    similar(i, &[&["maximum", "minimum"]], r)
}

pub fn other_function(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    const GROUPS: &[&[&str]] = &[
        &["sine", "cosine"],
        &["exponential", "exponential-minus-one"],
        &["log", "log-plus-one"],
        &["tanh", "logistic"],
        &["erf", "tanh"],
        &["real", "imag"],
    ];
    similar(i, GROUPS, r)
}

pub fn other_root(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    similar(i, &[&["sqrt", "rsqrt"], &["sqrt", "cbrt"]], r)
}

pub fn other_rounding(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    similar(i, &[&["floor", "ceil"], &["round-nearest-even", "round-nearest-afz", "floor"]], r)
}

pub fn other_logic(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    in_body(p, i).then_some(())?;
    similar(i, &[&["and", "or", "xor"], &["popcnt", "count-leading-zeros"]], r)
}

pub fn other_shift(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    similar(i, &[&["shift-left", "shift-right-logical", "shift-right-arithmetic"]], r)
}

pub fn dropped_sign(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    ["negate", "abs", "not", "sign"].contains(&&*i.opcode).then_some(())?;
    edited(i, |i| i.opcode = "copy".to_owned())
}

/// The first operand in place of the result.
pub fn dropped_operation(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    const OPERATIONS: &[&str] = &[
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "and",
        "or",
        "xor",
        "power",
        "remainder",
        "exponential",
        "tanh",
        "logistic",
        "rsqrt",
        "sqrt",
        "floor",
        "ceil",
        "reverse",
    ];
    (OPERATIONS.contains(&&*i.opcode) && in_body(p, i)).then_some(())?;
    let kept = i.operands.choose(r)?.clone();
    (p.shape_of(&kept)? == i.shape).then_some(())?;
    edited(i, |i| {
        i.opcode = "copy".to_owned();
        i.operands = vec![kept];
        i.attributes = String::new();
    })
}

/// Another value of the same shape from the same computation.
pub fn other_operand(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (in_body(p, i) && i.opcode != "constant" && i.opcode != "parameter").then_some(())?;
    let place = r.random_range(0..i.operands.len().max(1));
    let operand = i.operands.get(place)?;
    let shape = p.shape_of(operand)?;
    let others: Vec<&Instruction> = p
        .instructions
        .iter()
        .filter(|other| {
            other.computation == i.computation
                && other.line < i.line
                && other.shape == shape
                && other.name != *operand
        })
        .collect();
    let other = others.choose(r)?.name.clone();
    edited(i, |i| i.operands[place] = other)
}

pub fn comparison(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "compare" && in_body(p, i)).then_some(())?;
    let others: &[&str] = match i.attribute("direction")? {
        "LT" => &["LE", "GT", "GE"],
        "LE" => &["LT", "GE", "GT"],
        "GT" => &["GE", "LT", "LE"],
        "GE" => &["GT", "LE", "LT"],
        "EQ" => &["NE"],
        _ => &["EQ"],
    };
    let other = others.choose(r)?;
    edited(i, |i| i.set_attribute("direction", other))
}

/// Another way to join elements.
fn other_join(i: &Instruction, r: Rand) -> Option<String> {
    match dtype(&i.shape) {
        "pred" => similar(i, &[&["and", "or", "xor"]], r),
        _ => similar(i, &[&["add", "maximum", "minimum", "multiply"], &["and", "or"]], r),
    }
}

pub fn reduce_operator(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (p.role(i) == Role::Reducer).then(|| other_join(i, r))?
}

pub fn scatter_combiner(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (p.role(i) == Role::Combiner).then(|| other_join(i, r))?
}

/// Two operands of the same shape exchanged.
fn exchanged(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    let mut pairs = Vec::new();
    for a in 0..i.operands.len() {
        for b in a + 1..i.operands.len() {
            let (first, second) = (&i.operands[a], &i.operands[b]);
            if first != second && p.shape_of(first)? == p.shape_of(second)? {
                pairs.push((a, b));
            }
        }
    }
    let (a, b) = *pairs.choose(r)?;
    edited(i, |i| i.operands.swap(a, b))
}

pub fn concatenate_order(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "concatenate").then(|| exchanged(p, i, r))?
}

pub fn tuple_order(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "tuple").then(|| exchanged(p, i, r))?
}

pub fn tuple_element(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "get-tuple-element").then_some(())?;
    let tuple = p.shape_of(i.operands.first()?)?;
    let parts = split(tuple.strip_prefix('(')?.strip_suffix(')')?);
    let old: usize = i.attribute("index")?.parse().ok()?;
    let others: Vec<usize> =
        (0..parts.len()).filter(|other| *other != old && parts[*other] == parts[old]).collect();
    let other = others.choose(r)?.to_string();
    edited(i, |i| i.set_attribute("index", &other))
}

pub fn select_branches(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "select" && in_body(p, i)).then_some(())?;
    edited(i, |i| i.operands.swap(1, 2))
}

/// One of the two bounds is lost.
pub fn clamp_bound(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "clamp").then_some(())?;
    let [low, value, high] = &i.operands[..] else { return None };
    let (opcode, bound) =
        *[("maximum", low), ("minimum", high)].choose(r).filter(|_| low != high)?;
    let mut before = String::new();
    let mut name = bound.clone();
    if p.shape_of(bound)? != i.shape {
        before = format!("  %mutant.0 = {} broadcast({bound}), dimensions={{}}\n", i.shape);
        name = "%mutant.0".to_owned();
    }
    let line = edited(i, |i| {
        i.opcode = opcode.to_owned();
        i.operands = vec![name, value.clone()];
        i.attributes = String::new();
    })?;
    Some(before + &line)
}

/// An operand goes through a narrower type.
fn narrowed(p: &Program, i: &Instruction, wide: &str, narrow: &str, r: Rand) -> Option<String> {
    let places: Vec<usize> = (0..i.operands.len())
        .filter(|place| {
            p.shape_of(&i.operands[*place])
                .is_some_and(|shape| !shape.starts_with('(') && dtype(shape) == wide)
        })
        .collect();
    let place = *places.choose(r)?;
    let operand = &i.operands[place];
    let shape = p.shape_of(operand)?;
    let narrow = of_type(shape, narrow)?;
    let line = edited(i, |i| i.operands[place] = "%mutant.1".to_owned())?;
    Some(format!(
        "  %mutant.0 = {narrow} convert({operand})\n  %mutant.1 = {shape} convert(%mutant.0)\n{line}"
    ))
}

pub fn narrow_float(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    const OPERATIONS: &[&str] = &[
        "add",
        "subtract",
        "multiply",
        "divide",
        "dot",
        "convolution",
        "reduce",
        "tanh",
        "exponential",
        "log",
        "rsqrt",
        "maximum",
        "power",
    ];
    (OPERATIONS.contains(&&*i.opcode) && in_body(p, i)).then_some(())?;
    narrowed(p, i, "f32", "bf16", r)
}

pub fn narrow_integer(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    const OPERATIONS: &[&str] = &[
        "add",
        "subtract",
        "multiply",
        "divide",
        "remainder",
        "compare",
        "gather",
        "scatter",
        "dynamic-slice",
        "dynamic-update-slice",
        "convert",
        "maximum",
        "minimum",
        "reduce",
        "and",
        "or",
    ];
    (OPERATIONS.contains(&&*i.opcode) && in_body(p, i)).then_some(())?;
    narrowed(p, i, "s32", "s8", r)
}

pub fn index_plus_one(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    let count = i.operands.len();
    let places = match &*i.opcode {
        "gather" => 1..2,
        "scatter" => count / 2..count / 2 + 1,
        "dynamic-slice" => 1..count,
        "dynamic-update-slice" => 2..count,
        _ => return None,
    };
    let place = r.random_range(places);
    let operand = i.operands.get(place)?;
    let shape = p.shape_of(operand)?;
    let line = |name: &str| edited(i, |i| i.operands[place] = name.to_owned());
    let one = format!("  %mutant.0 = {}[] constant(1)\n", dtype(shape));
    if dims(shape)?.is_empty() {
        let sum = format!("  %mutant.1 = {shape} add({operand}, %mutant.0)\n");
        return Some(one + &sum + &line("%mutant.1")?);
    }
    let sum = format!(
        "  %mutant.1 = {shape} broadcast(%mutant.0), dimensions={{}}\n  \
         %mutant.2 = {shape} add({operand}, %mutant.1)\n"
    );
    Some(one + &sum + &line("%mutant.2")?)
}

pub fn sort_direction(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (p.role(i) == Role::Comparator && i.opcode == "compare").then_some(())?;
    let other = match i.attribute("direction")? {
        "LT" => "GT",
        "GT" => "LT",
        "LE" => "GE",
        "GE" => "LE",
        _ => return None,
    };
    edited(i, |i| i.set_attribute("direction", other))
}

pub fn conditional_branches(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "conditional").then_some(())?;
    if let Some(list) = i.attribute("branch_computations") {
        let mut names = split(list.strip_prefix('{')?.strip_suffix('}')?);
        let last = names.len().checked_sub(1)?;
        names.swap(0, last);
        let list = format!("{{{}}}", names.join(", "));
        return edited(i, |i| i.set_attribute("branch_computations", &list));
    }
    let yes = i.attribute("true_computation")?.to_owned();
    let no = i.attribute("false_computation")?.to_owned();
    edited(i, |i| {
        i.set_attribute("true_computation", &no);
        i.set_attribute("false_computation", &yes);
    })
}

pub fn fft_kind(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    let other = match i.attribute("fft_type")? {
        "FFT" => "IFFT",
        "IFFT" => "FFT",
        _ => return None,
    };
    edited(i, |i| i.set_attribute("fft_type", other))
}

/// The other triangle of a matrix.
pub fn triangle(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    ["triangular-solve", "cholesky"].contains(&&*i.opcode).then_some(())?;
    let other = if i.attribute("lower")? == "true" { "false" } else { "true" };
    edited(i, |i| i.set_attribute("lower", other))
}

pub fn random_algorithm(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "rng-bit-generator").then_some(())?;
    let other = match i.attribute("algorithm")? {
        "rng_three_fry" => "rng_philox",
        _ => "rng_three_fry",
    };
    edited(i, |i| i.set_attribute("algorithm", other))
}
