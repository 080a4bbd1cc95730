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

/// How much faster the second of two series is that were measured in turn, with a 95% confidence
/// interval: the middle of the ratios of neighbours, so that what slows the machine for a while
/// slows both; the interval by bootstrap.
pub fn speedup(first: &[f64], second: &[f64]) -> (f64, (f64, f64)) {
    let ratios: Vec<f64> =
        first.iter().zip(second).map(|(first, second)| (first / second).ln()).collect();
    if ratios.is_empty() {
        return (f64::NAN, (f64::NAN, f64::NAN));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut middles: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<f64> =
                ratios.iter().map(|_| ratios[rng.random_range(0..ratios.len())]).collect();
            median(&drawn)
        })
        .collect();
    middles.sort_by(f64::total_cmp);
    let interval = (quantile(&middles, 0.025).exp(), quantile(&middles, 0.975).exp());
    (median(&ratios).exp(), interval)
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
        let (ratio, (low, high)) = speedup(&first, &faster);
        assert!(low > 1.0 && (ratio - 10.0 / 9.0).abs() < 0.03, "{ratio} {low} {high}");
        let (ratio, (low, high)) = speedup(&first, &same);
        assert!(low <= 1.01 && high >= 0.99, "{ratio} {low} {high}");
    }

    #[test]
    fn quartiles() {
        let series = series(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((series.lower_quartile, series.median, series.upper_quartile), (2.0, 3.0, 4.0));
    }
}
