//! One module per command.

pub mod check;
pub mod data;
pub mod default;
pub mod diff;
pub mod exec;
pub mod optimize;
pub mod passes;
pub mod quarantine;
pub mod run;
pub mod score;
pub mod show;
