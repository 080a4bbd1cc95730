//! What a series of measurements says, and what it does not.

use xla_gym_recipe::Series;

/// Half the width of a 99.5% interval in standard errors, by degrees of freedom (1 to 30, then for many).
/// Intervals are looked at several times ([`is_time_to_look`]), until one is clear. At 99.5% each, at most one
/// question in twenty is answered wrongly (tested below).
const STUDENT: [f64; 31] = [
    127.3, 14.09, 7.45, 5.60, 4.77, 4.32, 4.03, 3.83, 3.69, 3.58, 3.50, 3.43, 3.37, 3.33, 3.29,
    3.25, 3.22, 3.20, 3.17, 3.15, 3.135, 3.12, 3.10, 3.09, 3.08, 3.07, 3.06, 3.05, 3.04, 3.03,
    2.94,
];

/// What is expected before anything was measured counts as so many measurements.
const PRIOR_WEIGHT: f64 = 2.0;

/// The rounds of a block are cut into so many parts, to see how far they agree.
const PARTS: usize = 10;

/// The middle of a series.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Of a sorted series.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Middle and quartiles.
pub fn series(values: &[f64]) -> Series {
    let sorted = sorted(values);
    Series {
        count: values.len() as u32,
        median: quantile(&sorted, 0.5),
        lower_quartile: quantile(&sorted, 0.25),
        upper_quartile: quantile(&sorted, 0.75),
    }
}

/// Times of one program: a block for each time that it was compiled and started anew, in it rounds.
pub type Blocks = Vec<Vec<f64>>;

/// How much faster one program is than another, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speedup {
    /// The most likely.
    pub ratio: f64,
    /// Where it is almost certainly.
    pub interval: (f64, f64),
}

impl Speedup {
    /// Whether it is beyond doubt which of them is faster.
    pub fn is_clear(&self) -> bool {
        self.interval.0 > 1.0 || self.interval.1 < 1.0
    }

    /// Whether it is beyond doubt that there is no difference of this share.
    pub fn is_less_than(&self, share: f64) -> bool {
        self.interval.0 > 1.0 - share && self.interval.1 < 1.0 + share
    }
}

/// Whether to look for an answer after so many blocks: ever more rarely, since who looks often enough
/// finds what is not there.
pub fn is_time_to_look(blocks: usize) -> bool {
    matches!(blocks, 1 | 2 | 3 | 4 | 6 | 8 | 11 | 15 | 20 | 27 | 36)
}

/// How much less the second takes than the first. Between blocks, programs differ by luck: where code and
/// memory of a process happen to lie makes it a few percent faster or slower for the whole of its life.
/// How much, `control` says: the first once more, in the same blocks. `luck` is what is expected of it
/// before anything is known.
///
/// Within a block, rounds were run in turn, and the mean of the middle half of the ratios of neighbours
/// counts, so that what slows the machine for a while slows both. Blocks are compared by Student's t.
pub fn speedup(first: &Blocks, second: &Blocks, control: Option<&Blocks>, luck: f64) -> Speedup {
    let ratios = |a: &Blocks, b: &Blocks| -> Vec<(f64, f64)> {
        let blocks = a.iter().zip(b).filter(|(a, b)| !a.is_empty() && !b.is_empty());
        blocks.map(|(a, b)| middle_of_ratios(a, b)).collect()
    };
    let mut found = ratios(first, second);
    if found.is_empty() {
        return Speedup { ratio: f64::NAN, interval: (f64::NAN, f64::NAN) };
    }
    let mut controls = Vec::new();
    if let Some(control) = control {
        // The first program ran twice in each block: the mean of both is closer to the truth.
        for (found, (also, _)) in found.iter_mut().zip(ratios(control, second)) {
            found.0 = (found.0 + also) / 2.0;
        }
        controls = ratios(first, control);
    }
    let count = found.len() as f64;
    let mean = found.iter().map(|(ratio, _)| ratio).sum::<f64>() / count;
    let within = found.iter().map(|(_, error)| error.powi(2)).sum::<f64>() / count;
    let squares = found.iter().map(|(ratio, _)| (ratio - mean).powi(2)).sum::<f64>()
        + controls.iter().map(|(ratio, _)| ratio.powi(2)).sum::<f64>()
        + PRIOR_WEIGHT * (luck.powi(2) + within);
    let freedom = count - 1.0 + controls.len() as f64 + PRIOR_WEIGHT;
    // What is seen within blocks is there, whatever luck says of their means.
    let variance = (squares / freedom).max(within);
    let width = STUDENT[(freedom as usize).clamp(1, STUDENT.len()) - 1] * (variance / count).sqrt();
    Speedup { ratio: mean.exp(), interval: ((mean - width).exp(), (mean + width).exp()) }
}

