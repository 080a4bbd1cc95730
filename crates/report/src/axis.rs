//! Where values lie on an axis, and which of them are written beside it.

/// A straight axis from `low` at `from` to `high` at `to`.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    /// An axis that has room for all `values` and ends at round numbers. It begins at 0 if that
    /// wastes no more than half of it. `whole`: its marks are whole numbers.
    pub fn around(values: impl IntoIterator<Item = f64>, whole: bool) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if low >= 0.0 && low <= high / 2.0 {
            low = 0.0;
        }
        // A single value gets some room, and more of it where it is so large that one less or
        // one more would be the same number.
        if high - low <= high.abs() * 1e-12 {
            let room = (high.abs() * 1e-9).max(if whole { 1.0 } else { high.abs() * 0.01 });
            let room = if room > 0.0 { room } else { 1.0 };
            low = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
            high += room;
        }
        let step = round_step((high - low) / 7.0);
        let step = if whole { step.max(1.0) } else { step };
        let low = (low / step).floor() * step;
        let high = (high / step).ceil() * step;
        Axis { low, high, from: 0.0, to: 1.0, step }
    }

    /// The same axis drawn between two places.
    pub fn between(self, from: f64, to: f64) -> Axis {
        Axis { from, to, ..self }
    }

    /// The place of a value.
    pub fn at(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * (value - self.low) / (self.high - self.low)
    }

    /// Where it begins.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The values to be written beside it.
    pub fn marks(&self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count.min(20)).map(|index| self.low + self.step * index as f64).collect()
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn an_axis_has_room_for_everything() {
        let cases: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[5.0],
            &[1.0, 2.0],
            &[431.0, 512.0, 412.0],
            &[u64::MAX as f64],
            &[0.0, u64::MAX as f64],
            &[-3.0, 4.0],
        ];
        for values in cases {
            for whole in [true, false] {
                let axis = Axis::around(values.iter().copied(), whole).between(10.0, 20.0);
                for value in values {
                    let place = axis.at(*value);
                    assert!((10.0..=20.0).contains(&place), "{values:?}: {value} at {place}");
                }
                let marks = axis.marks();
                assert!((2..=9).contains(&marks.len()), "{values:?}: {marks:?}");
                assert!(marks.windows(2).all(|pair| pair[0] < pair[1]), "{marks:?}");
            }
        }
    }

    #[test]
    fn it_begins_at_zero_only_where_that_is_cheap() {
        assert_eq!(Axis::around([10.0, 100.0], true).low(), 0.0);
        assert_eq!(Axis::around([410.0, 512.0], true).low(), 400.0);
    }
}
