//! Values for inputs: the same for the same seed, on every machine.

use half::bf16;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_common::each_on_all_cores;
use xla_gym_protocol::{Array, Fill, Input, InputSet};

use crate::element::{Element, Kind};

/// Inputs that take more together are not made.
pub const MOST_INPUT_BYTES: u64 = 6 << 30;

/// Arrays of more elements are made in parts of so many, on all cores.
const PART: usize = 1 << 20;

/// Parts of more elements are made of 32 bits each, which is faster.
const FEW: usize = 1 << 18;

/// Bytes of an array; None if they cannot even be counted.
pub fn bytes_of(dtype: &str, dims: &[i64]) -> Option<u64> {
    let mut bytes = Element::of(dtype).bytes() as u64;
    for &size in dims {
        bytes = bytes.checked_mul(u64::try_from(size).ok()?)?;
    }
    Some(bytes)
}

/// Makes all inputs, unless they are too large, with the reason.
pub fn make_inputs(set: &InputSet) -> Result<Vec<Array>, String> {
    check_size(set)?;
    Ok(set.inputs.iter().enumerate().map(|(place, input)| make_array(input, place, set)).collect())
}

/// Why inputs cannot be made, if so.
pub fn check_size(set: &InputSet) -> Result<(), String> {
    let mut total = Some(0u64);
    for input in &set.inputs {
        let held = input.held_as.as_deref().unwrap_or(&input.dtype);
        let bytes = bytes_of(held, &input.dims);
        total = total.zip(bytes).and_then(|(a, b)| a.checked_add(b));
    }
    match total {
        Some(total) if total <= MOST_INPUT_BYTES => Ok(()),
        _ => Err(too_large(total)),
    }
}

fn too_large(total: Option<u64>) -> String {
    let size = match total {
        Some(total) => format!("{:.1} GiB", total as f64 / (1u64 << 30) as f64),
        None => "more bytes than can be counted".to_owned(),
    };
    format!(
        "its inputs take {size}, and at most {} GiB are made; run it with smaller shapes",
        MOST_INPUT_BYTES >> 30
    )
}

/// Makes one input. Each has a stream of its own, so that what one holds does not depend on the
/// others; and so has each part of a large one.
pub fn make_array(input: &Input, place: usize, set: &InputSet) -> Array {
    let element = Element::of(&input.dtype);
    let held = input.held_as.as_deref().unwrap_or(&input.dtype);
    let count = input.dims.iter().product::<i64>() as usize * element.parts;
    let mut bytes = if count <= PART {
        make_part(input, &element, count, place as u64, set)
    } else {
        let row = row(input, &element);
        let part = (PART / row).max(1) * row * element.width;
        let mut bytes = vec![0; count * element.width];
        let parts: Vec<(u64, &mut [u8])> = (1..).zip(bytes.chunks_mut(part)).collect();
        each_on_all_cores(parts, |(number, part)| {
            let stream = place as u64 | number << 32;
            part.copy_from_slice(&make_part(
                input,
                &element,
                part.len() / element.width,
                stream,
                set,
            ));
        });
        bytes
    };
    if held != input.dtype {
        let wide = Element::of(held);
        let values = element.values(&bytes);
        bytes = Vec::with_capacity(values.len() * wide.width);
        for value in values {
            wide.push(value, &mut bytes);
        }
    }
    Array { dtype: held.to_owned(), dims: input.dims.clone(), bytes, block: 0 }
}

/// Elements of one row.
fn row(input: &Input, element: &Element) -> usize {
    input.dims.last().copied().unwrap_or(1).max(1) as usize * element.parts
}

