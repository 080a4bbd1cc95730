//! Outputs beside what they should be.

use serde::{Deserialize, Serialize};
use xla_gym_arrays::{Element, NUMBERS};
use xla_gym_engine::protocol::Array;

use crate::noise::{Expected, distance};

/// So many times its noise an element may be off: passes regroup sums and merge roundings, which
/// moves results as noise does, and a sample of noise is a little less than the most that occurs.
pub const FACTOR: f64 = 64.0;

/// The same in higher precision, where all noise is that of inputs and constants.
pub const HIGHER_FACTOR: f64 = 32.0;

/// So many times the mean noise the mean error of an output may be.
pub const MEAN_FACTOR: f64 = 4.0;

/// Fewer elements than this say nothing by their mean: they may all hang on one sum.
pub const MANY: u64 = 256;

/// Which of two comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As the compiler makes both programs.
    Own,
    /// Both programs with all floating point in the widest type.
    Higher,
}

/// The worst difference within one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Which output, from 0.
    pub output: usize,
    /// Its element type.
    pub dtype: String,
    /// Which element, in row-major order; the first of its block where an output was compared in brief.
    pub element: usize,
    /// Its value in the first program.
    pub expected: f64,
    /// Its value in the second program.
    pub got: f64,
    /// In units of what is allowed (for integers: of 1).
    pub excess: f64,
    /// How many elements of this output differ.
    pub elements: u64,
    /// In which comparison it shows.
    pub precision: Precision,
}

/// How much was really compared, in elements over all trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// All elements of all outputs.
    pub elements: u64,
    /// Those that are numbers; integers and booleans are.
    pub finite: u64,
    /// Those in outputs whose elements are not all the same, or that have only one.
    pub varying: u64,
    /// Those at the largest number of their type.
    pub saturated: u64,
    /// Those that noise alone can turn or make infinite, which were not compared.
    pub unstable: u64,
}

impl Compared {
    fn plus(self, other: &Compared, times: u64) -> Compared {
        Compared {
            elements: self.elements + times * other.elements,
            finite: self.finite + times * other.finite,
            varying: self.varying + times * other.varying,
            saturated: self.saturated + times * other.saturated,
            unstable: self.unstable + times * other.unstable,
        }
    }
}

/// How many elements of an output each number of an array stands for; of an array in brief, in all
/// blocks but the last, which may be shorter.
fn stands_for(array: &Array) -> u64 {
    match (u64::from(array.block), array.dims.len()) {
        (0, _) => 1,
        (block, 2) => block / NUMBERS as u64,
        (block, _) => block,
    }
}

/// How far results are from those of higher precision, in the output where it matters most: root
/// mean square of the error, relative to that of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Which output, from 0.
    pub output: usize,
    /// Of the original as the compiler makes it.
    pub original: f64,
    /// Of the result.
    pub result: f64,
}

/// Collects what is found over trials.
pub struct Tally {
    precision: Precision,
    worst: Vec<Option<Difference>>,
    /// Largest difference seen, in units of what is allowed.
    pub largest: f64,
    /// How much was compared.
    pub compared: Compared,
    /// The worst accuracy so far.
    pub accuracy: Option<Accuracy>,
    /// For each output whether a number was ever compared in it.
    numbers: Vec<bool>,
}

impl Tally {
    pub fn new(outputs: usize, precision: Precision) -> Tally {
        Tally {
            precision,
            worst: vec![None; outputs],
            largest: 0.0,
            compared: Compared::default(),
            accuracy: None,
            numbers: vec![false; outputs],
        }
    }

    pub fn add(&mut self, expected: &[Expected], got: &[Array]) {
        for (output, (expected, got)) in expected.iter().zip(got).enumerate() {
            let before = std::mem::take(&mut self.compared);
            self.compared.elements += expected.len();
            if expected.is_empty() {
                self.numbers[output] = true;
            }
            match expected {
                Expected::Exact { bytes, width, unstable } => {
                    self.numbers[output] = true;
                    self.add_exact(output, (bytes, *width, unstable), got);
                }
                Expected::Near { center, unit, jumps, noise } => {
                    self.add_near(output, (center, unit, jumps, *noise), got);
                }
            }
            self.compared = before.plus(&self.compared, stands_for(got));
        }
    }

