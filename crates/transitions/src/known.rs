//! What is remembered: states, and what passes make of them.
//!
//! These types are stored on disk. A change to them needs a new `SCHEMA` in `file.rs`, except for
//! a new [`FailureKind`] at the end, and for what changes with the protocol: its version is part of
//! the text that identifies an engine, and entries of other engines are not seen.

use std::fmt;

use serde::{Deserialize, Serialize};
use xla_gym_protocol::{Cost, Counts, Fingerprint};

/// What is known of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its exact identity.
    pub id: Fingerprint,
    /// Its sizes.
    pub counts: Counts,
    /// How many instructions it has of each opcode; empty if nobody asked.
    pub opcodes: Vec<u32>,
    /// The compiler's estimate of work, if somebody asked.
    pub cost: Option<Cost>,
}

impl State {
    /// Whether no later look at the state could add anything.
    pub(crate) fn is_complete(&self) -> bool {
        self.cost.is_some() && !self.opcodes.is_empty()
    }
}

/// What comes of a pass on a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The state after the pass; the same as before, if the pass changed nothing.
    Leads(Fingerprint),
    /// The pass fails.
    Fails(Failure),
}

/// Why a pass gives no state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// A sentence about it.
    pub message: String,
}

/// The ways in which a pass fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The compiler returned an error.
    Refused,
    /// The compiler crashed.
    Died,
    /// The pass needed more memory than it was allowed.
    OutOfMemory,
    /// The pass took longer than it was allowed.
    TimeLimit,
    /// The pass left a program that the compiler's verifier refuses.
    Invalid,
    /// The compiler was killed from outside, again and again.
    Killed,
}

impl FailureKind {
    /// Whether it would happen again on another machine or under less load. What would not is
    /// kept off the disk.
    pub fn repeats(self) -> bool {
        match self {
            FailureKind::Refused | FailureKind::Died | FailureKind::Invalid => true,
            FailureKind::OutOfMemory | FailureKind::TimeLimit | FailureKind::Killed => false,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::Refused => "refused",
            FailureKind::Died => "died",
            FailureKind::OutOfMemory => "out-of-memory",
            FailureKind::TimeLimit => "time-limit",
            FailureKind::Invalid => "invalid",
            FailureKind::Killed => "killed",
        })
    }
}
