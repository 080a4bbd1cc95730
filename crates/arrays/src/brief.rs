//! Large arrays in brief: what is left of them when nobody can hold them.
//!
//! A step of a model of ordinary size gives gigabytes. For comparing two of them it is enough to hold
//! sums: floating point is cut into blocks of [`BLOCK`] elements, and each block gives two sums with
//! random weights, in which any element that is wrong shows, and exchanged elements too, and
//! [`SAMPLES`] elements as they are. Rounding adds up in a sum like the root of the number of
//! elements, so that one wrong element is seen unless it is off by less than about twenty times the
//! rounding of its likes. Integers and booleans give a hash of each block.

use xla_gym_common::splitmix;
use xla_gym_protocol::Array;

use crate::element::{Element, Kind};

/// Elements of one block.
pub const BLOCK: usize = 512;

/// Elements of a block that are kept as they are.
pub const SAMPLES: usize = 2;

/// Numbers that a block of floating point gives.
pub const NUMBERS: usize = SUMS + SAMPLES;

/// How many of them are sums; they come first.
pub const SUMS: usize = 2;

/// Arrays that have fewer elements together are kept whole.
pub const MOST_WHOLE: u64 = 1 << 22;

/// And each that has fewer alone.
pub const SMALL: u64 = 1 << 14;

/// Whether an array is to be had in brief, if all that come with it have so many elements together.
pub fn is_brief(elements: u64, together: u64) -> bool {
    together > MOST_WHOLE && elements > SMALL
}

/// The array in brief: `f64`, or `u64` for what is no floating point.
pub fn brief(array: &Array) -> Array {
    let element = Element::of(&array.dtype);
    let blocks = array.bytes.chunks(BLOCK * element.width);
    let count = blocks.len() as i64;
    let mut bytes = Vec::new();
    match element.kind {
        Kind::Float(_) => {
            let weights = weights();
            for (place, block) in blocks.enumerate() {
                let values = element.values(block);
                for weights in &weights {
                    let sum: f64 = values.iter().zip(weights).map(|(a, b)| a * b).sum();
                    bytes.extend(sum.to_le_bytes());
                }
                for sample in 0..SAMPLES {
                    let which = splitmix((place * SAMPLES + sample) as u64) % values.len() as u64;
                    bytes.extend(values[which as usize].to_le_bytes());
                }
            }
            let dims = vec![count, NUMBERS as i64];
            Array { dtype: "f64".to_owned(), dims, bytes, block: BLOCK as u32 }
        }
        _ => {
            for block in blocks {
                bytes.extend(hash(block).to_le_bytes());
            }
            Array { dtype: "u64".to_owned(), dims: vec![count], bytes, block: BLOCK as u32 }
        }
    }
}

/// For each sum what elements are multiplied by: all different, of either sign.
fn weights() -> [[f64; BLOCK]; SUMS] {
    let mut weights = [[0.0; BLOCK]; SUMS];
    for (sum, weights) in weights.iter_mut().enumerate() {
        for (place, weight) in weights.iter_mut().enumerate() {
            let luck = splitmix(((sum as u64) << 32) + place as u64 + 1);
            let size = 0.5 + (luck >> 12) as f64 / (1u64 << 52) as f64;
            *weight = if luck & 1 == 0 { size } else { -size };
        }
    }
    weights
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        splitmix(hash ^ u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { dtype: "f32".to_owned(), dims: vec![values.len() as i64], bytes, block: 0 }
    }

    fn numbers(array: &Array) -> Vec<f64> {
        Element::of(&array.dtype).values(&array.bytes)
    }

    #[test]
    fn one_wrong_element_and_two_exchanged_ones_show_in_their_block_alone() {
        let values: Vec<f32> = (0..1300).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let whole = numbers(&brief(&f32s(&values)));
        assert_eq!(whole.len(), 3 * NUMBERS);
        let mut wrong = values.clone();
        wrong[700] += 1e-3;
        let mut exchanged = values.clone();
        exchanged.swap(600, 900);
        for other in [wrong, exchanged] {
            let other = numbers(&brief(&f32s(&other)));
            let apart = |range: std::ops::Range<usize>| whole[range.clone()] == other[range];
            assert!(apart(0..NUMBERS) && apart(2 * NUMBERS..3 * NUMBERS));
            for sum in NUMBERS..NUMBERS + SUMS {
                assert!((whole[sum] - other[sum]).abs() > 1e-4, "{sum}");
            }
        }
    }

    #[test]
    fn integers_are_hashed_to_the_last_bit() {
        let array = |value: u8| {
            let mut bytes = vec![0; 8 * 600];
            bytes[8 * 599] = value;
            Array { dtype: "s64".to_owned(), dims: vec![600], bytes, block: 0 }
        };
        let (a, b) = (brief(&array(0)), brief(&array(1)));
        assert_eq!((a.bytes.len(), &a.bytes[..8]), (16, &b.bytes[..8]));
        assert_ne!(a.bytes[8..], b.bytes[8..]);
    }

    #[test]
    fn what_is_small_or_alone_is_kept_whole() {
        assert!(!is_brief(1 << 21, 1 << 22));
        assert!(!is_brief(100, 1 << 30));
        assert!(is_brief(1 << 15, 1 << 23));
    }
}
