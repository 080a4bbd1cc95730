//! Element-by-element comparison.

use serde::{Deserialize, Serialize};
use xla_gym_engine::protocol::Array;

use crate::{Report, Verdict};

/// How far two floats may be apart: by `tolerance × (|a| + root mean square of the output)`.
///
/// Passes regroup sums and merge roundings, which moves results by a few units in the last
/// place of the largest terms; the mean square stands for those terms where an element itself is
/// near zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance(pub f64);

impl Tolerance {
    /// The tolerance of an element type; 0 for types that must be equal.
    pub fn of(dtype: &str) -> Tolerance {
        Tolerance(match dtype {
            "f64" | "c128" => 1e-9,
            "f32" | "c64" => 1e-4,
            "f16" => 1e-2,
            "bf16" => 4e-2,
            _ if dtype.starts_with('f') => 2.5e-1,
            _ => 0.0,
        })
    }
}

/// The worst difference within one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Which output, from 0.
    pub output: usize,
    /// Its element type.
    pub dtype: String,
    /// Which element, in row-major order.
    pub element: usize,
    /// Its value in the first program.
    pub expected: f64,
    /// Its value in the second program.
    pub got: f64,
    /// In units of the tolerance (for integers: of 1).
    pub excess: f64,
    /// How many elements of this output differ.
    pub elements: u64,
}

/// How many elements are infinite or NaN.
pub fn non_finite(array: &Array) -> u64 {
    values(array).iter().filter(|value| !value.is_finite()).count() as u64
}

/// Collects differences over trials.
pub struct Tally {
    worst: Vec<Option<Difference>>,
    elements: u64,
    non_finite: u64,
    largest: f64,
}

impl Tally {
    pub fn new(outputs: usize) -> Tally {
        Tally { worst: vec![None; outputs], elements: 0, non_finite: 0, largest: 0.0 }
    }

    pub fn add(&mut self, expected: &[Array], got: &[Array]) {
        for (output, (expected, got)) in expected.iter().zip(got).enumerate() {
            self.add_output(output, expected, got);
        }
    }

    fn add_output(&mut self, output: usize, expected: &Array, got: &Array) {
        let tolerance = Tolerance::of(&expected.dtype).0;
        if tolerance == 0.0 && expected.bytes == got.bytes {
            self.elements += values(expected).len() as u64;
            return;
        }
        let (a, b) = (values(expected), values(got));
        let scale = root_mean_square(&a);
        for (element, (&a, &b)) in a.iter().zip(&b).enumerate() {
            self.elements += 1;
            if same_non_finite(a, b) {
                self.non_finite += 1;
                continue;
            }
            let excess = excess(a, b, tolerance, scale);
            self.largest = self.largest.max(excess);
            if excess <= 1.0 && (tolerance > 0.0 || excess == 0.0) {
                continue;
            }
            let elements = self.worst[output].as_ref().map_or(0, |worst| worst.elements) + 1;
            match &mut self.worst[output] {
                Some(worst) if worst.excess >= excess => worst.elements = elements,
                slot => {
                    *slot = Some(Difference {
                        output,
                        dtype: expected.dtype.clone(),
                        element,
                        expected: a,
                        got: b,
                        excess,
                        elements,
                    });
                }
            }
        }
    }

    pub fn report(self, trials: u32) -> Report {
        let differences: Vec<Difference> = self.worst.into_iter().flatten().collect();
        let verdict = if !differences.is_empty() {
            Verdict::Different { differences }
        } else if self.elements > 0 && self.non_finite == self.elements {
            Verdict::NotComparable {
                reason: "every output is infinite or NaN on these inputs".to_owned(),
            }
        } else {
            Verdict::Equal
        };
        Report {
            verdict,
            trials,
            elements: self.elements,
            non_finite: self.non_finite,
            worst: self.largest,
        }
    }
}

fn same_non_finite(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a.is_infinite() && a == b
}

