//! One module per command.

pub mod apply;
pub mod check;
pub mod data;
pub mod default;
pub mod diff;
pub mod eval;
pub mod exec;
pub mod explain;
pub mod one_program;
pub mod optimize;
pub mod passes;
pub mod quarantine;
pub mod recipes;
pub mod report;
pub mod run;
pub mod score;
pub mod show;
pub mod teach;
pub mod train;