fn make_part(
    input: &Input,
    element: &Element,
    count: usize,
    stream: u64,
    set: &InputSet,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * element.width);
    let mut rng = ChaCha8Rng::seed_from_u64(set.seed);
    rng.set_stream(stream);
    match input.fill {
        Fill::Masks | Fill::Padded => {
            let row = row(input, element);
            let padded = input.fill == Fill::Padded;
            for _ in 0..count / row {
                push_mask(element, row, padded, &mut rng, &mut bytes);
            }
        }
        Fill::Uniform { low, high } if count > FEW => {
            let mut words = vec![0; 4 * count];
            rng.fill_bytes(&mut words);
            let scale = (high - low) / f64::from(u32::MAX);
            let value = |word: [u8; 4]| low + scale * f64::from(u32::from_le_bytes(word));
            let words = words.as_chunks().0;
            match &*input.dtype {
                "f32" => {
                    let value = |word: &[u8; 4]| (value(*word) as f32).to_le_bytes();
                    bytes = words.iter().map(value).collect::<Vec<_>>().into_flattened();
                }
                "bf16" => {
                    let value = |word: &[u8; 4]| bf16::from_f32(value(*word) as f32).to_le_bytes();
                    bytes = words.iter().map(value).collect::<Vec<_>>().into_flattened();
                }
                _ => words.iter().for_each(|word| element.push(value(*word), &mut bytes)),
            }
        }
        Fill::Constant(value) if count > FEW => {
            element.push(value, &mut bytes);
            bytes = bytes.repeat(count);
        }
        fill => {
            for _ in 0..count {
                push(element, &fill, &mut rng, &mut bytes);
            }
        }
    }
    if let (Some(nudge), Some(format)) = (set.nudge, element.float()) {
        let mut rng =
            ChaCha8Rng::seed_from_u64(set.seed ^ nudge.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.set_stream(stream);
        match &*input.dtype {
            "f32" if count > FEW => {
                nudge_many::<4>(&mut bytes, f32::INFINITY.to_bits(), &mut rng);
                return bytes;
            }
            "bf16" if count > FEW => {
                nudge_many::<2>(&mut bytes, bf16::INFINITY.to_bits().into(), &mut rng);
                return bytes;
            }
            _ => {}
        }
        for raw in bytes.chunks_exact_mut(element.width) {
            let mut word = [0; 8];
            word[..raw.len()].copy_from_slice(raw);
            let moved = format.neighbor(u64::from_le_bytes(word), rng.random());
            raw.copy_from_slice(&moved.to_le_bytes()[..raw.len()]);
        }
    }
    bytes
}

/// Moves many elements by one unit in the last place, without a branch.
fn nudge_many<const WIDTH: usize>(bytes: &mut [u8], infinite: u32, rng: &mut ChaCha8Rng) {
    let sign = 1 << (8 * WIDTH - 1);
    for chunk in bytes.chunks_mut(WIDTH * 64) {
        let luck: u64 = rng.random();
        for (place, raw) in chunk.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
            let mut word = [0; 4];
            word[..WIDTH].copy_from_slice(raw);
            let bits = u32::from_le_bytes(word);
            let magnitude = bits & (sign - 1);
            let moved = if luck >> place & 1 == 1 { bits + 1 } else { bits.wrapping_sub(1) };
            let stays = magnitude <= 1 || magnitude + 1 >= infinite;
            let word = (if stays { bits } else { moved }).to_le_bytes();
            raw.copy_from_slice(&word[..WIDTH]);
        }
    }
}

/// One row of a mask; if it is padded, ones and then zeros.
fn push_mask(
    element: &Element,
    row: usize,
    padded: bool,
    rng: &mut ChaCha8Rng,
    bytes: &mut Vec<u8>,
) {
    let kind = if padded { 2 } else { rng.random_range(0..4) };
    let ones = rng.random_range(usize::from(padded)..=row);
    for place in 0..row {
        let one = match kind {
            0 => false,
            1 => true,
            2 => place < ones,
            _ => rng.random(),
        };
        element.push(f64::from(u8::from(one)), bytes);
    }
}

fn push(element: &Element, fill: &Fill, rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    match (*fill, element.kind) {
        (Fill::Uniform { low, high }, _) => element.push(rng.random_range(low..=high), bytes),
        (Fill::Scales { low, high, signed }, _) => {
            let size = 2f64.powf(rng.random_range(low..=high));
            let sign = if signed && rng.random() { -1.0 } else { 1.0 };
            element.push(sign * size, bytes);
        }
        (Fill::Integers { low, high }, Kind::Integer { .. }) => {
            let value: i64 = rng.random_range(low..=high);
            bytes.extend(&value.to_le_bytes()[..element.width]);
        }
        (Fill::Integers { low, high }, _) => {
            element.push(rng.random_range(low..=high) as f64, bytes);
        }
        (Fill::Halves { low, high }, _) => {
            element.push(rng.random_range(low..=high) as f64 / 2.0, bytes);
        }
        (Fill::Constant(value), _) => element.push(value, bytes),
        (Fill::Masks | Fill::Padded, _) => push_mask(element, 1, false, rng, bytes),
        (Fill::Coin { share }, _) => {
            element.push(f64::from(u8::from(rng.random_bool(share))), bytes)
        }
        (Fill::Bits, kind) => push_bits(element, kind, rng.random(), bytes),
        (Fill::Extremes, kind) => {
            let word = match rng.random_range(0..7) {
                0 => 0,
                1 => 1,
                2 => u64::MAX,
                3 => u64::MAX >> 1 >> (64 - 8 * element.width),
                4 => 1 << (8 * element.width - 1),
                _ => rng.random(),
            };
            push_bits(element, kind, word, bytes);
        }
    }
}

