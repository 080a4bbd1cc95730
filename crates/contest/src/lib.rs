//! Policies and searches side by side, at equal numbers of pass runs.
//!
//! A [`Contestant`] is a trained policy that walks once, a search that a policy guides, or a search
//! that has learnt nothing. [`Contest::compete`] lets one of them loose on a graph and says what came
//! of it, beside the compiler's own order.
//!
//! The first stage of a compiler's profile comes from the program as it came. The others come from a
//! second attempt with the same budget, which begins after what the compiler's pipeline does in any case:
//! what that adds later could not be tidied up.
//!
//! Invariants: nobody gets more passes than the budget; what is counted is the best state on the way,
//! and where a trajectory ended is told too; a result counts only if it was run beside the program as
//! emitted and its outputs were found equal. What the compiler's pipeline refuses, what differs and what
//! cannot be compared counts as one that removed nothing.

#![forbid(unsafe_code)]

mod attempt;
mod contest;
mod contestant;
mod earlier;
mod header;
mod records;

pub use contest::{Contest, ContestError};
pub use contestant::{Contestant, Way};
pub use header::{END, header};
pub use records::{Records, RecordsError};
pub use xla_gym_proof::{Options, Outputs};
