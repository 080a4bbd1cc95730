//! Other numbers where the program says one.

use rand::{Rng, seq::IndexedRandom};

use super::{Rand, edited, in_body};
use crate::hlo_text::{Instruction, Program, Role, dtype};

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

/// A loop turns once more or once less.
pub fn loop_bound(p: &Program, i: &Instruction, r: Rand) -> Option<String> {
    (p.role(i) == Role::Condition && dtype(&i.shape).starts_with(['s', 'u'])).then_some(())?;
    let step = if r.random() { 1.0 } else { -1.0 };
    scalar(i, |value| value + step)
}
