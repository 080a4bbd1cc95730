//! Reduction beside the reduction by default.

use serde::{Deserialize, Serialize};

/// A figure at the start, after the given passes, and by default.
///
/// ```
/// use xla_gym_profile::Ratio;
/// assert_eq!(Ratio { initial: 100, default: 50, result: 25 }.value(), Some(1.5));
/// assert_eq!(Ratio { initial: 100, default: 120, result: 25 }.value(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// `I`.
    pub initial: u64,
    /// `D`.
    pub default: u64,
    /// `R`.
    pub result: u64,
}

impl Ratio {
    /// Reduction by the given passes over reduction by default: `(I − R) / (I − D)`. It means nothing,
    /// and is not given, where the default reduces nothing.
    pub fn value(&self) -> Option<f64> {
        let reduction = |end: u64| self.initial as f64 - end as f64;
        (reduction(self.default) > 0.0).then(|| reduction(self.result) / reduction(self.default))
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn a_ratio_needs_a_default_that_reduces() {
        let value = |initial, default, result| Ratio { initial, default, result }.value();
        assert_eq!(value(100, 50, 25), Some(1.5));
        assert_eq!(value(100, 50, 110), Some(-0.2));
        assert_eq!(value(100, 100, 25), None);
        assert_eq!(value(100, 120, 25), None);
    }
}