/// In units of what is allowed; more than 1 is a difference.
fn excess(a: f64, b: f64, tolerance: f64, scale: f64) -> f64 {
    if a == b {
        0.0
    } else if !a.is_finite() || !b.is_finite() {
        f64::MAX
    } else if tolerance == 0.0 {
        (a - b).abs()
    } else {
        (a - b).abs() / (tolerance * (a.abs() + scale)).max(f64::MIN_POSITIVE)
    }
}

fn root_mean_square(values: &[f64]) -> f64 {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.is_empty() {
        return 0.0;
    }
    (finite.iter().map(|value| value * value).sum::<f64>() / finite.len() as f64).sqrt()
}

/// The elements as numbers; complex ones as two each. 64-bit integers may lose their last bits,
/// which is why equal bytes are looked at first.
fn values(array: &Array) -> Vec<f64> {
    let bytes = &array.bytes;
    macro_rules! read {
        ($type:ty, $width:literal) => {
            bytes
                .chunks_exact($width)
                .map(|chunk| {
                    let mut raw = [0; $width];
                    raw.copy_from_slice(chunk);
                    <$type>::from_le_bytes(raw) as f64
                })
                .collect()
        };
    }
    match array.dtype.as_str() {
        "f64" | "c128" => read!(f64, 8),
        "f32" | "c64" => read!(f32, 4),
        "bf16" => bytes
            .chunks_exact(2)
            .map(|chunk| {
                f32::from_bits(u32::from(chunk[1]) << 24 | u32::from(chunk[0]) << 16).into()
            })
            .collect(),
        "f16" => bytes
            .chunks_exact(2)
            .map(|chunk| f16_value(u16::from_le_bytes([chunk[0], chunk[1]])))
            .collect(),
        "s64" => read!(i64, 8),
        "u64" => read!(u64, 8),
        "s32" => read!(i32, 4),
        "u32" => read!(u32, 4),
        "s16" => read!(i16, 2),
        "u16" => read!(u16, 2),
        "s8" => read!(i8, 1),
        _ => bytes.iter().map(|&byte| byte.into()).collect(),
    }
}

fn f16_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(i32::from(exponent) - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<Array> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        vec![Array { dtype: "f32".to_owned(), dims: vec![values.len() as i64], bytes }]
    }

    fn s32s(values: &[i32]) -> Vec<Array> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        vec![Array { dtype: "s32".to_owned(), dims: vec![values.len() as i64], bytes }]
    }

    fn check(expected: &[Array], got: &[Array], equal: bool) {
        let mut tally = Tally::new(expected.len());
        tally.add(expected, got);
        let report = tally.report(1);
        assert_eq!(report.is_equal(), equal, "{report:?}");
    }

    #[test]
    fn floats_agree_within_the_tolerance_of_their_type() {
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.0, 2.0]), true);
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.00001, 2.0]), true);
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.01, 2.0]), false);
        // Near zero, beside elements of size 1: rounding of the large ones shows.
        check(&f32s(&[1e-9, 1.0]), &f32s(&[3e-6, 1.0]), true);
        check(&f32s(&[1e-9, 1e-9]), &f32s(&[3e-6, 1e-9]), false);
    }

    #[test]
    fn integers_must_be_equal() {
        check(&s32s(&[1, 2]), &s32s(&[1, 2]), true);
        check(&s32s(&[1, 2]), &s32s(&[1, 3]), false);
    }

    #[test]
    fn nan_agrees_with_nan_only_and_alone_proves_nothing() {
        check(&f32s(&[f32::NAN, 1.0]), &f32s(&[f32::NAN, 1.0]), true);
        check(&f32s(&[f32::NAN, 1.0]), &f32s(&[0.0, 1.0]), false);
        check(&f32s(&[f32::INFINITY, 1.0]), &f32s(&[f32::NEG_INFINITY, 1.0]), false);
        check(&f32s(&[f32::NAN]), &f32s(&[f32::NAN]), false);
    }

    #[test]
    fn half_precision_is_read() {
        assert_eq!(f16_value(0x3c00), 1.0);
        assert_eq!(f16_value(0xb800), -0.5);
        assert_eq!(f16_value(0x7c00), f64::INFINITY);
        assert!(f16_value(0x7e00).is_nan());
        assert_eq!(f16_value(0x0001), 2f64.powi(-24));
    }
}
