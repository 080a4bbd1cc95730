//! Which passes look promising: the slot for a trained policy.

use std::{collections::HashMap, fmt::Debug};

use xla_gym_engine::protocol::PassId;
use xla_gym_env::Walk;

/// Which passes look promising where a walk stands. Every method asks it, if there is one.
pub trait Policy: Debug + Send + Sync {
    /// A weight for each of the passes; not negative. What has none is not chosen.
    fn weigh(&self, walk: &Walk, passes: &[PassId]) -> Vec<f64>;
}

/// Which pass followed which in orders that were good elsewhere.
///
/// ```
/// use std::sync::Arc;
///
/// use xla_gym_engine::protocol::PassId;
/// use xla_gym_search::{Habits, Policy};
///
/// let good = [vec![PassId(3), PassId(1)], vec![PassId(3), PassId(2)]];
/// let policy: Arc<dyn Policy> = Arc::new(Habits::learn(good.iter().map(Vec::as_slice)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Habits {
    followed: HashMap<(Option<PassId>, PassId), f64>,
}

impl Habits {
    /// Learns from good orders.
    pub fn learn<'a>(orders: impl IntoIterator<Item = &'a [PassId]>) -> Habits {
        let mut followed = HashMap::new();
        for order in orders {
            let mut last = None;
            for &pass in order {
                *followed.entry((last, pass)).or_default() += 1.0;
                last = Some(pass);
            }
        }
        Habits { followed }
    }
}

impl Policy for Habits {
    fn weigh(&self, walk: &Walk, passes: &[PassId]) -> Vec<f64> {
        let last = walk.path().last();
        let seen = |pass: &PassId| self.followed.get(&(last, *pass)).copied().unwrap_or_default();
        let total: f64 = passes.iter().map(seen).sum();
        // Half of the weight stays with what was never seen to follow.
        let spread = (total / passes.len().max(1) as f64).max(1.0 / passes.len().max(1) as f64);
        passes.iter().map(|pass| seen(pass) + spread).collect()
    }
}
