//! Values with the names that the compiler's worker gives them.

use serde::{Serialize, Serializer};
use xla_gym_engine::protocol::{Cost, Counts, Hello, Metric};

/// Values with their names, in the worker's order; an object in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(Vec<(String, T)>);

/// What was counted.
pub fn counts(hello: &Hello, counts: &Counts) -> Named<u64> {
    Named::new(&hello.counts, counts)
}

/// What was estimated.
pub fn costs(hello: &Hello, costs: &Cost) -> Named<f64> {
    Named::new(&hello.costs, costs)
}

impl<T: Copy> Named<T> {
    fn new(metrics: &[Metric], values: &[T]) -> Named<T> {
        Named(
            metrics.iter().map(|metric| metric.name.clone()).zip(values.iter().copied()).collect(),
        )
    }

    /// One after the other, as people read them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// The primary one, which is the first.
    pub fn primary(&self) -> Option<T> {
        self.0.first().map(|(_, value)| *value)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
