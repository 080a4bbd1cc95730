//! Seeded inputs.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::protocol::{Array, ArraySpec};

/// Which floats to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Within ±1.
    Signed,
    /// From 0.05 to 1: for programs that take roots and logarithms of what they are given.
    Positive,
}

/// Integers that are no indices (a step counter, say) are small.
const SMALL_INTEGERS: u64 = 8;

/// One array for each input; the same for the same arguments, on every machine.
pub fn make_inputs(specs: &[ArraySpec], seed: u64, trial: u32, range: Range) -> Vec<Array> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(trial.into());
    specs.iter().map(|spec| make_array(spec, &mut rng, range)).collect()
}

fn make_array(spec: &ArraySpec, rng: &mut ChaCha8Rng, range: Range) -> Array {
    let count: i64 = spec.dims.iter().product();
    let mut bytes = Vec::new();
    for _ in 0..count {
        push_element(spec, rng, range, &mut bytes);
    }
    Array { dtype: spec.dtype.clone(), dims: spec.dims.clone(), bytes }
}

fn push_element(spec: &ArraySpec, rng: &mut ChaCha8Rng, range: Range, bytes: &mut Vec<u8>) {
    let mut float = || match range {
        Range::Signed => rng.random_range(-1.0..1.0_f64),
        Range::Positive => rng.random_range(0.05..1.0_f64),
    };
    match spec.dtype.as_str() {
        "f64" => bytes.extend(float().to_le_bytes()),
        "f32" => bytes.extend((float() as f32).to_le_bytes()),
        "bf16" => bytes.extend(((((float() as f32).to_bits()) >> 16) as u16).to_le_bytes()),
        "f16" => bytes.extend(f16_bits(float() as f32).to_le_bytes()),
        "c64" => {
            bytes.extend((float() as f32).to_le_bytes());
            bytes.extend((float() as f32).to_le_bytes());
        }
        "c128" => {
            bytes.extend(float().to_le_bytes());
            bytes.extend(float().to_le_bytes());
        }
        "pred" => bytes.push(rng.random_range(0..2)),
        // Keys of random generators are whole words.
        "u32" if spec.index_bound.is_none() => bytes.extend(rng.random::<u32>().to_le_bytes()),
        "u64" if spec.index_bound.is_none() => bytes.extend(rng.random::<u64>().to_le_bytes()),
        other => {
            let value = rng.random_range(0..spec.index_bound.unwrap_or(SMALL_INTEGERS).max(1));
            let width = match other {
                "s64" | "u64" => 8,
                "s32" | "u32" => 4,
                "s16" | "u16" => 2,
                // One byte: 8-bit integers, 8-bit floats (any small pattern is a finite value),
                // and narrower types, which XLA keeps one to a byte.
                _ => 1,
            };
            bytes.extend(&value.to_le_bytes()[..width]);
        }
    }
}

/// Nearest half-precision value towards zero, for normal magnitudes; smaller ones become 0.
fn f16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    if exponent <= 0 {
        return sign;
    }
    sign | (exponent as u16) << 10 | (bits >> 13) as u16 & 0x3ff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dtype: &str, index_bound: Option<u64>) -> ArraySpec {
        ArraySpec { dtype: dtype.to_owned(), dims: vec![3, 5], index_bound }
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_another_trial_others() {
        let specs = [spec("f32", None), spec("s32", Some(7))];
        let make = |seed, trial| make_inputs(&specs, seed, trial, Range::Signed);
        assert_eq!(make(1, 0), make(1, 0));
        assert_ne!(make(1, 0), make(1, 1));
        assert_ne!(make(1, 0), make(2, 0));
    }

    #[test]
    fn indices_stay_within_bounds() {
        let [array] = &make_inputs(&[spec("s32", Some(3))], 0, 0, Range::Signed)[..] else {
            panic!("one input, one array")
        };
        let values: Vec<i32> = array
            .bytes
            .chunks(4)
            .map(|chunk| i32::from_le_bytes(chunk.try_into().unwrap()))
            .collect();
        assert_eq!(values.len(), 15);
        assert!(values.iter().all(|value| (0..3).contains(value)), "{values:?}");
    }

    #[test]
    fn every_type_has_its_width() {
        for (dtype, width) in [
            ("f64", 8),
            ("f32", 4),
            ("bf16", 2),
            ("f16", 2),
            ("c64", 8),
            ("c128", 16),
            ("pred", 1),
            ("s8", 1),
            ("u16", 2),
            ("s64", 8),
        ] {
            let arrays = make_inputs(&[spec(dtype, None)], 0, 0, Range::Positive);
            assert_eq!(arrays[0].bytes.len(), 15 * width, "{dtype}");
        }
    }

    #[test]
    fn half_precision_is_converted() {
        assert_eq!(f16_bits(1.0), 0x3c00);
        assert_eq!(f16_bits(-0.5), 0xb800);
        assert_eq!(f16_bits(1e-9), 0);
    }
}
