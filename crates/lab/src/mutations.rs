//! The changes themselves: each gets an instruction and gives the lines in its place.

use rand::{Rng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::hlo_text::{Instruction, Program, Role, closing, dims, dtype, of_type, split};

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

/// A number of a type, after a change; nothing where that makes no sense or no difference.
fn number(dtype: &str, old: &str, change: impl Fn(f64) -> f64) -> Option<String> {
    if dtype == "pred" {
        return match old {
            "true" | "1" => Some("false".to_owned()),
            _ => Some("true".to_owned()),
        };
    }
    if dtype.starts_with(['s', 'u']) {
        // Small integers only: large ones are keys and masks, where one more or less is right.
        let value: i128 = old.parse().ok()?;
        let new = match value.unsigned_abs() < 1 << 50 {
            true => change(value as f64).trunc() as i128,
            false => value - 1,
        };
        return (new != value && (new >= 0 || dtype.starts_with('s'))).then(|| new.to_string());
    }
    let value: f64 = old.parse().ok()?;
    let new = change(value);
    (new != value && !new.is_nan()).then(|| match new.is_infinite() {
        true => if new > 0.0 { "inf" } else { "-inf" }.to_owned(),
        false => format!("{new:e}"),
    })
}

fn scalar(i: &Instruction, change: impl Fn(f64) -> f64) -> Option<String> {
    (i.opcode == "constant").then_some(())?;
    let old = i.operands.first().filter(|value| !value.contains('{'))?;
    let new = number(dtype(&i.shape), old, change)?;
    edited(i, |i| i.operands[0] = new)
}

pub fn constant_scaled(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (in_body(p, i) && dtype(&i.shape) != "pred").then_some(())?;
    scalar(i, |value| value * 1.5)
}

pub fn constant_plus_one(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    in_body(p, i).then_some(())?;
    scalar(i, |value| value + 1.0)
}

pub fn constant_sign(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (dtype(&i.shape) != "pred").then_some(())?;
    scalar(i, |value| -value)
}

pub fn constant_one_percent(_: &Program, i: &Instruction, _: Rand) -> Option<String> {
    ["f16", "bf16", "f32", "f64"].contains(&dtype(&i.shape)).then_some(())?;
    scalar(i, |value| value * 1.01)
}

/// No number becomes one.
pub fn constant_special(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "constant" && in_body(p, i)).then_some(())?;
    let new = match &*i.operands[0] {
        "nan" | "-nan" => "0",
        "inf" => "1e30",
        "-inf" => "-1e30",
        _ => return None,
    };
    edited(i, |i| i.operands[0] = new.to_owned())
}

/// One element of an array.
pub fn constant_element(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "constant").then_some(())?;
    let old = i.operands.first().filter(|value| value.starts_with('{'))?;
    let mut places = Vec::new();
    let mut start = None;
    for (place, c) in old.char_indices() {
        match (c, start) {
            ('{' | '}' | ',' | ' ' | '(' | ')', Some(from)) => {
                places.push((from, place));
                start = None;
            }
            ('{' | '}' | ',' | ' ' | '(' | ')', None) | (_, Some(_)) => {}
            _ => start = Some(place),
        }
    }
    let (from, to) = *places.choose(r)?;
    let new = number(dtype(&i.shape), &old[from..to], |value| value + 1.0)?;
    edited(i, |i| i.operands[0].replace_range(from..to, &new))
}

pub fn slice_start(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "slice").then_some(())?;
    let sizes = dims(p.shape_of(i.operands.first()?)?)?;
    let list = i.attribute("slice")?.strip_prefix('{')?.strip_suffix('}')?;
    let mut bounds: Vec<Vec<usize>> = split(list)
        .into_iter()
        .map(|part| {
            let part = part.strip_prefix('[')?.strip_suffix(']')?;
            part.split(':').map(|number| number.parse().ok()).collect()
        })
        .collect::<Option<_>>()?;
    let mut moves = Vec::new();
    for (dimension, (bound, size)) in bounds.iter().zip(&sizes).enumerate() {
        if bound[0] > 0 {
            moves.push((dimension, false));
        }
        if bound[1] < *size {
            moves.push((dimension, true));
        }
    }
    let (dimension, up) = *moves.choose(r)?;
    for bound in &mut bounds[dimension][..2] {
        *bound = if up { *bound + 1 } else { *bound - 1 };
    }
    let parts: Vec<String> = bounds
        .iter()
        .map(|bound| {
            let numbers: Vec<String> = bound.iter().map(usize::to_string).collect();
            format!("[{}]", numbers.join(":"))
        })
        .collect();
    edited(i, |i| i.set_attribute("slice", &format!("{{{}}}", parts.join(", "))))
}