/// Types narrower than a byte are kept one to a byte, sign and all.
fn push_bits(element: &Element, kind: Kind, word: u64, bytes: &mut Vec<u8>) {
    let word = match kind {
        Kind::Integer { signed, bits } if bits < 8 => {
            let unused = 64 - bits;
            if signed {
                ((word << unused) as i64 >> unused) as u64
            } else {
                word << unused >> unused
            }
        }
        Kind::Predicate => word & 1,
        _ => word,
    };
    bytes.extend(&word.to_le_bytes()[..element.width]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(dtype: &str, fill: Fill, seed: u64) -> InputSet {
        let input = Input { dtype: dtype.to_owned(), dims: vec![3, 5], fill, held_as: None };
        InputSet { seed, nudge: None, inputs: vec![input] }
    }

    fn values(set: &InputSet) -> Vec<f64> {
        let arrays = make_inputs(set).unwrap();
        Element::of(&arrays[0].dtype).values(&arrays[0].bytes)
    }

    #[test]
    fn the_same_seed_gives_the_same_values_and_another_others() {
        let uniform = Fill::Uniform { low: -1.0, high: 1.0 };
        assert_eq!(values(&set("f32", uniform, 1)), values(&set("f32", uniform, 1)));
        assert_ne!(values(&set("f32", uniform, 1)), values(&set("f32", uniform, 2)));
    }

    #[test]
    fn integers_stay_within_bounds_and_extremes_reach_the_ends() {
        let bounded = values(&set("s32", Fill::Integers { low: 0, high: 2 }, 0));
        assert!(bounded.iter().all(|value| (0.0..3.0).contains(value)), "{bounded:?}");
        let masks: Vec<Vec<f64>> = (0..9)
            .flat_map(|seed| values(&set("s32", Fill::Masks, seed)))
            .collect::<Vec<_>>()
            .chunks(5)
            .map(<[f64]>::to_vec)
            .collect();
        assert!(masks.iter().flatten().all(|value| [0.0, 1.0].contains(value)));
        for row in [vec![0.0; 5], vec![1.0; 5]] {
            assert!(masks.contains(&row), "{row:?}");
        }
        assert!(masks.iter().any(|row| row.contains(&0.0) && row.contains(&1.0)));
        for row in values(&set("s32", Fill::Padded, 4)).chunks(5) {
            assert!(row[0] == 1.0 && row.is_sorted_by(|a, b| a >= b), "{row:?}");
        }
        let wide = values(&set("s32", Fill::Extremes, 0));
        assert!(wide.contains(&f64::from(i32::MIN)) && wide.iter().any(|value| *value > 1e9));
    }

    #[test]
    fn a_nudge_moves_each_value_by_one_unit_and_a_wider_form_holds_the_same() {
        let plain = set("f32", Fill::Uniform { low: 1.0, high: 1.9 }, 3);
        let nudged = InputSet { nudge: Some(1), ..plain.clone() };
        for (a, b) in values(&plain).into_iter().zip(values(&nudged)) {
            assert_eq!((a - b).abs(), f64::from(f32::EPSILON));
        }
        let mut wide = plain.clone();
        wide.inputs[0].held_as = Some("f64".to_owned());
        assert_eq!(values(&wide), values(&plain));
    }

    #[test]
    fn large_arrays_are_as_random_as_small_ones() {
        for dtype in ["f32", "bf16", "f16"] {
            is_random_if_large(dtype);
        }
    }

    fn is_random_if_large(dtype: &str) {
        let mut large = set(dtype, Fill::Uniform { low: -1.0, high: 3.0 }, 3);
        large.inputs[0].dims = vec![3, 1 << 20];
        let all = values(&large);
        assert_eq!(all, values(&large), "by the seed alone");
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!(all.iter().all(|value| (-1.0..=3.0).contains(value)) && (mean - 1.0).abs() < 0.01);
        assert_ne!(all[..1 << 20], all[1 << 20..2 << 20], "parts differ");
        let nudged = values(&InputSet { nudge: Some(1), ..large.clone() });
        let moved = all.iter().zip(&nudged).filter(|(a, b)| a != b).count();
        assert!(moved > all.len() * 999 / 1000, "all but those that are zero: {moved}");
        large.inputs[0].fill = Fill::Masks;
        large.inputs[0].dims = vec![1 << 19, 5];
        let masks = values(&large);
        let rows = masks.chunks(5).filter(|row| **row == [0.0; 5]).count();
        assert!(
            rows > masks.len() / 5 / 5,
            "a quarter of the rows is empty, and some more: {rows}"
        );
    }

    #[test]
    fn what_is_too_large_is_refused_before_anything_is_allocated() {
        let mut huge = set("f32", Fill::Constant(0.0), 0);
        for dims in [vec![1_000_000_000_000], vec![i64::MAX, i64::MAX], vec![-1]] {
            huge.inputs[0].dims = dims;
            let refusal = make_inputs(&huge).unwrap_err();
            assert!(refusal.contains("at most 6 GiB"), "{refusal}");
        }
    }
}
