//! The file of a store: how it is made, recognised, and moved aside when it is broken.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;

/// The format of the file, kept in its `user_version`.
const SCHEMA: i64 = 1;

/// Marks the file as one of ours, in its `application_id`: the letters `XGre`.
const APPLICATION: i64 = 0x5847_7265;

/// How long one process waits for another.
pub const PATIENCE: Duration = Duration::from_secs(10);

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
pub fn open(path: &Path) -> Result<Opened, StoreError> {
    if path.file_name().is_none() || fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(StoreError::NotAFile { path: path.to_owned() });
    }
    if let Some(folder) = path.parent()
        && let Err(cause) = fs::create_dir_all(folder)
    {
        if !is_out_of_reach(cause.kind()) {
            return Err(StoreError::Folder { path: path.to_owned(), cause });
        }
        // Nothing can be kept, but to find nothing is no failure.
        let reason = format!("its folder cannot be made: {cause}");
        return Ok(Opened { access: Access::Read { reason }, moved_aside: None });
    }
    let lock = lock(path);
    let mut moved_aside = None;
    let mut result = open_to_write(path);
    if lock.is_ok() && result.as_ref().is_err_and(is_broken) {
        let aside = move_aside(path)
            .map_err(|cause| StoreError::MoveAside { path: path.to_owned(), cause })?;
        moved_aside = Some(aside);
        result = open_to_write(path);
    }
    let access = match result {
        Ok(connection) => Access::Write(connection),
        Err(StoreError::Open { cause, .. }) if cannot_write(&cause) => {
            // Those who may not write must not take a foreign file for an empty one.
            connect_to_read(path)?;
            Access::Read { reason: cause.to_string() }
        }
        Err(error) => return Err(error),
    };
    Ok(Opened { access, moved_aside })
}

/// A connection that leaves the file as it is, or None where there is no file.
pub fn connect_to_read(path: &Path) -> Result<Option<Connection>, StoreError> {
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
        if check_format(&connection, path)? == Format::New {
            return Ok(None);
        }
        Ok(Some(connection))
    };
    match connect(false) {
        // SQLite wants to make files beside this one even to read it. Where it cannot, the file
        // is read as if nobody ever changed it, but only if nothing is left in a log beside.
        Err(StoreError::Open { cause, .. }) if cannot_write(&cause) && !has_log(path) => {
            connect(true)
        }
        result => result,
    }
}

/// A connection to write with, to a file that is known to be one of ours.
fn open_to_write(path: &Path) -> Result<Connection, StoreError> {
    let failed = |cause| open_error(path, cause);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // A file that is not ours must stay as it is, so this comes first.
    let format = check_format(&connection, path)?;
    // SQLite opens what may not be written without a word.
    if connection.is_readonly("main").map_err(failed)? {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(failed(rusqlite::Error::SqliteFailure(code, None)));
    }
    if format == Format::New {
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // Another process may have made the tables by now, so the format is read again.
        if check_format(&transaction, path)? == Format::New {
            transaction
                .execute_batch(TABLES)
                .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION))
                .and_then(|()| transaction.pragma_update(None, "user_version", SCHEMA))
                .map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
    }
    // A kill loses nothing; a loss of power the last recipes, but never the file.
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    // Looks at every entry of an index, so that most damage is noticed now.
    connection.query_row("SELECT count(*) FROM recipes", [], |_| Ok(())).map_err(failed)?;
    Ok(connection)
}

#[derive(PartialEq, Eq)]
enum Format {
    /// There is nothing in the file.
    New,
    /// The file is one of ours.
    Known,
}

fn check_format(connection: &Connection, path: &Path) -> Result<Format, StoreError> {
    // One statement, so that a file that is just being made is seen before or after.
    const SQL: &str = "
        SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
        FROM pragma_application_id, pragma_user_version
    ";
    let (application, version, tables): (i64, i64, i64) = connection
        .query_row(SQL, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|cause| open_error(path, cause))?;
    if (application, version, tables) == (0, 0, 0) {
        return Ok(Format::New);
    }
    if application != APPLICATION {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if version > SCHEMA {
        let path = path.to_owned();
        return Err(StoreError::TooNew { path, found: version, known: SCHEMA });
    }
    Ok(Format::Known)
}

fn open_error(path: &Path, cause: rusqlite::Error) -> StoreError {
    StoreError::Open { path: path.to_owned(), cause }
}

fn is_broken(error: &StoreError) -> bool {
    let StoreError::Open { cause, .. } = error else { return false };
    let code = cause.sqlite_error_code();
    matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
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

/// Lets one process at a time open the file, until the result is dropped. Otherwise a broken file
/// might be moved aside while another process is half-way into it, which would then meet the log
/// of the new file; or the new file might be moved in its turn.
///
/// The lock is one of SQLite's on an empty file beside, which stays: to remove it would let two
/// processes lock two files of the same name. Where it cannot be had, a file is opened without,
/// but never moved.
fn lock(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(with_suffix(path, ".lock"))?;
    connection.busy_timeout(PATIENCE)?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    Ok(connection)
}

/// Moves the file and what SQLite keeps beside it. The file itself goes last: a kill in between
/// leaves a broken file to the next one who opens it, never a new file with an old log.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    const PARTS: [&str; 4] = ["-wal", "-shm", "-journal", ""];
    let is_free = |aside: &PathBuf| PARTS.iter().all(|part| !with_suffix(aside, part).exists());
    let aside = (1..)
        .map(|number| with_suffix(path, &format!(".broken-{number}")))
        .find(is_free)
        .ok_or(io::ErrorKind::AlreadyExists)?;
    for part in PARTS {
        match fs::rename(with_suffix(path, part), with_suffix(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// The path with something after its name, extension and all.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
