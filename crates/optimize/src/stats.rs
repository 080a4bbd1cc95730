//! What a series of measurements says, and what it does not.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_recipe::Series;

/// How often a series is drawn anew from itself.
const RESAMPLES: usize = 1000;

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

/// How much faster the second of two series is, with a 95% confidence interval.
///
/// A series has blocks, one for each time that the programs were compiled and started anew: a program
/// may be a few percent faster or slower for the whole life of its process, by where its memory
/// happens to lie. Within a block, rounds were run in turn, and the middle of the ratios of
/// neighbours counts, so that what slows the machine for a while slows both. The result is the mean
/// over blocks (of logarithms); the interval by bootstrap over blocks and over rounds in them.
pub fn speedup(first: &[Vec<f64>], second: &[Vec<f64>]) -> (f64, (f64, f64)) {
    let blocks: Vec<Vec<f64>> = first
        .iter()
        .zip(second)
        .map(|(first, second)| first.iter().zip(second).map(|(a, b)| (a / b).ln()).collect())
        .filter(|block: &Vec<f64>| !block.is_empty())
        .collect();
    if blocks.is_empty() {
        return (f64::NAN, (f64::NAN, f64::NAN));
    }
    let mean = |medians: &[f64]| medians.iter().sum::<f64>() / medians.len() as f64;
    let ratio = mean(&blocks.iter().map(|block| median(block)).collect::<Vec<_>>());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<f64> = (0..blocks.len())
                .map(|_| {
                    let block = &blocks[rng.random_range(0..blocks.len())];
                    let rounds: Vec<f64> =
                        block.iter().map(|_| block[rng.random_range(0..block.len())]).collect();
                    median(&rounds)
                })
                .collect();
            mean(&drawn)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (ratio.exp(), (quantile(&means, 0.025).exp(), quantile(&means, 0.975).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_difference_is_told_from_noise() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut noisy = |mean: f64| -> Vec<f64> {
            // Now and then the machine does something else.
            (0..60)
                .map(|_| {
                    let pause = if rng.random_bool(0.1) { 5.0 } else { 0.0 };
                    mean * (1.0 + rng.random_range(0.0..0.1)) + pause
                })
                .collect()
        };
        let (first, same, faster) = (noisy(10.0), noisy(10.0), noisy(9.0));
        let (first, same, faster) = ([first], [same], [faster]);
        let (ratio, (low, high)) = speedup(&first, &faster);
        assert!(low > 1.0 && (ratio - 10.0 / 9.0).abs() < 0.03, "{ratio} {low} {high}");
        let (ratio, (low, high)) = speedup(&first, &same);
        assert!(low <= 1.01 && high >= 0.99, "{ratio} {low} {high}");
    }

    #[test]
    fn luck_of_a_process_is_not_taken_for_speed() {
        // Within each block the second is clearly faster or clearly slower, but not always the same.
        let block = |factor: f64| vec![10.0 / factor; 20];
        let first: Vec<Vec<f64>> = (0..4).map(|_| block(1.0)).collect();
        let second: Vec<Vec<f64>> = [1.05, 0.96, 1.04, 0.97].map(block).to_vec();
        let (_, (low, high)) = speedup(&first, &second);
        assert!(low < 1.0 && high > 1.0, "{low} {high}");
        let (_, (low, _)) = speedup(&first, &[1.05, 1.06, 1.04, 1.07].map(block));
        assert!(low > 1.03, "{low}");
    }

    #[test]
    fn quartiles() {
        let series = series(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((series.lower_quartile, series.median, series.upper_quartile), (2.0, 3.0, 4.0));
    }
}