/// `1_2x0_0_1`, with one dimension's padding moved from one side to the other where there is some.
fn moved_padding(padding: &str, r: Rand) -> Option<String> {
    let mut parts: Vec<Vec<i64>> = padding
        .split('x')
        .map(|part| part.split('_').map(|number| number.parse().ok()).collect())
        .collect::<Option<_>>()?;
    let moves: Vec<(usize, usize)> = (0..parts.len())
        .flat_map(|dimension| [(dimension, 0), (dimension, 1)])
        .filter(|(dimension, side)| parts[*dimension].get(*side).is_some_and(|n| *n > 0))
        .collect();
    let (dimension, from) = *moves.choose(r)?;
    parts[dimension][from] -= 1;
    parts[dimension][1 - from] += 1;
    let parts: Vec<String> = parts
        .iter()
        .map(|part| part.iter().map(i64::to_string).collect::<Vec<_>>().join("_"))
        .collect();
    Some(parts.join("x"))
}

pub fn pad_amount(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "pad").then_some(())?;
    let padding = moved_padding(i.attribute("padding")?, r)?;
    edited(i, |i| i.set_attribute("padding", &padding))
}

/// Another constant in place of an operand that is one.
fn other_constant(p: &Program, i: &Instruction, place: usize) -> Option<String> {
    let old = p.find(i.operands.get(place)?).filter(|old| old.opcode == "constant")?;
    let value = match &*old.operands[0] {
        "inf" | "-inf" | "nan" => "0".to_owned(),
        value => number(dtype(&old.shape), value, |value| value + 1.0)?,
    };
    let line = edited(i, |i| i.operands[place] = "%mutant.0".to_owned())?;
    Some(format!("  %mutant.0 = {} constant({value})\n{line}", old.shape))
}

pub fn pad_value(p: &Program, i: &Instruction, _: Rand) -> Option<String> {
    (i.opcode == "pad").then(|| other_constant(p, i, 1))?
}

pub fn reduce_first_value(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    ["reduce", "reduce-window"].contains(&&*i.opcode).then_some(())?;
    let half = i.operands.len() / 2;
    other_constant(p, i, half + r.random_range(0..half.max(1)))
}

pub fn transpose_dimensions(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "transpose").then_some(())?;
    let sizes = dims(p.shape_of(i.operands.first()?)?)?;
    let mut order = i.numbers("dimensions")?;
    let (a, b) = equal_pair(&order, |dimension| sizes.get(dimension).copied(), r)?;
    order.swap(a, b);
    edited(i, |i| i.set_numbers("dimensions", &order))
}

/// Two places of a list whose entries are of the same size, and not of one element.
fn equal_pair(
    list: &[usize],
    size: impl Fn(usize) -> Option<usize>,
    r: Rand,
) -> Option<(usize, usize)> {
    let mut pairs = Vec::new();
    for a in 0..list.len() {
        for b in a + 1..list.len() {
            let (first, second) = (size(list[a])?, size(list[b])?);
            if first == second && first > 1 {
                pairs.push((a, b));
            }
        }
    }
    pairs.choose(r).copied()
}

/// A list with one entry changed to another dimension of the same size that is not in it.
fn other_entry(list: &[usize], sizes: &[usize], r: Rand) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for (place, old) in list.iter().enumerate() {
        for new in 0..sizes.len() {
            if sizes[new] == *sizes.get(*old)? && sizes[new] > 1 && !list.contains(&new) {
                all.push((place, new));
            }
        }
    }
    let (place, new) = *all.choose(r)?;
    let mut list = list.to_vec();
    list[place] = new;
    Some(list)
}

pub fn broadcast_dimensions(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "broadcast").then_some(())?;
    let sizes = dims(&i.shape)?;
    let list = i.numbers("dimensions")?;
    let other = match other_entry(&list, &sizes, r) {
        Some(other) => other,
        None => {
            let (a, b) = equal_pair(&list, |dimension| sizes.get(dimension).copied(), r)?;
            let mut other = list.clone();
            other.swap(a, b);
            other
        }
    };
    edited(i, |i| i.set_numbers("dimensions", &other))
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

pub fn reduce_dimensions(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "reduce").then_some(())?;
    let sizes = dims(p.shape_of(i.operands.first()?)?)?;
    let mut list = other_entry(&i.numbers("dimensions")?, &sizes, r)?;
    list.sort_unstable();
    edited(i, |i| i.set_numbers("dimensions", &list))
}

pub fn iota_dimension(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "iota").then_some(())?;
    let rank = dims(&i.shape)?.len();
    let old: usize = i.attribute("iota_dimension")?.parse().ok()?;
    let others: Vec<usize> = (0..rank).filter(|other| *other != old).collect();
    let other = others.choose(r)?.to_string();
    edited(i, |i| i.set_attribute("iota_dimension", &other))
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

pub fn reverse_dimensions(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "reverse").then_some(())?;
    let sizes = dims(&i.shape)?;
    let list = i.numbers("dimensions")?;
    let others: Vec<Vec<usize>> = (0..sizes.len())
        .filter(|dimension| sizes[*dimension] > 1)
        .map(|dimension| vec![dimension])
        .filter(|other| *other != list)
        .collect();
    let other = others.choose(r)?;
    edited(i, |i| i.set_numbers("dimensions", other))
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

