//! What passes cost on one program, as it is seen, and what they will cost by that.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// How much the last run of a pass counts beside all before it.
const LAST: f64 = 0.5;

/// A pass is too slow that is expected to take more than this share of the time that is left.
const SHARE: f64 = 0.1;

/// Faster passes are never too slow.
const ALWAYS: Duration = Duration::from_millis(50);

/// What passes cost on one program. A search that has a time limit chooses by it, and so depends on
/// the machine; one that counts passes does not look at it.
#[derive(Debug, Default)]
pub struct Costs {
    passes: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Seconds that each pass is expected to take, if it ran; by action.
    expected: Vec<Option<f64>>,
    /// Seconds and number of all runs.
    total: (f64, u64),
    record: Predictions,
}

/// How well costs were predicted: for passes that had run before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// Runs.
    pub runs: u64,
    /// Seconds that they were expected to take together.
    pub expected: f64,
    /// Seconds that they took.
    pub real: f64,
    /// Runs that took neither more than twice nor less than half of what was expected.
    pub within_two: u64,
}

impl Costs {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass ran, for so long.
    pub fn saw(&self, action: usize, took: Duration) {
        let took = took.as_secs_f64();
        let mut table = self.table();
        if table.expected.len() <= action {
            table.expected.resize(action + 1, None);
        }
        if let Some(expected) = table.expected[action] {
            table.record.runs += 1;
            table.record.expected += expected;
            table.record.real += took;
            table.record.within_two += u64::from(took <= 2.0 * expected && took >= 0.5 * expected);
        }
        let before = table.expected[action].unwrap_or(took);
        table.expected[action] = Some(before * (1.0 - LAST) + took * LAST);
        table.total.0 += took;
        table.total.1 += 1;
    }

    /// What a pass is worth beside others that promise the same: near 1 if it is as fast as most, less
    /// if it is slower. 0 if it is too slow for the time that is left.
    pub fn worth(&self, action: usize, left: Duration) -> f64 {
        let table = self.table();
        let Some(expected) = table.expected.get(action).copied().flatten() else { return 1.0 };
        if expected > ALWAYS.as_secs_f64() && expected > SHARE * left.as_secs_f64() {
            return 0.0;
        }
        let usual = table.total.0 / table.total.1.max(1) as f64;
        usual / (usual + expected).max(f64::MIN_POSITIVE) * 2.0
    }

    /// How well costs were predicted so far.
    pub fn predictions(&self) -> Predictions {
        self.table().record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_passes_are_worth_less_and_nothing_when_time_is_short() {
        let costs = Costs::default();
        let (long, short) = (Duration::from_secs(100), Duration::from_secs(20));
        assert_eq!(costs.worth(0, long), 1.0, "nothing is known");
        for _ in 0..4 {
            costs.saw(0, Duration::from_millis(10));
        }
        costs.saw(1, Duration::from_secs(4));
        assert!(costs.worth(1, long) < 0.5 * costs.worth(0, long));
        assert!(costs.worth(1, long) > 0.0);
        assert_eq!(costs.worth(1, short), 0.0);
        assert!(costs.worth(0, Duration::ZERO) > 0.0, "fast ones are never too slow");
        assert_eq!(costs.worth(2, short), 1.0);
    }

    #[test]
    fn predictions_are_held_against_what_came() {
        let costs = Costs::default();
        for millis in [10, 10, 11, 100] {
            costs.saw(0, Duration::from_millis(millis));
        }
        let record = costs.predictions();
        assert_eq!((record.runs, record.within_two), (3, 2));
        assert!((record.real - 0.121).abs() < 1e-9 && record.expected < 0.05, "{record:?}");
    }
}
