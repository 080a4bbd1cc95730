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
//! ```no_run
//! use xla_gym_engine::{Engine, EngineConfig, EngineError, protocol::Observe};
//!
//! let engine = Engine::start(EngineConfig::named("toy")?)?;
//! let mut session = engine.load_file("program.toy")?;
//! for pass in engine.passes(["fold", "dead"])? {
//!     match session.apply(pass, Observe::COUNTS) {
//!         Ok(applied) => println!("changed: {}, then {:?}", applied.changed, applied.observation.counts),
//!         // The session stands where it stood before the pass.
//!         Err(error @ EngineError::Pass(_)) => println!("{error}"),
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
pub use xla_gym_protocol as protocol;
