//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

use parquet::errors::ParquetError;

/// Why transitions cannot be opened or exported.
#[derive(Debug, thiserror::Error)]
pub enum TransitionsError {
    /// The path names a folder, a device or a pipe.
    #[error(
        "{} is not a file; name a file for the transitions, such as {}", path.display(),
        path.join("transitions.sqlite").display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The folder of a file is not there and cannot be made.
    #[error("cannot make the folder of {}: {source}; make it, or name another file", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be opened, neither to write nor to read.
    #[error(
        "cannot open {}: {source}; check that you may write to it and to its folder, or go without \
         a file", path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file is a database, but not one of transitions.
    #[error("{} is a database of another program; name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{} has format {found} and this version reads up to {known}; use a newer version, or name \
         another file", path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that is understood.
        known: i64,
    },
    /// The file is broken and cannot be moved out of the way.
    #[error("{} is broken and cannot be moved aside: {source}; remove it", path.display())]
    MoveAside {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
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
