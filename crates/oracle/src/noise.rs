//! How exactly an output is defined: the noise that it has by itself.
//!
//! A float is known only as well as the program computes it. So the original is run on inputs that
//! are moved by one unit in the last place, compiled in two ways, and in higher precision; what
//! that moves an element is its noise. A single sample may be small by luck, so an element also has
//! the noise of the elements of about its size in the same output; one large element says nothing
//! of small ones.

use xla_gym_arrays::{Element, Format, Kind, NUMBERS, SUMS};
use xla_gym_engine::protocol::Array;

/// This share of the elements of one size have less noise than what counts for all of them.
const QUANTILE: f64 = 0.9;

/// Fewer elements of one size than this ask larger ones what noise is usual.
const FEW: usize = 8;

/// An element that moves this many times as far as its likes hangs on a decision (the largest of
/// several, a threshold) that noise can turn.
const JUMP: f64 = 32.0;

/// What is left where all terms of an element cancel, as a share of the usual size of the others, if
/// noise was measured.
const CANCELLED: f64 = 1e-12;

/// This share of how far an element moves with its inputs is noise at least: a sum in another order is
/// as good as the sum of slightly other numbers, and a few runs may be exact by luck.
const MOVED: f64 = 0.25;

/// What one output should be, and how exactly that is known.
#[derive(Clone)]
pub enum Expected {
    /// Bytes that must be the same, except where the original itself does not know.
    Exact {
        /// Of the original.
        bytes: Vec<u8>,
        /// Bytes of one element.
        width: usize,
        /// For each element whether noise turns it; empty if none is.
        unstable: Vec<bool>,
    },
    /// Numbers that must be near.
    Near {
        /// The best known values.
        center: Vec<f64>,
        /// The noise of each; infinite where the original does not know whether it is a number.
        unit: Vec<f32>,
        /// For each whether it hangs on a decision that noise turned; empty if none does.
        jumps: Vec<bool>,
        /// Root mean square of the noise, leaving those out.
        noise: f64,
    },
}

/// Several runs of the original that would be the same without rounding.
pub struct Samples<'a> {
    /// As the compiler makes it.
    pub own: &'a Array,
    /// Compiled in another way.
    pub others: Vec<&'a Array>,
    /// On inputs that are moved by one unit in the last place.
    pub nudged: Vec<&'a Array>,
    /// In higher precision, if it could be had.
    pub precise: Option<&'a Array>,
    /// Whether [`Samples::others`] are runs with constants moved, which is all that passes may do to a
    /// program in higher precision.
    pub constants: bool,
    /// The element type whose rounding is the least noise there is.
    pub rounding: &'a str,
}

impl Expected {
    /// What samples say of one output.
    pub fn of(samples: &Samples) -> Expected {
        let element = Element::of(&samples.own.dtype);
        match element.kind {
            Kind::Float(format) => {
                let floor = Element::of(samples.rounding).float().unwrap_or(format);
                near(samples, &element, floor)
            }
            Kind::Integer { .. } | Kind::Predicate | Kind::Opaque => exact(samples, &element),
        }
    }

    /// Takes over what another precision knows: `share` of its noise, and what turned there hangs on a
    /// decision here too.
    pub fn learn_from(&mut self, other: &Expected, share: f32) {
        let Expected::Near { unit, jumps, .. } = self else { return };
        let Expected::Near { unit: theirs, jumps: turned, .. } = other else { return };
        for (place, (unit, other)) in unit.iter_mut().zip(theirs).enumerate() {
            let turned = turned.get(place).is_some_and(|turned| *turned);
            if turned && other.is_finite() {
                jumps.resize(theirs.len(), false);
                jumps[place] = true;
                *unit = unit.max(*other);
            } else if other.is_finite() {
                *unit = unit.max(share * other);
            }
        }
    }

