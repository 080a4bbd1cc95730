//! Values for inputs: the same for the same seed, on every machine.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_protocol::{Array, Fill, Input, InputSet};

use crate::element::{Element, Kind};

/// Inputs that take more together are not made.
pub const MOST_INPUT_BYTES: u64 = 2 << 30;

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
/// others.
pub fn make_array(input: &Input, place: usize, set: &InputSet) -> Array {
    let element = Element::of(&input.dtype);
    let held = input.held_as.as_deref().unwrap_or(&input.dtype);
    let count = input.dims.iter().product::<i64>() as usize * element.parts;
    let mut bytes = Vec::with_capacity(count * element.width);
    let mut rng = ChaCha8Rng::seed_from_u64(set.seed);
    rng.set_stream(place as u64);
    match input.fill {
        Fill::Masks => {
            let row = input.dims.last().copied().unwrap_or(1).max(1) as usize * element.parts;
            for _ in 0..count / row {
                push_mask(&element, row, &mut rng, &mut bytes);
            }
        }
        fill => {
            for _ in 0..count {
                push(&element, &fill, &mut rng, &mut bytes);
            }
        }
    }
    if let (Some(nudge), Some(format)) = (set.nudge, element.float()) {
        let mut rng =
            ChaCha8Rng::seed_from_u64(set.seed ^ nudge.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.set_stream(place as u64);
        for raw in bytes.chunks_exact_mut(element.width) {
            let mut word = [0; 8];
            word[..raw.len()].copy_from_slice(raw);
            let moved = format.neighbor(u64::from_le_bytes(word), rng.random());
            raw.copy_from_slice(&moved.to_le_bytes()[..raw.len()]);
        }
    }
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

/// One row of a mask.
fn push_mask(element: &Element, row: usize, rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    let kind = rng.random_range(0..4);
    let ones = rng.random_range(0..=row);
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
        (Fill::Masks, _) => push_mask(element, 1, rng, bytes),
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
    fn what_is_too_large_is_refused_before_anything_is_allocated() {
        let mut huge = set("f32", Fill::Constant(0.0), 0);
        for dims in [vec![1_000_000_000_000], vec![i64::MAX, i64::MAX], vec![-1]] {
            huge.inputs[0].dims = dims;
            let refusal = make_inputs(&huge).unwrap_err();
            assert!(refusal.contains("at most 2 GiB"), "{refusal}");
        }
    }
}
