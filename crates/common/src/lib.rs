//! What every crate may need and none should write again.
//!
//! - Work on all cores: [`on_all_cores`], [`each_on_all_cores`], [`cores`], [`lock`].
//! - Files: where what is remembered lies ([`state_dir`]), and how a result is written so that it is
//!   there whole or not at all ([`write_whole`]).
//! - Numbers that are the same in every process: [`fnv64`], [`fnv128`], [`splitmix`].
//! - Text for people: [`Table`], [`grouped`], and what strangers wrote, harmless for a terminal
//!   ([`plain`], [`plain_line`]).
//!
//! Invariants: this crate knows no other crate of the workspace, and no compiler.

#![forbid(unsafe_code)]

mod cores;
mod fnv;
mod grouped;
mod lock;
mod plain;
mod splitmix;
mod state_dir;
mod table;
mod whole;

pub use cores::{cores, each_on_all_cores, on_all_cores};
pub use fnv::{fnv64, fnv128};
pub use grouped::grouped;
pub use lock::lock;
pub use plain::{plain, plain_line};
pub use splitmix::splitmix;
pub use state_dir::{NoStateDir, state_dir};
pub use table::{Table, shortened};
pub use whole::write_whole;