    /// Noise that is usual among the elements; 0 if nothing is known.
    pub fn usual(&self) -> f32 {
        let Expected::Near { unit, .. } = self else { return 0.0 };
        let mut units: Vec<f32> = unit.iter().copied().filter(|unit| unit.is_finite()).collect();
        if units.is_empty() {
            return 0.0;
        }
        let middle = units.len() / 2;
        *units.select_nth_unstable_by(middle, f32::total_cmp).1
    }

    /// Gives up an output in which `factor` times the noise is more than what is there, if it is not all
    /// zero: anything would pass, or nothing, by luck.
    pub fn give_up_if_hopeless(&mut self, factor: f64) {
        let Expected::Near { center, unit, .. } = self else { return };
        let (mut noise, mut size) = (0.0, 0.0);
        for (value, unit) in center.iter().zip(&*unit) {
            if value.is_finite() && unit.is_finite() {
                noise += (factor * f64::from(*unit)).powi(2);
                size += value.powi(2);
            }
        }
        if size > 0.0 && noise > size {
            unit.fill(f32::INFINITY);
        }
    }

    /// Takes no element to be more exact than that.
    pub fn raise(&mut self, least: f32) {
        let Expected::Near { unit, .. } = self else { return };
        unit.iter_mut().for_each(|unit| *unit = unit.max(least));
    }

    /// The same, with at least the noise of the other.
    pub fn no_better(&self, other: &Expected) -> Expected {
        let mut expected = self.clone();
        if let (Expected::Near { unit, .. }, Expected::Near { unit: other, .. }) =
            (&mut expected, other)
        {
            for (unit, other) in unit.iter_mut().zip(other) {
                *unit = unit.max(*other);
            }
        }
        expected
    }

    /// Whether every element is known to be a number or not.
    pub fn finite(&self) -> u64 {
        match self {
            Expected::Exact { bytes, width, .. } => (bytes.len() / width) as u64,
            Expected::Near { center, unit, .. } => {
                let known = |(value, unit): (&f64, &f32)| value.is_finite() && unit.is_finite();
                center.iter().zip(unit).filter(|pair| known(*pair)).count() as u64
            }
        }
    }

    /// Adds the values that are known to those seen on other inputs, up to three that differ.
    pub fn collect(&self, seen: &mut Vec<f64>) {
        let mut add = |value: f64| {
            if seen.len() < 3 && !seen.contains(&value) {
                seen.push(value);
            }
            seen.len() < 3
        };
        match self {
            Expected::Exact { bytes, width, .. } => {
                let hash = |element: &[u8]| {
                    element.iter().fold(0u64, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte))
                };
                bytes.chunks_exact(*width).all(|element| add(hash(element) as f64));
            }
            Expected::Near { center, unit, .. } => {
                let known = center.iter().zip(unit).filter(|(_, unit)| unit.is_finite());
                known.filter(|(value, _)| value.is_finite()).all(|(&value, _)| add(value));
            }
        }
    }

    /// Whether values of several inputs say something: some that differ.
    pub fn tells(&self, seen: &[f64]) -> bool {
        self.is_empty() || seen.len() as u64 >= self.len().clamp(2, 3)
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements there are (parts of complex ones count).
    pub fn len(&self) -> u64 {
        match self {
            Expected::Exact { bytes, width, .. } => (bytes.len() / width) as u64,
            Expected::Near { center, .. } => center.len() as u64,
        }
    }
}

fn exact(samples: &Samples, element: &Element) -> Expected {
    let width = element.bytes();
    let bytes = samples.own.bytes.clone();
    let mut unstable = Vec::new();
    for other in samples.others.iter().chain(&samples.nudged).chain(&samples.precise) {
        if other.bytes == bytes || other.bytes.len() != bytes.len() {
            continue;
        }
        unstable.resize(bytes.len() / width, false);
        let pairs = bytes.chunks_exact(width).zip(other.bytes.chunks_exact(width));
        for (flag, (a, b)) in unstable.iter_mut().zip(pairs) {
            *flag |= a != b;
        }
    }
    Expected::Exact { bytes, width, unstable }
}

