//! The loop of a compiler worker.
//!
//! A worker binary implements [`Compiler`] for its compiler and calls [`serve`]; everything
//! else (messages, limits, forking, dying with a last word) is here, once, for every compiler.
//!
//! Invariants: the loop starts no thread, so that the process can be forked; a program whose
//! pass failed is never touched again; a worker whose client has gone away ends.

mod compiler;
mod dying;
mod inherit;
mod limits;
mod serve;

pub use compiler::{Compiler, Description, Stages, failed, unsupported};
pub use dying::exit_out_of_memory;
pub use serve::serve;
