//! What passes do, remembered.
//!
//! A pass is deterministic: the same pass on exactly the same program gives the same program, or
//! fails in the same way. So it need run only once. [`Transitions`] keeps what came out, in memory
//! up to a bound and, if a [`Config`] names a file, on disk, where all processes and all later
//! runs share it.
//!
//! - Every entry belongs to an *engine*, the text that identifies the compiler, its version and its
//!   pass table. Entries of another engine are never seen.
//! - Everything here may be forgotten: a missing entry costs the time to run the pass again. An
//!   outcome may be known whose state is not, and the other way round.
//! - The disk never gets in the way: entries are written by a thread of their own, and a full,
//!   locked or broken disk ends the writing ([`Stats::disk_error`]), not the work.
//! - The file is an SQLite database with a write-ahead log, which stays whole when a process is
//!   killed at any moment. It must lie on a local disk, because the log is shared memory.
//!
//! ```
//! use xla_gym_protocol::{Fingerprint, PassId};
//! use xla_gym_transitions::{Config, Outcome, Transitions};
//!
//! let known = Transitions::open(&Config::default(), "xla 1.2.3")?;
//! let (before, pass, after) = (Fingerprint(1), PassId(7), Fingerprint(2));
//! assert_eq!(known.outcome(before, pass), None);
//! known.add(before, pass, Outcome::Leads(after));
//! assert_eq!(known.outcome(before, pass), Some(Outcome::Leads(after)));
//! # Ok::<(), xla_gym_transitions::TransitionsError>(())
//! ```

#![forbid(unsafe_code)]

mod disk;
mod error;
mod export;
mod file;
mod known;
mod memory;
mod queue;
mod transitions;
mod writer;

pub use error::TransitionsError;
pub use export::Names;
pub use known::{Failure, FailureKind, Outcome, State};
pub use transitions::{Config, Stats, Transitions};
pub use xla_gym_shared_file::FileError;
