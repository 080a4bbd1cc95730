//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

use parquet::errors::ParquetError;
use xla_gym_shared_file::FileError;

/// Why transitions cannot be opened or exported.
#[derive(Debug, thiserror::Error)]
pub enum TransitionsError {
    /// The file cannot be opened, or is none of transitions.
    #[error(transparent)]
    File(#[from] FileError),
    /// The thread that writes to disk cannot be started.
    #[error("cannot start a thread that writes to {}: {source}; raise the limit on threads, or go \
         without a file", path.display())]
    Thread {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read to export it.
    #[error("cannot read the transitions in {}: {source}; remove the file if this persists", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The exported file cannot be written.
    #[error(
        "cannot write {}: {source}; check the space on its disk and that you may write there",
        path.display()
    )]
    Export {
        /// The exported file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
}
