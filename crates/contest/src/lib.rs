//! Policies and searches side by side, at equal numbers of pass runs.
//!
//! A [`Contestant`] is a trained policy that walks once, a search that a policy guides, or a search
//! that has learnt nothing. [`Contest::compete`] lets one of them loose on a graph and says what came
//! of it, beside XLA's own order.
//!
//! The order ratio comes from the program as emitted. The legal ratio and the kernels come from a
//! second attempt with the same budget, which begins at the program made legal by XLA's own passes:
//! operations that legalisation adds later could not be tidied up.
//!
//! Invariants: nobody gets more passes than the budget; what is counted is the best state on the way,
//! and where a trajectory ended is told too; a result counts only if it was run beside the program as
//! emitted and its outputs were found equal. What XLA's real pipeline refuses, what differs and what
//! cannot be compared counts as one that removed nothing.

#![forbid(unsafe_code)]

mod contest;
mod contestant;
mod earlier;
mod header;
mod records;

pub use contest::{Contest, ContestError};
pub use contestant::{Contestant, Way};
pub use header::{LEGAL, header};
pub use records::{Records, RecordsError};
pub use xla_gym_proof::{Options, Outputs};
