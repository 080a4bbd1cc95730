//! The benchmark library: real graphs, with XLA's own result for each, split honestly.
//!
//! The data set `hlo-v1` is part of the program: its archives and its manifest are compiled in,
//! so that an id such as `hlo-v1/gpt2/train-4l-adamw` works wherever a file does, offline and
//! from any folder. How the graphs were made is in `tools/dataset`; what the manifest says of
//! them is computed by `xla-gym-lab manifest`.
//!
//! Invariant: this crate looks at text and numbers; only the engine runs a compiler.

#![forbid(unsafe_code)]

mod benchmarks;
mod library;
mod manifest;
mod own;
mod similarity;
mod splits;

pub use benchmarks::{Benchmark, BenchmarkError, Benchmarks, Skipped};
pub use library::{Library, LibraryError, unpack};
pub use manifest::{Baseline, Graph, Manifest, Side, Split};
pub use own::Files;
pub use similarity::{Shingles, opcode_sequence};
pub use splits::{Candidate, NEAR, UNSEEN, assign};
