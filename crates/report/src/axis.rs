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
        let (low, high) = range(values);
        Axis::from_to(if low >= 0.0 && low <= high / 2.0 { 0.0 } else { low }, high, whole)
    }

    /// An axis for ratios, of which 0 is nothing special: it has room for all `values` and for 1,
    /// and ends at round numbers.
    pub fn of_ratios(values: impl IntoIterator<Item = f64>) -> Axis {
        let (low, high) = range(values.into_iter().chain([1.0]));
        Axis::from_to(low, high, false)
    }

    fn from_to(mut low: f64, mut high: f64, whole: bool) -> Axis {
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

    /// The same axis, but it ends at `high`, which may lie between two marks.
    pub fn ending_at(self, high: f64) -> Axis {
        if high > self.low { Axis { high, ..self } } else { self }
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
        let count = ((self.high - self.low) / self.step + 1e-6).floor() as usize;
        (0..=count.min(20)).map(|index| self.low + self.step * index as f64).collect()
    }

    /// The marks, with as many decimals as the step between them needs.
    pub fn labels(&self) -> Vec<String> {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let label = |mark: f64| {
            let size = format!("{:.decimals$}", mark.abs());
            // What rounds to 0 has no sign.
            let sign = if mark < 0.0 && size.contains(|c: char| ('1'..='9').contains(&c)) {
                "−"
            } else {
                ""
            };
            format!("{sign}{size}")
        };
        self.marks().into_iter().map(label).collect()
    }
}

/// An axis on which equal distances are equal ratios. All its values are above 0.
#[derive(Clone, Copy, Debug)]
pub struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// An axis between two places with room for all `values`, with a little to spare.
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> LogAxis {
        let (low, high) = range(values.into_iter().filter(|value| *value > 0.0));
        let (low, high) = if low > 0.0 { (low, high) } else { (1.0, 10.0) };
        let spare = (high / low).powf(0.04).max(1.1);
        LogAxis { low: low / spare, high: high * spare, from, to }
    }

    /// The place of a value.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + (self.to - self.from) * share
    }

    /// Round values to be written below it: powers of ten, and 2 and 5 times those where they
    /// are few.
    pub fn marks(&self) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |digits: &[f64]| -> Vec<f64> {
            let marks =
                powers.clone().flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)));
            marks.filter(|mark| (self.low..=self.high).contains(mark)).collect()
        };
        let (tens, some) = (of(&[1.0]), of(&[1.0, 2.0, 5.0]));
        match (tens.len(), some.len()) {
            (5.., _) => tens,
            (_, 2..) => some,
            // Less than a factor of two or so: its ends say more than a single mark.
            _ => vec![(self.low * 1.05).ceil(), (self.high / 1.05).floor()],
        }
    }
}

/// The least and the greatest of the values that are finite; 0 and 1 if there are none.
fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite
        .map(|value| (value, value))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or((0.0, 1.0))
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
    use super::{Axis, LogAxis};

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
    fn labels_have_the_decimals_that_they_need() {
        let check = |values: [f64; 2], first: &str, last: &str| {
            let labels = Axis::around(values, false).labels();
            assert_eq!((labels[0].as_str(), labels.last().unwrap().as_str()), (first, last));
        };
        check([0.9, 1.3], "0.9", "1.3");
        check([0.98, 1.03], "0.98", "1.03");
        check([-0.4, 2.0], "−0.5", "2.0");
        check([0.0, 700.0], "0", "700");
    }

    #[test]
    fn an_axis_may_end_between_marks() {
        let axis = Axis::around([0.0, 410.0], true).ending_at(410.0).between(0.0, 1.0);
        assert_eq!(axis.at(410.0), 1.0);
        assert_eq!(axis.marks(), [0.0, 100.0, 200.0, 300.0, 400.0]);
    }

    #[test]
    fn ratios_need_no_zero() {
        let axis = Axis::of_ratios([0.45, 0.9]);
        assert_eq!(axis.labels().first().map(String::as_str), Some("0.4"));
        assert_eq!(axis.labels().last().map(String::as_str), Some("1.0"));
    }

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let axis = LogAxis::around([10.0, 1000.0, 0.0], 100.0, 500.0);
        let [low, middle, high] = [10.0, 100.0, 1000.0].map(|value| axis.at(value));
        assert!((middle - low - (high - middle)).abs() < 1e-9);
        assert!(low >= 100.0 && high <= 500.0);
        assert_eq!(axis.marks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        for values in [vec![], vec![64.0], vec![1.0], vec![60.0, 70.0], vec![1.0, 1e9]] {
            let axis = LogAxis::around(values.iter().copied(), 0.0, 1.0);
            assert!(!axis.marks().is_empty() && axis.marks().len() < 12, "{values:?}");
            assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.at(*value))));
        }
    }

    #[test]
    fn it_begins_at_zero_only_where_that_is_cheap() {
        assert_eq!(Axis::around([10.0, 100.0], true).low(), 0.0);
        assert_eq!(Axis::around([410.0, 512.0], true).low(), 400.0);
    }
}
