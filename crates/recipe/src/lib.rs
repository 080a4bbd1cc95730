//! What to do with a program, what speaks for it, and a store of the best that is known.
//!
//! A [`Recipe`] lives in a file of its own ([`Recipe::write`], [`Recipe::read`]) or in a
//! [`Store`]: one file for everything that is known, which many processes may share. Between
//! machines, recipes travel as lines of JSON ([`Store::export`], [`Store::import`]).

#![forbid(unsafe_code)]

mod believable;
mod database;
mod error;
mod exchange;
mod gain;
mod recipe;
mod store;
mod written;

pub use believable::Doubt;
pub use error::{RecipeError, StoreError};
pub use exchange::Imported;
pub use gain::gain_of;
pub use recipe::{
    Control, Evidence, Paired, Program, Recipe, SearchRecord, Series, StageEvidence, Timing,
    VERSION,
};
pub use store::{Store, StoreLimit};
pub use written::{Unreadable, decode};
pub use xla_gym_shared_file::FileError;
