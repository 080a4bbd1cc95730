//! The best pass order for a program: found, proven, shortened, measured and explained.
//!
//! [`optimize`] is the main job of the software. It searches for orders, sends the best through the
//! compiler's real pipeline in the place of its own passes, and takes the one that does best there by
//! an [`Objective`]. Where time is the objective, candidates are compiled and raced.
//!
//! Invariants: an answer is never worse than the default by its objective; it is verified, compiled
//! and run beside the original before it is given; what could not be proven is dropped and named.

#![forbid(unsafe_code)]

mod accept;
mod apply;
mod clock;
mod error;
mod explain;
mod fast;
mod find;
mod front;
mod improve;
mod in_time;
mod objective;
mod optimize;
mod plan;
mod race;
mod reduced;
mod remember;
mod shorten;
mod stats;
mod task;
mod track;
mod vary;
mod watch;

pub use apply::{Applied, apply, check_fit, plan_of};
pub use error::OptimizeError;
pub use explain::{attribute, explain, explanation, summary, timeline};
pub use objective::Objective;
pub use optimize::optimize;
pub use plan::{Judge, Judged, Plan, walk};
pub use race::compare_speed;
pub use reduced::reduced;
pub use remember::{Remembered, optimize_with_store};
pub use shorten::shorten;
pub use stats::{median, series, speedup};
pub use task::{Answer, MEMORY_GROWTH, Proven, Task};
pub use watch::Watch;
