//! Policies and searches side by side, at equal numbers of pass runs.
//!
//! A [`Contestant`] is a trained policy that walks once, a search that a policy guides, or a search
//! that has learnt nothing. [`Contest::compete`] lets one of them loose on a graph and says what came
//! of it, beside XLA's own order.
//!
//! Invariants: nobody gets more passes than the budget; what is counted is the best state on the way,
//! and where a trajectory ended is told too; a result of which XLA's real pipeline makes nothing is
//! told as such.

#![forbid(unsafe_code)]

mod contest;
mod contestant;

pub use contest::{Contest, ContestError};
pub use contestant::{Contestant, Way};
