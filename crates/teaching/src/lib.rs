//! How a policy is taught.
//!
//! A search finds good orders for training graphs ([`demonstrations`]). Their passes are named alike
//! ([`canonical`]), and a policy learns them by behaviour cloning. It knows good orders alone then, and
//! not how to go on after a mistake; so searches begin where it may have gone astray, and it learns
//! from those too (DAgger, with a search as the expert). What cannot be taken back comes last
//! ([`late_copies`]). Policies of several seeds become one. [`teach`] does all of it.
//!
//! Invariants: what is in a file is done and is not done again; what is learnt depends on the
//! configuration and the seed alone, not on the number of cores or on how often it was interrupted
//! (unless searches are limited by time); every demonstration was run beside its program.

#![forbid(unsafe_code)]

mod astray;
mod by_program;
mod canonical;
mod demonstrations;
mod error;
mod late_copies;
mod lesson;
mod program;
mod proof;
mod teach;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use xla_gym_engine::EngineConfig;
use xla_gym_profile::{Profile, Spec, StartPasses};

pub use canonical::{Renamed, canonical};
pub use demonstrations::{Searches, demonstrations};
pub use error::TeachError;
pub use late_copies::{Postponed, late_copies};
pub use teach::{Dagger, Taught, Teaching, teach};

/// What does not change a result.
pub struct Setting<'a> {
    /// What to know of the compiler.
    pub profile: Arc<dyn Profile>,
    /// How to start the compiler.
    pub engine: EngineConfig,
    /// Raised by whoever wants it to end. What is done stays done, and the same call goes on from
    /// there.
    pub stop: Arc<AtomicBool>,
    /// Who is told how far it is.
    pub watch: &'a dyn Watch,
}

impl Setting<'_> {
    /// An error if it is to end.
    fn go_on(&self) -> Result<(), TeachError> {
        if self.stop.load(Ordering::Relaxed) { Err(TeachError::Interrupted) } else { Ok(()) }
    }
}

/// The starts from which orders are searched for: the program as it came, and, if there is one, after what
/// the compiler's pipeline does in any case. By name; nothing for the first.
fn starts(spec: &Spec) -> Vec<Option<String>> {
    let prepared = spec.starts.iter().find(|start| start.passes == StartPasses::AsPipeline);
    let prepared = prepared.map(|start| Some(start.name.to_owned()));
    std::iter::once(None).chain(prepared).collect()
}

/// Who watches. Called from any thread.
pub trait Watch: Sync {
    /// One of several steps begins.
    fn step(&self, _number: usize, _of: usize, _what: &str) {}
    /// What is being done in it.
    fn doing(&self, _what: &str) {}
    /// So many things will be done.
    fn counting(&self, _total: u64, _unit: &str) {}
    /// One of them is done.
    fn advance(&self) {}
    /// What should be known also when it is over.
    fn say(&self, _words: &str) {}
}

impl Watch for () {}
