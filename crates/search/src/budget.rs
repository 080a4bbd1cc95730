//! How much a search may take.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How much a search may take; whichever ends first.
///
/// ```
/// use xla_gym_search::Budget;
///
/// // Divided among lanes, and nothing is lost.
/// let shares = [0, 1, 2, 3].map(|lane| Budget::passes(10).share(lane, 4));
/// assert_eq!(shares, [Some(3), Some(3), Some(2), Some(2)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Runs of passes. A pass counts once for each state, also if its effect is remembered from
    /// elsewhere, so that methods can be compared whatever is known already.
    pub passes: Option<u64>,
    /// Wall-clock time. With it, results depend on the machine.
    pub time: Option<Duration>,
}

impl Budget {
    /// So many runs of passes.
    pub fn passes(passes: u64) -> Budget {
        Budget { passes: Some(passes), time: None }
    }

    /// The part of one of several lanes.
    pub fn share(&self, lane: u64, lanes: u64) -> Option<u64> {
        self.passes.map(|passes| passes / lanes + u64::from(lane < passes % lanes))
    }

    /// When it is over.
    pub fn deadline(&self, begin: Instant) -> Option<Instant> {
        self.time.and_then(|time| begin.checked_add(time))
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Nothing is left to try.
    Exhausted,
    /// The passes of the budget were run.
    Passes,
    /// The time of the budget is over.
    Time,
    /// The caller wants to stop.
    Interrupted,
}