fn near(samples: &Samples, element: &Element, floor: Format) -> Expected {
    let own = element.values(&samples.own.bytes);
    let precise = samples.precise.map(|array| Element::of(&array.dtype).values(&array.bytes));
    let center = match &precise {
        Some(precise) if precise.len() == own.len() => precise.clone(),
        _ => own.clone(),
    };
    let mut noise = vec![0f64; own.len()];
    let mut moved = vec![0f64; own.len()];
    let widen = |noise: &mut [f64], center: &[f64], sample: &[f64]| {
        for ((noise, center), sample) in noise.iter_mut().zip(center).zip(sample) {
            *noise = noise.max(distance(*center, *sample));
        }
    };
    let values = |array: &Array| Element::of(&array.dtype).values(&array.bytes);
    widen(&mut noise, &center, &own);
    for other in &samples.others {
        widen(&mut noise, &center, &values(other));
    }
    for nudged in &samples.nudged {
        widen(&mut moved, &own, &values(nudged));
    }
    // Where it is known how exact the program is, it need not be guessed from how much it hangs on its
    // inputs; that only shows where it jumps.
    if precise.is_none() && !samples.constants {
        widen(&mut noise, &vec![0.0; own.len()], &moved);
    }
    let usual = usual_noise_in(samples.own, &center, &noise);
    let usual_move = usual_noise_in(samples.own, &center, &moved);
    // Where everything cancels, what is left is rounding of terms that are not seen.
    let guessed = precise.is_none() && samples.nudged.is_empty();
    let share = if guessed { floor.epsilon() } else { CANCELLED };
    let least = floor.smallest_normal().max(share * common_size(&center));
    let kept = if samples.constants { 0.0 } else { MOVED };
    let mut jumps = Vec::new();
    let (mut sum, mut count) = (0.0, 0u64);
    let unit = center
        .iter()
        .zip(&noise)
        .zip(usual)
        .zip(moved.iter().zip(usual_move))
        .enumerate()
        .map(|(place, (((center, own), usual), (moved, usual_move)))| {
            let size = if center.is_finite() { center.abs() } else { 0.0 };
            let rounding = (floor.epsilon() * size).max(least);
            let common = usual.max(rounding);
            if *own > JUMP * common || *moved > JUMP * usual_move.max(rounding) {
                jumps.resize(noise.len(), false);
                jumps[place] = true;
                return own.max(common).max(*moved) as f32;
            }
            if center.is_finite() {
                sum += own * own;
                count += 1;
            }
            own.max(common).max(*moved * kept) as f32
        })
        .collect();
    Expected::Near { center, unit, jumps, noise: (sum / count.max(1) as f64).sqrt() }
}

/// How far apart two results are; infinitely, if one of them is no number and the other is not the
/// same.
pub fn distance(a: f64, b: f64) -> f64 {
    if a == b || a.is_nan() && b.is_nan() {
        0.0
    } else if a.is_finite() && b.is_finite() {
        (a - b).abs()
    } else {
        f64::INFINITY
    }
}

/// A size that a quarter of those that are not zero stay below: large ones do not count.
fn common_size(values: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = values
        .iter()
        .map(|value| value.abs())
        .filter(|size| *size > 0.0 && size.is_finite())
        .collect();
    if sizes.is_empty() {
        return 0.0;
    }
    let place = sizes.len() / 4;
    *sizes.select_nth_unstable_by(place, f64::total_cmp).1
}

