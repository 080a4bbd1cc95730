//! Runs compilers in worker processes and survives whatever they do.
//!
//! An [`Engine`] starts one worker process and keeps it as a stem: every other worker is forked
//! from it in about a millisecond. A [`Session`] is one program in one worker, on which passes
//! are applied. When a pass aborts, hangs, runs out of memory or fails half-way, the session
//! goes back to the state before that pass and stays usable; the pair (state, pass) goes into
//! the [`Quarantine`], so that the next attempt costs nothing.
//!
//! A session's state is its source plus its list of passes. Every lost worker is rebuilt by
//! replaying that list, from a *frozen* fork of an earlier state where there is one.
//!
//! Invariants: this crate links no compiler; no worker's death becomes the caller's.

mod engine;
mod error;
mod interrupt;
mod quarantine;
mod scratch;
mod session;
mod source;
mod spawn;
mod worker;

pub use engine::{Engine, EngineConfig, default_limits, memory_for_running};
pub use error::{Death, EngineError, PassError, PassFailure};
pub use interrupt::{interrupt_if, interrupted};
pub use quarantine::{Quarantine, QuarantineEntry};
pub use scratch::{Compiled, Scratch};
pub use session::{Applied, Session};
pub use source::{Source, SourceError};
pub use xla_gym_common::{cores, on_all_cores};
pub use xla_gym_protocol as protocol;