    fn add_exact(
        &mut self,
        output: usize,
        (bytes, width, unstable): (&[u8], usize, &[bool]),
        got: &Array,
    ) {
        let count = bytes.len() / width;
        self.compared.finite += count as u64;
        let first = bytes.get(..width);
        if count == 1 || bytes.chunks_exact(width).any(|element| Some(element) != first) {
            self.compared.varying += count as u64;
        }
        let doubtful = unstable.iter().filter(|flag| **flag).count() as u64;
        self.compared.unstable += doubtful;
        if bytes == got.bytes {
            return;
        }
        let element = Element::of(&got.dtype);
        let (mut wrong, mut found) = (0u64, None);
        let pairs = bytes.chunks_exact(width).zip(got.bytes.chunks_exact(width));
        for (place, (a, b)) in pairs.enumerate() {
            if a != b && !unstable.get(place).is_some_and(|flag| *flag) {
                wrong += 1;
                found.get_or_insert((place, element.values(a)[0], element.values(b)[0]));
            }
        }
        // Where noise turns some, it turns about as many others that were not caught in the act.
        if wrong <= 2 * doubtful {
            self.compared.unstable += wrong;
            return;
        }
        if let Some((place, expected, value)) = found {
            let excess = (expected - value).abs().max(1.0);
            self.note(output, got, place, (expected, value), excess, wrong);
        }
    }

    fn add_near(
        &mut self,
        output: usize,
        (center, unit, jumps, noise): (&[f64], &[f32], &[bool], f64),
        got: &Array,
    ) {
        let element = Element::of(&got.dtype);
        let values = element.values(&got.bytes);
        let factor = match self.precision {
            Precision::Own => FACTOR,
            Precision::Higher => HIGHER_FACTOR,
        };
        let largest = element.float().map_or(f64::INFINITY, |format| format.largest());
        let (mut wrong, mut worst) = (0u64, None::<(usize, f64)>);
        let (mut errors, mut sizes, mut units, mut count) = (0.0, 0.0, 0.0, 0u64);
        for (place, ((&center, &unit), &value)) in center.iter().zip(unit).zip(&values).enumerate()
        {
            if !unit.is_finite() {
                self.compared.unstable += 1;
                continue;
            }
            if center.is_finite() {
                self.compared.finite += 1;
                self.compared.saturated += u64::from(center.abs() >= largest);
                self.numbers[output] = true;
            }
            let apart = distance(center, value);
            let excess = (apart / (factor * f64::from(unit))).min(f64::MAX);
            let jumps = jumps.get(place).is_some_and(|jumps| *jumps);
            if excess <= 1.0 && center.is_finite() && !jumps {
                errors += apart * apart;
                sizes += center * center;
                units += f64::from(unit) * f64::from(unit);
                count += 1;
            }
            if excess > 1.0 {
                wrong += 1;
            }
            if worst.is_none_or(|(_, most)| excess > most) {
                worst = Some((place, excess));
            }
        }
        let mut numbers = center.iter().filter(|value| value.is_finite());
        if let Some(first) = numbers.next()
            && (center.len() == 1 || numbers.any(|value| value != first))
        {
            self.compared.varying += center.len() as u64;
        }
        let Some((place, excess)) = worst else { return };
        // As with integers: a decision that noise turns here, it turns elsewhere too.
        let tolerated = wrong <= 2 * jumps.iter().filter(|jumps| **jumps).count() as u64;
        if tolerated {
            self.compared.unstable += wrong;
        } else {
            self.note(output, got, place, (center[place], values[place]), excess, wrong);
        }
        if wrong == 0 {
            self.largest = self.largest.max(excess);
        }
        let root = |sum: f64| (sum / count.max(1) as f64).sqrt();
        let (error, size) = (root(errors), root(sizes).max(f64::MIN_POSITIVE));
        // Many elements that are each a little too far off are as telling as one that is far off.
        let allowed = MEAN_FACTOR * noise.max(root(units) / 4.0);
        let own = self.precision == Precision::Own;
        if own && count >= MANY && error > allowed && tolerated {
            self.note(output, got, place, (center[place], values[place]), error / allowed, count);
        }
        if sizes == 0.0 {
            return;
        }
        let accuracy = Accuracy { output, original: noise / size, result: error / size };
        let ratio = |accuracy: &Accuracy| accuracy.result / accuracy.original.max(1e-300);
        if self.accuracy.as_ref().is_none_or(|other| ratio(&accuracy) > ratio(other)) {
            self.accuracy = Some(accuracy);
        }
    }

