//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

use rusqlite::ErrorCode;

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path names a folder, a device or a pipe.
    #[error("{} is not a file; name a file, such as {}", path.display(), path.join(example).display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// A name that would do.
        example: &'static str,
    },
    /// The folder of the file is not there and cannot be made.
    #[error("cannot make the folder of {}: {cause}; make it, or name another file", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file cannot be opened, neither to write nor to read.
    #[error(
        "cannot open {}: {cause}; check that you may write to it and to its folder, or name \
         another file", path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: rusqlite::Error,
    },
    /// The file is a database, but one of something else.
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
    #[error("{} is broken and cannot be moved aside: {cause}; remove it", path.display())]
    MoveAside {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl FileError {
    /// What SQLite says, where it is SQLite that cannot open the file.
    pub fn sqlite(&self) -> Option<&rusqlite::Error> {
        match self {
            FileError::Open { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Whether the content of the file is at fault.
    pub(crate) fn is_broken(&self) -> bool {
        let code = self.sqlite().and_then(rusqlite::Error::sqlite_error_code);
        matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
    }
}
