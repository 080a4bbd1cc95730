//! What everything is measured by.

use serde::{Deserialize, Serialize};

/// What everything is measured by: what the compiler does if nobody tells it otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// What columns and lines of charts are called: `-Oz`, or `the toy's own`.
    pub label: String,
    /// The same where a sentence speaks of its order: `-Oz`, or `the toy's own order`.
    pub order: String,
}

impl Baseline {
    /// With its two names.
    pub fn new(label: impl Into<String>, order: impl Into<String>) -> Baseline {
        Baseline { label: label.into(), order: order.into() }
    }
}

impl Default for Baseline {
    fn default() -> Baseline {
        Baseline::new("the compiler's own", "the compiler's own order")
    }
}
