//! How values are distributed.

use crate::message::Message;

/// Buckets between the least and the greatest value, all of the same width.
const BUCKETS: usize = 30;

/// Counts of values in buckets.
#[derive(Debug)]
pub struct Histogram {
    low: f64,
    high: f64,
    count: usize,
    sum: f64,
    sum_of_squares: f64,
    /// The upper end of each bucket.
    limits: Vec<f64>,
    counts: Vec<f64>,
}

impl Histogram {
    /// Of the finite values among `values`, if there are any.
    pub fn of(values: &[f32]) -> Option<Histogram> {
        let finite = || values.iter().copied().filter(|value| value.is_finite()).map(f64::from);
        let low = finite().reduce(f64::min)?;
        let high = finite().reduce(f64::max)?;
        // Values that are all the same need one bucket, of some width.
        let buckets = if low == high { 1 } else { BUCKETS };
        let width = (high - low) / buckets as f64;
        let mut counts = vec![0.0; buckets];
        for value in finite() {
            let bucket = if width > 0.0 { ((value - low) / width) as usize } else { 0 };
            counts[bucket.min(buckets - 1)] += 1.0;
        }
        let mut limits: Vec<f64> =
            (1..=buckets).map(|bucket| low + width * bucket as f64).collect();
        // Rounding must not leave the greatest value outside.
        limits[buckets - 1] = high;
        Some(Histogram {
            low,
            high,
            count: finite().count(),
            sum: finite().sum(),
            sum_of_squares: finite().map(|value| value * value).sum(),
            limits,
            counts,
        })
    }

    /// Fills a `HistogramProto`.
    pub fn write(&self, message: &mut Message) {
        let numbers = [self.low, self.high, self.count as f64, self.sum, self.sum_of_squares];
        for (field, number) in (1..).zip(numbers) {
            message.double(field, number);
        }
        message.doubles(6, &self.limits);
        message.doubles(7, &self.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_value_is_in_one_bucket() {
        let values: Vec<f32> = (0..300).map(|index| index as f32 / 10.0).collect();
        let histogram = Histogram::of(&values).unwrap();
        assert_eq!(histogram.counts.iter().sum::<f64>(), 300.0);
        assert!(histogram.counts.iter().all(|count| (9.0..=11.0).contains(count)));
        assert_eq!(histogram.limits.len(), BUCKETS);
        assert_eq!(histogram.limits.last(), Some(&f64::from(29.9f32)));
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        assert!(Histogram::of(&[]).is_none());
        assert!(Histogram::of(&[f32::NAN, f32::INFINITY]).is_none());
        let one = Histogram::of(&[2.0, f32::NAN, 2.0]).unwrap();
        assert_eq!((one.low, one.high, one.count, one.sum_of_squares), (2.0, 2.0, 2, 8.0));
        assert_eq!((one.limits, one.counts), (vec![2.0], vec![2.0]));
        let wide = Histogram::of(&[f32::MIN, f32::MAX]).unwrap();
        assert_eq!((wide.counts[0], wide.counts[BUCKETS - 1]), (1.0, 1.0));
    }
}
