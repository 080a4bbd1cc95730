//! What everything above the engine must know of a compiler, as data and a few hooks.
//!
//! The worker says what can be counted of a program. A [`Profile`] says what that is good for: which
//! [`Figure`]s of a result are compared with the compiler's own, where orders begin ([`Start`]), how a
//! result goes through the compiler's own pipeline ([`Finish`]), and in which words to tell people. There
//! is one implementation for each compiler; nothing else above the engine names one.
//!
//! Invariant: this crate knows no compiler.

#![forbid(unsafe_code)]

mod baseline;
mod figures;
mod profile;
mod ratio;
mod score;
mod shell;
mod spec;

pub use baseline::{Baseline, Finished, apply_all, finish, reference};
pub use figures::{Figure, Figures};
pub use profile::{Commands, Profile};
pub use ratio::Ratio;
pub use score::{Score, StageScore, score, start_session};
pub use shell::quoted;
pub use xla_gym_data::Files;
pub use xla_gym_engine::protocol::Finish;

pub use spec::{
    Comparison, FigureSpec, Inlining, Kind, Measure, Source, Spec, Stage, Start, StartPasses, Words,
};