    fn note(
        &mut self,
        output: usize,
        got: &Array,
        element: usize,
        (expected, value): (f64, f64),
        excess: f64,
        elements: u64,
    ) {
        self.largest = self.largest.max(excess);
        // Of an array in brief, where its block begins.
        let element = match (got.block as usize, &got.dims[..]) {
            (0, _) => element,
            (block, [_, numbers]) => element / *numbers as usize * block,
            (block, _) => element * block,
        };
        let earlier = self.worst[output].as_ref().map_or(0, |worst| worst.elements);
        match &mut self.worst[output] {
            Some(worst) if worst.excess >= excess => worst.elements += elements,
            slot => {
                *slot = Some(Difference {
                    output,
                    dtype: got.dtype.clone(),
                    element,
                    expected,
                    got: value,
                    excess,
                    elements: elements + earlier,
                    precision: self.precision,
                });
            }
        }
    }

    /// The worst difference of each output that has one.
    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.worst.iter().flatten()
    }

    /// Outputs in which no number was ever compared.
    pub fn without_numbers(&self) -> Vec<usize> {
        (0..self.numbers.len()).filter(|output| !self.numbers[*output]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Samples;

    fn array<T: Copy, const N: usize>(
        dtype: &str,
        values: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> Array {
        let dims = vec![values.len() as i64];
        let bytes = values.iter().flat_map(|value| bytes(*value)).collect();
        Array { dtype: dtype.to_owned(), dims, bytes, block: 0 }
    }

    fn check(expected: &Array, got: &Array, equal: bool) {
        let samples = Samples {
            own: expected,
            others: vec![],
            nudged: vec![],
            precise: None,
            constants: false,
            rounding: "f32",
        };
        let mut tally = Tally::new(1, Precision::Own);
        tally.add(&[Expected::of(&samples)], std::slice::from_ref(got));
        let found: Vec<&Difference> = tally.differences().collect();
        assert_eq!(found.is_empty(), equal, "{found:?}");
    }

    #[test]
    fn floats_agree_within_their_noise() {
        let f32s = |values: &[f32]| array("f32", values, f32::to_le_bytes);
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.0, 2.0]), true);
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.000_001, 2.0]), true);
        check(&f32s(&[1.0, 2.0]), &f32s(&[1.000_01, 2.0]), false);
        check(&f32s(&[1.0, -1e9]), &f32s(&[-1.0, -1e9]), false);
        check(&f32s(&[f32::NAN, 1.0]), &f32s(&[f32::NAN, 1.0]), true);
        check(&f32s(&[f32::NAN, 1.0]), &f32s(&[0.0, 1.0]), false);
        check(&f32s(&[0.0, 1.0]), &f32s(&[f32::NAN, 1.0]), false);
        check(&f32s(&[f32::INFINITY, 1.0]), &f32s(&[f32::NEG_INFINITY, 1.0]), false);
    }

    #[test]
    fn integers_agree_to_the_last_bit() {
        let u64s = |values: &[u64]| array("u64", values, u64::to_le_bytes);
        check(&u64s(&[u64::MAX - 1, 2]), &u64s(&[u64::MAX - 1, 2]), true);
        check(&u64s(&[u64::MAX - 1, 2]), &u64s(&[u64::MAX, 2]), false);
        let preds = |values: &[u8]| array("pred", values, |value| [value]);
        check(&preds(&[1, 0]), &preds(&[1, 1]), false);
    }

    #[test]
    fn outputs_without_numbers_are_known() {
        let nan = array("f32", &[f32::NAN], f32::to_le_bytes);
        let samples = Samples {
            own: &nan,
            others: vec![],
            nudged: vec![],
            precise: None,
            constants: false,
            rounding: "f32",
        };
        let mut tally = Tally::new(1, Precision::Own);
        tally.add(&[Expected::of(&samples)], std::slice::from_ref(&nan));
        assert_eq!(tally.without_numbers(), [0]);
        assert_eq!(tally.compared.varying, 0, "what is no number does not vary");
    }
}
