//! The rules of the house, as tests.
//!
//! - [`graph`]: which crate may depend on which. Dependencies point one way, and a general crate
//!   depends on no compiler.
//! - [`words`]: which crate may know a compiler. A general one does not even speak of it.
//!
//! `cargo run -p xla-gym-house` lowers the ceilings of words to today's counts.

#![forbid(unsafe_code)]

pub mod graph;
pub mod rooms;
pub mod words;

use std::path::{Path, PathBuf};

/// The root of the workspace that this crate stands in.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