/// For each element the noise that is usual among its likes: for sums of an array in brief, among all of
/// them, since what they are sums of is of one size whatever is left in the end; otherwise among those
/// of its size.
fn usual_noise_in(array: &Array, center: &[f64], noise: &[f64]) -> Vec<f64> {
    let mut usual = usual_noise(center, noise);
    if array.block == 0 {
        return usual;
    }
    let is_sum = |place: usize| place % NUMBERS < SUMS;
    let mut sums: Vec<f64> = (0..noise.len())
        .filter(|place| is_sum(*place))
        .map(|place| noise[place])
        .filter(|noise| noise.is_finite())
        .collect();
    sums.sort_by(f64::total_cmp);
    let place = (sums.len().saturating_sub(1) as f64 * QUANTILE).round() as usize;
    let of_sums = sums.get(place).copied().unwrap_or(0.0);
    for (place, usual) in usual.iter_mut().enumerate() {
        if is_sum(place) {
            *usual = usual.max(of_sums);
        }
    }
    usual
}

/// For each element the noise that is usual among those of its size.
fn usual_noise(center: &[f64], noise: &[f64]) -> Vec<f64> {
    // Sizes by powers of two; what is no number has no size.
    let size = |value: f64| (value != 0.0 && value.is_finite()).then(|| value.abs().log2() as i32);
    let mut order: Vec<(i32, f64)> = center
        .iter()
        .zip(noise)
        .filter_map(|(center, noise)| Some((size(*center)?, *noise)).filter(|_| noise.is_finite()))
        .collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // (size, noise, how many), from small to large.
    let mut sizes: Vec<(i32, f64, usize)> = Vec::new();
    for group in order.chunk_by(|a, b| a.0 == b.0) {
        let place = ((group.len() - 1) as f64 * QUANTILE).round() as usize;
        sizes.push((group[0].0, group[place].1, group.len()));
    }
    // In a small output nobody has many likes: all of them together know how exact they are.
    let mut shares: Vec<f64> = order.iter().map(|(size, noise)| noise / 2f64.powi(*size)).collect();
    shares.sort_by(f64::total_cmp);
    let relative = shares
        .get((shares.len().saturating_sub(1) as f64 * QUANTILE).round() as usize)
        .copied()
        .unwrap_or(0.0);
    // Where a few are much smaller than the rest, larger terms have cancelled, and left theirs.
    for i in (0..sizes.len()).rev() {
        if sizes[i].2 >= FEW {
            continue;
        }
        let borrowed = match sizes[i + 1..].iter().find(|other| other.2 >= FEW) {
            Some(&(larger, usual, _)) => usual * 2f64.powf(f64::from(sizes[i].0 - larger) / 2.0),
            None => relative * 2f64.powi(sizes[i].0),
        };
        sizes[i].1 = sizes[i].1.max(borrowed);
    }
    // An exact zero that never moves is there by structure (a mask, a bias that starts so): it has
    // no noise but its own.
    let usual = |wanted: i32| {
        sizes.binary_search_by_key(&wanted, |size| size.0).map_or(0.0, |found| sizes[found].1)
    };
    center.iter().map(|value| size(*value).map_or(0.0, usual)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { dtype: "f32".to_owned(), dims: vec![values.len() as i64], bytes, block: 0 }
    }

    fn units(own: &[f32], other: &[f32]) -> Vec<f32> {
        let (own, other) = (f32s(own), f32s(other));
        let samples = Samples {
            own: &own,
            others: vec![&other],
            nudged: vec![],
            precise: None,
            constants: false,
            rounding: "f32",
        };
        match Expected::of(&samples) {
            Expected::Near { unit, .. } => unit,
            Expected::Exact { .. } => panic!("floats are compared by nearness"),
        }
    }

    #[test]
    fn a_large_element_says_nothing_of_small_ones() {
        let mut own = vec![1.0; 20];
        own[3] = -1e9;
        let mut other = own.clone();
        other[3] = -1e9 + 640.0;
        let unit = units(&own, &other);
        assert!(unit[0] < 1e-6 && unit[3] >= 640.0, "{unit:?}");
    }

    #[test]
    fn elements_of_one_size_share_their_noise() {
        let own: Vec<f32> = (0..20).map(|i| 1.0 + i as f32 * 0.01).collect();
        let other: Vec<f32> = own.iter().map(|value| value * 1.0001).collect();
        let mut lucky = other.clone();
        lucky[7] = own[7];
        let unit = units(&own, &lucky);
        assert!(unit[7] > 5e-5, "{unit:?}");
    }

    #[test]
    fn what_is_a_number_only_sometimes_is_not_compared() {
        let unit = units(&[f32::INFINITY, 1.0], &[1.0, 1.0]);
        assert!(unit[0].is_infinite() && unit[1].is_finite());
    }

    #[test]
    fn an_output_that_is_all_noise_is_given_up_and_a_sparse_one_is_not() {
        let near = |center: &[f64], unit: &[f32]| Expected::Near {
            center: center.to_vec(),
            unit: unit.to_vec(),
            jumps: Vec::new(),
            noise: 0.0,
        };
        let known = |mut expected: Expected| {
            expected.give_up_if_hopeless(128.0);
            expected.finite()
        };
        assert_eq!(known(near(&[1.0, -57.0, 3.0], &[0.5, 4.5, 0.1])), 0);
        assert_eq!(known(near(&[1.0, 1e-60, 1e-50], &[1e-7, 1e-38, 1e-38])), 3);
        assert_eq!(known(near(&[1.0, 2e-9, 3.0], &[1e-7, 1e-7, 1e-7])), 3);
        assert_eq!(known(near(&[0.0, 0.0, 0.0, 2.0], &[1e-38, 1e-38, 1e-38, 1e-7])), 4);
        assert_eq!(known(near(&[0.0, 0.0], &[1e-38, 1e-38])), 2);
    }

    #[test]
    fn integers_that_noise_turns_are_known() {
        let ints = |values: &[i32]| Array {
            dtype: "s32".to_owned(),
            dims: vec![values.len() as i64],
            bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            block: 0,
        };
        let (own, other) = (ints(&[1, 2, 3]), ints(&[1, 5, 3]));
        let samples = Samples {
            own: &own,
            others: vec![&other],
            nudged: vec![],
            precise: None,
            constants: false,
            rounding: "s32",
        };
        let Expected::Exact { unstable, .. } = Expected::of(&samples) else { panic!("exact") };
        assert_eq!(unstable, [false, true, false]);
    }

    #[test]
    fn what_turns_in_its_own_precision_is_not_trusted_in_a_higher_one() {
        let near = |turned: bool| Expected::Near {
            center: vec![1.0, 1.0],
            unit: vec![1e-3, 1e-6],
            jumps: if turned { vec![true, false] } else { vec![] },
            noise: 0.0,
        };
        let mut higher = Expected::Near {
            center: vec![1.0, 1.0],
            unit: vec![1e-9, 1e-9],
            jumps: vec![],
            noise: 0.0,
        };
        higher.learn_from(&near(false), 0.5);
        let Expected::Near { unit, jumps, .. } = &higher else { panic!("near") };
        assert_eq!((unit, jumps), (&vec![5e-4, 5e-7], &vec![]));
        higher.learn_from(&near(true), 0.5);
        let Expected::Near { unit, jumps, .. } = &higher else { panic!("near") };
        assert_eq!((unit[0], jumps), (1e-3, &vec![true, false]));
    }

    #[test]
    fn a_number_that_is_the_same_on_all_inputs_says_nothing() {
        let zero = f32s(&[0.0]);
        let samples = Samples {
            own: &zero,
            others: vec![],
            nudged: vec![],
            precise: None,
            constants: false,
            rounding: "f32",
        };
        let expected = Expected::of(&samples);
        let mut seen = Vec::new();
        expected.collect(&mut seen);
        expected.collect(&mut seen);
        assert!(!expected.tells(&seen));
        seen.push(1.0);
        assert!(expected.tells(&seen));
    }
}
