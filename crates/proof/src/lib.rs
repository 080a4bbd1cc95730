//! Whether where a walk leads still computes what the program as emitted does.
//!
//! A gain counts only if its outputs were run and found equal. A [`Prover`] does that for evaluations,
//! demonstrations and training alike: it makes one reference for each program, compares each state
//! once, and says which pass is to blame where outputs differ.
//!
//! Invariant: what was not run is never called equal, except for a program in which nothing changed.

#![forbid(unsafe_code)]

mod bisection;
mod prover;

pub use bisection::first_wrong;
pub use prover::{Guilty, Pipeline, Proof, Prover};
pub use xla_gym_oracle::{Options, ReferenceKind};
pub use xla_gym_records::Outputs;
