//! Means of ratios, and how sure they are.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// No ratio enters a geometric mean below this: it knows neither 0 nor less, and a ratio just
/// above 0 must not weigh more than one below it.
pub const FLOOR: f64 = 0.01;

/// How often graphs and seeds are drawn anew.
const RESAMPLES: usize = 1000;

/// A value and its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// Logarithms of ratios: a row for each graph, a column for each seed.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    rows: Vec<Vec<Option<f64>>>,
}

impl Grid {
    /// Of rows of ratios, which have all the same length. Rows without a ratio are left out.
    pub fn of(rows: impl IntoIterator<Item = Vec<Option<f64>>>) -> Grid {
        let logarithm = |ratio: Option<f64>| ratio.map(|ratio| ratio.max(FLOOR).ln());
        let rows = rows.into_iter().filter(|row| row.iter().any(Option::is_some));
        Grid { rows: rows.map(|row| row.into_iter().map(logarithm).collect()).collect() }
    }

    /// The number of rows.
    pub fn graphs(&self) -> usize {
        self.rows.len()
    }

    /// For each seed the geometric mean over graphs, and of those the mean; with an interval by
    /// bootstrap over graphs and over seeds. It is always the same for the same numbers.
    pub fn interval(&self) -> Option<Interval> {
        let seeds = self.rows.first()?.len();
        let all = |count: usize| (0..count).collect::<Vec<_>>();
        let value = self.mean(&all(self.graphs()), &all(seeds))?;
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut draw = |count: usize| -> Vec<usize> {
            (0..count).map(|_| rng.random_range(0..count)).collect()
        };
        let mut means: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let graphs = draw(self.graphs());
                self.mean(&graphs, &draw(seeds))
            })
            .collect();
        means.sort_by(f64::total_cmp);
        Some(Interval { value, low: quantile(&means, 0.025), high: quantile(&means, 0.975) })
    }

    /// Over these graphs and seeds, each as often as it is named.
    fn mean(&self, graphs: &[usize], seeds: &[usize]) -> Option<f64> {
        let (mut total, mut count) = (0.0, 0.0);
        for &seed in seeds {
            // A plain loop: it runs a thousand times for every figure, also in tests.
            let (mut sum, mut known) = (0.0, 0.0);
            for &graph in graphs {
                if let Some(logarithm) = self.rows[graph][seed] {
                    sum += logarithm;
                    known += 1.0;
                }
            }
            if known > 0.0 {
                total += f64::exp(sum / known);
                count += 1.0;
            }
        }
        (count > 0.0).then(|| total / count)
    }
}

/// The middle of some values; nothing if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| quantile(&values, 0.5))
}

/// Of sorted values, of which there is at least one.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_geometric_over_graphs_and_plain_over_seeds() {
        let grid = Grid::of([
            vec![Some(1.0), Some(4.0)],
            vec![Some(4.0), Some(1.0)],
            vec![None, None],
            vec![Some(2.0), Some(16.0)],
        ]);
        let expected = (2.0 + 4.0) / 2.0;
        let interval = grid.interval().unwrap();
        assert!((interval.value - expected).abs() < 1e-12);
        assert!(interval.low >= 1.0 && interval.low < expected);
        assert!(interval.high > expected && interval.high <= 16.0);
        assert_eq!(grid.graphs(), 3);
        assert_eq!(grid.interval(), Some(interval), "the same numbers, the same interval");
    }

    #[test]
    fn what_is_missing_counts_for_nothing() {
        let grid = Grid::of([vec![Some(2.0), None], vec![Some(8.0), Some(3.0)]]);
        assert!((grid.interval().unwrap().value - 3.5).abs() < 1e-12);
        assert_eq!(Grid::of([vec![None]]).interval(), None);
        assert_eq!(Grid::default().interval(), None);
    }

    #[test]
    fn nothing_is_below_the_floor() {
        let value = |ratio| Grid::of([vec![Some(ratio)]]).interval().unwrap().value;
        for ratio in [-3.0, 0.0, 0.001] {
            assert!((value(ratio) - FLOOR).abs() < 1e-12);
        }
    }

    /// Of means of 40 graphs drawn from one distribution, about 95 of 100 intervals hold the true
    /// mean; a bootstrap over graphs of this size may miss a few more.
    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut held = 0;
        for _ in 0..100 {
            // The mean of a uniform logarithm between −0.5 and 0.5 is 0.
            let grid = Grid::of((0..40).map(|_| vec![Some(rng.random_range(-0.5..0.5f64).exp())]));
            let Interval { low, high, .. } = grid.interval().unwrap();
            held += usize::from(low <= 1.0 && 1.0 <= high);
        }
        assert!((86..=100).contains(&held), "{held} of 100");
    }

    /// Seeds that differ widen the interval, even where all graphs of a seed agree.
    #[test]
    fn seeds_count() {
        let row = || vec![Some(0.8), Some(1.0), Some(1.2)];
        let Interval { value, low, high } = Grid::of((0..50).map(|_| row())).interval().unwrap();
        assert!((value - 1.0).abs() < 1e-9 && low < 0.9 && high > 1.1, "{low} {high}");
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([3.0, 1.0]), Some(2.0));
        assert_eq!(median([]), None);
    }
}