/// The mean of the middle half of the logarithms of ratios of neighbours, and its standard error.
fn middle_of_ratios(first: &[f64], second: &[f64]) -> (f64, f64) {
    let ratios: Vec<f64> = first.iter().zip(second).map(|(a, b)| (a / b).ln()).collect();
    let parts: Vec<f64> = ratios.chunks(ratios.len().div_ceil(PARTS)).map(middle_half).collect();
    let count = parts.len() as f64;
    let middle = middle_half(&ratios);
    if parts.len() < 2 {
        return (middle, 0.0);
    }
    let mean = parts.iter().sum::<f64>() / count;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (middle, (variance / count).sqrt())
}

/// The mean without the lowest and the highest quarter: what is far out does not count, and more of the
/// rest does than in a median.
fn middle_half(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let kept = &sorted[sorted.len() / 4..sorted.len() - sorted.len() / 4];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Blocks of a program that takes so long, on a machine that now and then does something else, with
    /// some luck for each process.
    fn blocks(rng: &mut ChaCha8Rng, mean: f64, luck: f64, count: usize) -> Blocks {
        let block = |_| {
            let process = 1.0 + rng.random_range(-luck..=luck);
            let round = |_| {
                let pause = if rng.random_bool(0.1) { 5.0 } else { 0.0 };
                mean * process * (1.0 + rng.random_range(0.0..0.1)) + pause
            };
            (0..100).map(round).collect()
        };
        (0..count).map(block).collect()
    }

    #[test]
    fn a_real_difference_is_told_from_noise_and_from_luck() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (luck, count) in [(0.002, 8), (0.02, 20)] {
            let (mut found, mut wrong) = (0, 0);
            for _ in 0..200 {
                let mut blocks = |mean: f64| blocks(&mut rng, mean, luck, count);
                let (first, control, same) = (blocks(10.0), blocks(10.0), blocks(10.0));
                let faster = blocks(10.0 / 1.02);
                found += u32::from(speedup(&first, &faster, Some(&control), 0.01).interval.0 > 1.0);
                wrong += u32::from(speedup(&first, &same, Some(&control), 0.01).is_clear());
            }
            assert!(found >= 190, "{luck}: {found} of 200 gains of 2% found");
            assert!(wrong <= 4, "{luck}: {wrong} of 200 gains that are none");
        }
    }

    #[test]
    fn looking_often_does_not_find_what_is_not_there() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for luck in [0.002, 0.01, 0.03] {
            let mut wrong = 0;
            for _ in 0..400 {
                let mut blocks = || blocks(&mut rng, 10.0, luck, 40);
                let (first, same, control) = (blocks(), blocks(), blocks());
                let upto = |blocks: &Blocks, count: usize| blocks[..count].to_vec();
                let looks = (1..=40).filter(|count| is_time_to_look(*count)).map(|count| {
                    let control = upto(&control, count);
                    speedup(&upto(&first, count), &upto(&same, count), Some(&control), 0.01)
                });
                let mut until =
                    looks.skip_while(|look| !look.is_clear() && !look.is_less_than(0.015));
                wrong += u32::from(until.next().is_some_and(|look| look.is_clear()));
            }
            assert!(wrong <= 20, "{luck}: {wrong} of 400");
        }
    }

    #[test]
    fn one_block_tells_what_is_large() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut block = |mean: f64| blocks(&mut rng, mean, 0.01, 1);
        let (first, control) = (block(10.0), block(10.0));
        let (little, large) = (block(10.0 / 1.02), block(10.0 / 1.2));
        let large = speedup(&first, &large, Some(&control), 0.01);
        assert!(large.is_clear() && (large.ratio - 1.2).abs() < 0.03, "{large:?}");
        assert!(!speedup(&first, &little, Some(&control), 0.01).is_clear());
    }

    #[test]
    fn what_is_the_same_is_found_to_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut blocks = || blocks(&mut rng, 10.0, 0.002, 6);
        let (first, same, control) = (blocks(), blocks(), blocks());
        let same = speedup(&first, &same, Some(&control), 0.01);
        assert!(same.is_less_than(0.02) && !same.is_clear(), "{same:?}");
        let nothing = speedup(&Vec::new(), &Vec::new(), None, 0.01);
        assert!(nothing.ratio.is_nan() && !nothing.is_clear() && !nothing.is_less_than(1.0));
    }

    #[test]
    fn quartiles() {
        let series = series(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((series.lower_quartile, series.median, series.upper_quartile), (2.0, 3.0, 4.0));
    }
}
