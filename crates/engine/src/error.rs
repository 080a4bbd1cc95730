//! What can go wrong, by who is to blame.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use xla_gym_protocol::{Failure, FailureKind};

use crate::{quarantine::QuarantineEntry, source::SourceError};

/// How a worker ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Death {
    /// By a signal of its own making: an abort, a segmentation fault.
    Signal {
        /// The signal's number.
        signal: i32,
        /// What the compiler printed last.
        message: String,
    },
    /// It ran into the time limit.
    TimeLimit {
        /// The limit, in milliseconds.
        limit_millis: u64,
        /// How long it worked of that time, if that is known.
        busy_millis: Option<u64>,
    },
    /// It ran into the memory limit.
    OutOfMemory,
    /// It was gone without a word: killed from outside, most likely.
    Killed,
}

impl Death {
    /// Whether the time ran out while the worker did next to nothing: it was stopped, the machine
    /// slept or was busy with others, or it waits for what never comes.
    pub fn is_idle(&self) -> bool {
        match self {
            Death::TimeLimit { limit_millis, busy_millis } => {
                busy_millis.is_none_or(|busy| busy < limit_millis / 4)
            }
            _ => false,
        }
    }

    /// Whether it says something about what the worker did, and not about what happened to it.
    pub fn is_its_own(&self) -> bool {
        *self != Death::Killed && !self.is_idle()
    }

    /// One word for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Death::Signal { .. } => "aborted",
            Death::TimeLimit { .. } => "timed out",
            Death::OutOfMemory => "out of memory",
            Death::Killed => "killed",
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Signal { signal, message } => {
                let name = match *signal {
                    libc::SIGABRT => "aborted",
                    libc::SIGSEGV => "crashed (segmentation fault)",
                    libc::SIGBUS => "crashed (bus error)",
                    libc::SIGFPE => "crashed (arithmetic fault)",
                    libc::SIGILL => "crashed (illegal instruction)",
                    _ => "died of a signal",
                };
                write!(f, "{name}")?;
                if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
            }
            Death::TimeLimit { limit_millis, .. } => {
                write!(f, "did not finish within {:?}", Duration::from_millis(*limit_millis))?;
                if self.is_idle() { write!(f, ", most of which it did not work") } else { Ok(()) }
            }
            Death::OutOfMemory => write!(f, "ran into the memory limit"),
            Death::Killed => write!(f, "ended without a word, as if killed from outside"),
        }
    }
}

/// Why a pass did not take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassFailure {
    /// The compiler returned an error.
    Refused(String),
    /// The worker died of it.
    Died(Death),
    /// It is known to do one of the above to this state; it was not tried.
    Quarantined(Box<QuarantineEntry>),
}

impl PassFailure {
    /// One word for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            PassFailure::Refused(_) => "refused",
            PassFailure::Died(death) => death.kind(),
            PassFailure::Quarantined(_) => "quarantined",
        }
    }
}

impl fmt::Display for PassFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassFailure::Refused(message) => write!(f, "was refused by the compiler: {message}"),
            PassFailure::Died(death) => write!(f, "{death}"),
            PassFailure::Quarantined(entry) => {
                write!(f, "is in quarantine for this state: it {}", entry.what)
            }
        }
    }
}

/// A pass that did not take place. The session is in the state before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pass {pass} {failure}")]
pub struct PassError {
    /// Which pass.
    pub pass: String,
    /// Why.
    pub failure: PassFailure,
}

/// Anything that can go wrong with an engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The worker program is nowhere to be found.
    #[error(
        "the compiler worker {name} was not found (looked at {}): run `make {target}`, or set {variable} to its path",
        looked_at.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    WorkerNotFound {
        /// File name of the worker.
        name: String,
        /// Environment variable that overrides the search.
        variable: String,
        /// Where it was looked for.
        looked_at: Vec<PathBuf>,
        /// The target of the makefile that builds it.
        target: &'static str,
    },
    /// The worker program does not start or does not speak.
    #[error("the compiler worker {} does not start: {message}", path.display())]
    WorkerStart {
        /// The program.
        path: PathBuf,
        /// What happened.
        message: String,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The compiler cannot make a program of the input.
    #[error("{name}: {message}")]
    Load {
        /// The input's name.
        name: String,
        /// What the compiler says.
        message: String,
    },
    /// A pass did not take place.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The compiler refused something other than a pass.
    #[error("{doing} failed: {message}")]
    Refused {
        /// What was being done.
        doing: String,
        /// What kind of failure.
        kind: FailureKind,
        /// What the compiler says.
        message: String,
    },
    /// The compiler died of something other than a pass.
    #[error("{doing}: the compiler {death}")]
    Died {
        /// What was being done.
        doing: String,
        /// How it ended.
        death: Death,
    },
    /// No such pass.
    #[error("there is no pass {name:?}{}", hint(suggestions))]
    UnknownPass {
        /// As asked for.
        name: String,
        /// Names that look like it.
        suggestions: Vec<String>,
    },
    /// The list of passes that led to a state does not lead to it again.
    #[error("replaying {steps} passes did not lead back to the state before: {message}")]
    Replay {
        /// How many passes.
        steps: usize,
        /// What happened instead.
        message: String,
    },
    /// The caller wants to stop waiting.
    #[error("interrupted")]
    Interrupted,
    /// Client and worker do not understand each other, or the system refused a resource.
    #[error("{0}")]
    Internal(String),
}

fn hint(suggestions: &[String]) -> String {
    match suggestions {
        [] => "; `xla-gym passes` lists them".to_owned(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl EngineError {
    pub(crate) fn refused(doing: &str, failure: Failure) -> Self {
        EngineError::Refused {
            doing: doing.to_owned(),
            kind: failure.kind,
            message: failure.message,
        }
    }
}
