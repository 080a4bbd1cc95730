//! The same operation along other dimensions, or beside where it should be.

use rand::seq::IndexedRandom;

use super::{Rand, edited};
use crate::hlo_text::{Instruction, Program, dims, split};

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
