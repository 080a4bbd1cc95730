//! What the engine client and a compiler worker say to each other.
//!
//! A worker is a process that holds one compiler. It speaks this protocol over one Unix stream
//! socket, [`WORKER_SOCKET_FD`], which it finds open when it starts. Each message is a *frame*:
//! a little-endian `u32` length, then that many bytes of [postcard]. The client sends one
//! [`Request`] at a time. The worker answers with one [`Reply`]; only [`Request::Apply`] is
//! answered by several, one for each pass as soon as it has run, so that the client knows which
//! pass a dead worker died of.
//!
//! [`Request::Fork`] is what makes workers cheap: the client passes two file descriptors along
//! (`SCM_RIGHTS`), the new worker's socket and the file for its standard error, and the worker
//! forks. Both go on from the same state.
//!
//! Nothing here knows a compiler: programs, passes and features are numbers and names that a
//! worker announces in its [`Hello`]. Adding a compiler means writing one worker.
//!
//! [postcard]: https://docs.rs/postcard

#![forbid(unsafe_code)]

mod execution;
mod frame;
mod look_out;
mod message;
mod metric;

pub use execution::*;
pub use frame::{FrameError, MAX_FRAME, read_frame, write_frame};
pub use look_out::look_out;
pub use message::*;
pub use metric::*;

/// Raised when a message changes its meaning or its form; both sides must agree exactly.
pub const PROTOCOL_VERSION: u32 = 9;

/// The descriptor on which a freshly started worker finds its socket.
pub const WORKER_SOCKET_FD: i32 = 3;

/// Exit status of a worker that ran into its memory limit.
pub const EXIT_OUT_OF_MEMORY: i32 = 86;

/// Exit status of a worker that ran into its time limit.
pub const EXIT_TIME_LIMIT: i32 = 87;
