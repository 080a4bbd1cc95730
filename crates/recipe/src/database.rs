//! The file of a store: how it is made, recognised, and moved aside when it is broken.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use xla_gym_shared_file::{FileError, Format, Kind, PATIENCE, with_suffix};

/// A file of recipes; the mark is the letters `XGre`.
pub const RECIPES: Kind =
    Kind { application: 0x5847_7265, version: 1, tables: TABLES, example: "recipes.db" };

/// `used` grows with every use, so the least is the one that was not used for longest. No clock:
/// those of several machines that share a file disagree.
const TABLES: &str = "
    CREATE TABLE recipes (
        fingerprint BLOB NOT NULL, engine TEXT NOT NULL, objective TEXT NOT NULL,
        gain REAL NOT NULL, passes INTEGER NOT NULL, used INTEGER NOT NULL, body TEXT NOT NULL,
        UNIQUE (fingerprint, engine, objective)
    );
    CREATE INDEX recipes_by_use ON recipes (used);
";

/// A file that was opened, as far as it could be.
pub struct Opened {
    /// What can be done with it.
    pub access: Access,
    /// Where a broken file was moved.
    pub moved_aside: Option<PathBuf>,
}

/// What can be done with a file.
pub enum Access {
    /// Everything.
    Write(Connection),
    /// Only look-ups, if the file is there at all.
    Read {
        /// Why.
        reason: String,
    },
}

/// Opens the file, which may be new. A broken one is moved aside and a new one begun; one that
/// cannot be written is only read.
pub fn open(path: &Path) -> Result<Opened, FileError> {
    let opened = RECIPES.open(path, |connection| {
        // Looks at every entry of an index, so that most damage is noticed now.
        connection.query_row("SELECT count(*) FROM recipes", [], |_| Ok(()))?;
        Ok(connection)
    });
    let opened = match opened {
        // Nothing can be kept, but to find nothing is no failure.
        Err(FileError::Folder { cause, .. }) if is_out_of_reach(cause.kind()) => {
            let reason = format!("its folder cannot be made: {cause}");
            return Ok(Opened { access: Access::Read { reason }, moved_aside: None });
        }
        opened => opened?,
    };
    let access = match opened.result {
        Ok(connection) => Access::Write(connection),
        Err(cause) if cannot_write(&cause) => {
            // Those who may not write must not take a foreign file for an empty one.
            connect_to_read(path)?;
            Access::Read { reason: cause.to_string() }
        }
        Err(cause) => return Err(open_error(path, cause)),
    };
    Ok(Opened { access, moved_aside: opened.moved_aside })
}

/// A connection that leaves the file as it is, or None where there is no file.
pub fn connect_to_read(path: &Path) -> Result<Option<Connection>, FileError> {
    if !path.exists() {
        return Ok(None);
    }
    let connect = |immutable: bool| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let address = address(path, immutable);
        let connection =
            Connection::open_with_flags(address, flags).map_err(|cause| open_error(path, cause))?;
        connection.busy_timeout(PATIENCE).map_err(|cause| open_error(path, cause))?;
        if RECIPES.format(&connection, path)? == Format::New {
            return Ok(None);
        }
        Ok(Some(connection))
    };
    match connect(false) {
        // SQLite wants to make files beside this one even to read it. Where it cannot, the file
        // is read as if nobody ever changed it, but only if nothing is left in a log beside.
        Err(FileError::Open { cause, .. }) if cannot_write(&cause) && !has_log(path) => {
            connect(true)
        }
        result => result,
    }
}

fn open_error(path: &Path, cause: rusqlite::Error) -> FileError {
    FileError::Open { path: path.to_owned(), cause }
}

/// Whether an error says nothing against reading.
fn cannot_write(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure
        )
    )
}

/// Whether a folder is wanting because nothing may be written there.
fn is_out_of_reach(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}

fn has_log(path: &Path) -> bool {
    ["-wal", "-journal"]
        .iter()
        .any(|part| fs::metadata(with_suffix(path, part)).is_ok_and(|data| data.len() > 0))
}

/// The path as SQLite takes it together with options.
fn address(path: &Path, immutable: bool) -> String {
    let mut address = "file:".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' => address.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => address.push(byte.into()),
            _ => address += &format!("%{byte:02x}"),
        }
    }
    if immutable { address + "?immutable=1" } else { address }
}