/// Another dimension of the same size is contracted.
pub fn dot_dimensions(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (i.opcode == "dot").then_some(())?;
    let (side, operand) = *[("lhs", 0), ("rhs", 1)].choose(r)?;
    let sizes = dims(p.shape_of(i.operands.get(operand)?)?)?;
    let key = format!("{side}_contracting_dims");
    let batch = i.numbers(&format!("{side}_batch_dims")).unwrap_or_default();
    let list = other_entry(&i.numbers(&key)?, &sizes, r)?;
    list.iter().all(|dimension| !batch.contains(dimension)).then_some(())?;
    edited(i, |i| i.set_numbers(&key, &list))
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

/// One part of `{size=3x3 pad=1_1x1_1}`.
fn window_part<'a>(window: &'a str, name: &str) -> Option<&'a str> {
    let list = window.strip_prefix('{')?.strip_suffix('}')?;
    list.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

pub fn window_padding(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    let window = i.attribute("window")?;
    let old = window_part(window, "pad")?;
    let new = moved_padding(old, r)?;
    let window = window.replace(&format!("pad={old}"), &format!("pad={new}"));
    edited(i, |i| i.set_attribute("window", &window))
}

/// One dimension is dilated, and padded so that shapes stay.
pub fn window_dilation(_: &Program, i: &Instruction, r: Rand) -> Option<String> {
    ["convolution", "reduce-window"].contains(&&*i.opcode).then_some(())?;
    let window = i.attribute("window")?;
    window_part(window, "rhs_dilate").is_none().then_some(())?;
    let sizes: Vec<i64> =
        window_part(window, "size")?.split('x').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let old = window_part(window, "pad")?;
    let wide: Vec<usize> = (0..sizes.len()).filter(|dimension| sizes[*dimension] > 1).collect();
    let dimension = *wide.choose(r)?;
    let mut pads: Vec<String> = old.split('x').map(str::to_owned).collect();
    let (low, high) = pads.get(dimension)?.split_once('_')?;
    pads[dimension] = format!("{low}_{}", high.parse::<i64>().ok()? + sizes[dimension] - 1);
    let dilation: Vec<&str> =
        (0..sizes.len()).map(|other| if other == dimension { "2" } else { "1" }).collect();
    let new = format!("pad={} rhs_dilate={}", pads.join("x"), dilation.join("x"));
    let window = window.replace(&format!("pad={old}"), &new);
    edited(i, |i| i.set_attribute("window", &window))
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

/// A loop turns once more or once less.
pub fn loop_bound(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (p.role(i) == Role::Condition && dtype(&i.shape).starts_with(['s', 'u'])).then_some(())?;
    let step = if r.random() { 1.0 } else { -1.0 };
    scalar(i, |value| value + step)
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

const ALIASES: &str = "input_output_alias=";

/// The entries of the list of aliases, and where it is in the first line.
fn aliases(p: &Program) -> Option<(usize, usize, Vec<&str>)> {
    let header = p.lines.first()?;
    let start = header.find(ALIASES)? + ALIASES.len();
    let end = closing(header, start)? + 1;
    Some((start, end, split(header[start + 1..end - 1].trim())))
}

pub fn alias_dropped(p: &Program, r: Rand) -> Option<String> {
    let (start, end, mut entries) = aliases(p)?;
    let place = r.random_range(0..entries.len().max(1));
    if entries.len() <= place {
        return None;
    }
    entries.remove(place);
    let mut header = p.lines[0].clone();
    match entries.is_empty() {
        true => header.replace_range(start - ALIASES.len()..(end + 2).min(header.len()), ""),
        false => header.replace_range(start..end, &format!("{{ {} }}", entries.join(", "))),
    }
    Some(header)
}

/// An output is written into an input that nobody gave away.
pub fn alias_added(p: &Program, r: Rand) -> Option<String> {
    let header = p.lines.first()?;
    let known = aliases(p);
    let entries = known.as_ref().map_or(&[][..], |(_, _, entries)| entries);
    let root = p.instructions.iter().find(|i| i.root && i.computation == p.entry)?;
    let outputs: Vec<(String, &str)> = match root.shape.strip_prefix('(') {
        Some(list) => split(list.strip_suffix(')')?)
            .into_iter()
            .enumerate()
            .map(|(place, shape)| (format!("{{{place}}}"), shape))
            .collect(),
        None => vec![("{}".to_owned(), &*root.shape)],
    };
    let mut all = Vec::new();
    for input in &p.instructions {
        if input.opcode != "parameter" || input.computation != p.entry {
            continue;
        }
        let number = &input.operands[0];
        // What is given away without an alias may be used.
        if header.contains(&format!("({number}, {{}}")) {
            continue;
        }
        for (place, shape) in &outputs {
            let taken = entries.iter().any(|entry| entry.starts_with(&format!("{place}:")));
            if !taken && *shape == input.shape {
                all.push(format!("{place}: ({number}, {{}}, may-alias)"));
            }
        }
    }
    let entry = all.choose(r)?.clone();
    let mut header = header.clone();
    match known {
        Some((start, end, mut entries)) => {
            entries.push(&entry);
            header.replace_range(start..end, &format!("{{ {} }}", entries.join(", ")));
        }
        None => {
            let place = header.find(',').unwrap_or(header.len());
            header.insert_str(place, &format!(", {ALIASES}{{ {entry} }}"));
        }
    }
    Some(header)
}
