//! The file on disk: how it is made, recognised, and moved aside when it is broken.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior,
};

use crate::error::TransitionsError;

/// The format of the file, kept in its `user_version`.
const SCHEMA: i64 = 1;

/// Marks the file as one of ours, in its `application_id`: the letters `XGtr`.
const APPLICATION: i64 = 0x5847_7472;

/// How long a writer waits for another.
pub const WRITER_PATIENCE: Duration = Duration::from_secs(10);

/// How long a writer sleeps before it tries again.
const TURN: Duration = Duration::from_millis(10);

/// How long a look-up waits. Readers wait for nobody but in rare moments, and a step must not.
const READER_PATIENCE: Duration = Duration::from_millis(250);

/// The least that is useful: the empty tables take half of it.
const LEAST_PAGES: u32 = 16;

/// The most that SQLite knows.
const MOST_PAGES: u32 = u32::MAX - 1;

const TABLES: &str = "
    CREATE TABLE engines (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
    CREATE TABLE states (
        engine INTEGER NOT NULL, id BLOB NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (engine, id)
    ) WITHOUT ROWID;
    CREATE TABLE transitions (
        engine INTEGER NOT NULL, state BLOB NOT NULL, pass INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (engine, state, pass)
    ) WITHOUT ROWID;
    CREATE TABLE starts (
        engine INTEGER NOT NULL, source BLOB NOT NULL, kind TEXT NOT NULL, state BLOB NOT NULL,
        PRIMARY KEY (engine, source, kind)
    ) WITHOUT ROWID;
";

/// A file that was opened, as far as it could be.
pub struct Opened {
    /// To write with, unless writing is impossible.
    pub writer: Option<Connection>,
    /// To read with, with the engine's number in the file, unless there is nothing to read.
    pub reader: Option<(Connection, i64)>,
    /// Why there is no writer.
    pub problem: Option<rusqlite::Error>,
    /// Where a broken file was moved.
    pub moved_aside: Option<PathBuf>,
}

/// Opens the file, which may be new. A broken one is moved aside and a new one begun; one that
/// cannot be written is only read.
pub fn open(path: &Path, engine: &str, bytes: u64) -> Result<Opened, TransitionsError> {
    if path.file_name().is_none() || fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(TransitionsError::NotAFile { path: path.to_owned() });
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|source| TransitionsError::Folder { path: path.to_owned(), source })?;
    }
    let lock = lock(path);
    let mut moved_aside = None;
    let mut result = open_writer(path, engine, bytes);
    if lock.is_ok() && result.as_ref().is_err_and(is_broken) {
        let aside = move_aside(path)
            .map_err(|source| TransitionsError::MoveAside { path: path.to_owned(), source })?;
        moved_aside = Some(aside);
        result = open_writer(path, engine, bytes);
    }
    match result {
        Ok((writer, engine)) => {
            let reader = connect_to_read(path).map_err(|source| open_error(path, source))?;
            let reader = Some((reader, engine));
            Ok(Opened { writer: Some(writer), reader, problem: None, moved_aside })
        }
        Err(TransitionsError::Open { source, .. }) => {
            let reader = find_engine(path, engine);
            let may_pass = matches!(
                source.sqlite_error_code(),
                Some(
                    ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::DiskFull
                        | ErrorCode::ReadOnly
                        | ErrorCode::SystemIoFailure
                )
            );
            match reader {
                Err(_) if !may_pass => Err(open_error(path, source)),
                reader => {
                    let reader = reader.ok().flatten();
                    Ok(Opened { writer: None, reader, problem: Some(source), moved_aside })
                }
            }
        }
        Err(error) => Err(error),
    }
}

/// Another connection to read with and the engine's number, if the file knows the engine.
pub fn open_reader(path: &Path, engine: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
    let _lock = lock(path);
    find_engine(path, engine)
}

/// A connection that leaves the file as it is.
fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READER_PATIENCE)?;
    connection.pragma_update(None, "query_only", true)?;
    // The first look opens the log, which must be the log of this very file; see `lock`.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn find_engine(path: &Path, engine: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
    let connection = connect_to_read(path)?;
    let id = connection
        .query_row("SELECT id FROM engines WHERE key = ?1", [engine], |row| row.get(0))
        .optional()?;
    Ok(id.map(|id| (connection, id)))
}

/// A connection to write with, to a file that is known to be one of ours, and the engine's number.
fn open_writer(
    path: &Path,
    engine: &str,
    bytes: u64,
) -> Result<(Connection, i64), TransitionsError> {
    let failed = |source| open_error(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_handler(Some(wait_for_turn)).map_err(failed)?;
    // A file that is not ours must stay as it is, so this comes first.
    check_format(&connection.unchecked_transaction().map_err(failed)?, path)?;
    set_up(&connection, bytes).map_err(failed)?;
    // Another process may have made the tables by now, so the format is read again.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    if check_format(&transaction, path)? == 0 {
        transaction
            .execute_batch(TABLES)
            .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION))
            .and_then(|()| transaction.pragma_update(None, "user_version", SCHEMA))
            .map_err(failed)?;
    }
    let id = find_or_add_engine(&transaction, engine).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok((connection, id))
}

/// Tries again every few milliseconds. SQLite's own way sleeps ever longer, so that of many busy
/// writers some might never have a turn.
fn wait_for_turn(tries: i32) -> bool {
    thread::sleep(TURN);
    TURN * u32::try_from(tries).unwrap_or(0) < WRITER_PATIENCE
}

/// The format of the file; 0 for a new one. In a transaction, so that a file that is just being
/// made is seen before or after.
fn check_format(connection: &Transaction, path: &Path) -> Result<i64, TransitionsError> {
    let failed = |source| open_error(path, source);
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let application = number("application_id").map_err(failed)?;
    let version = number("user_version").map_err(failed)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    let new = (application, version, tables) == (0, 0, 0);
    if !new && application != APPLICATION {
        return Err(TransitionsError::Foreign { path: path.to_owned() });
    }
    if version > SCHEMA {
        let path = path.to_owned();
        return Err(TransitionsError::TooNew { path, found: version, known: SCHEMA });
    }
    Ok(version)
}

fn set_up(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    // SQLite does not wait for others here by itself.
    let deadline = Instant::now() + WRITER_PATIENCE;
    loop {
        let result = connection.pragma_update(None, "journal_mode", "WAL");
        match result.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
            Some(ErrorCode::DatabaseBusy) if Instant::now() < deadline => {
                thread::sleep(TURN);
            }
            _ => break result?,
        }
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = u32::try_from(bytes / u64::from(page.max(1))).unwrap_or(u32::MAX);
    let pages = pages.clamp(LEAST_PAGES, MOST_PAGES);
    connection.pragma_update(None, "max_page_count", pages)
}

fn find_or_add_engine(connection: &Connection, engine: &str) -> rusqlite::Result<i64> {
    // Looks into every table, so that a file that was cut short is noticed now.
    for table in ["states", "transitions", "starts"] {
        connection.query_row(
            &format!("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT 1)"),
            [],
            |_| Ok(()),
        )?;
    }
    connection.execute("INSERT OR IGNORE INTO engines (key) VALUES (?1)", [engine])?;
    connection.query_row("SELECT id FROM engines WHERE key = ?1", [engine], |row| row.get(0))
}

fn open_error(path: &Path, source: rusqlite::Error) -> TransitionsError {
    TransitionsError::Open { path: path.to_owned(), source }
}

fn is_broken(error: &TransitionsError) -> bool {
    let TransitionsError::Open { source, .. } = error else { return false };
    let code = source.sqlite_error_code();
    matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// Lets one process at a time open the file, until the result is dropped. Otherwise a broken file
/// might be moved aside between the moments when another process opens it and when that opens its
/// log, which would then be the log of the new file; or the new file might be moved in its turn.
///
/// The lock is one of SQLite's on an empty file beside, which stays: to remove it would let two
/// processes lock two files of the same name. Where it cannot be had, a file is opened without, but
/// never moved.
fn lock(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(with_suffix(path, ".lock"))?;
    connection.busy_timeout(WRITER_PATIENCE)?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    Ok(connection)
}

/// Moves the file and what SQLite keeps beside it. The file itself goes last: a kill in between
/// leaves a broken file to the next one who opens it, never a new file with an old log.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    const PARTS: [&str; 4] = ["-wal", "-shm", "-journal", ""];
    let mut number = 1;
    let aside = loop {
        let aside = with_suffix(path, &format!(".broken-{number}"));
        if PARTS.iter().all(|part| !with_suffix(&aside, part).exists()) {
            break aside;
        }
        number += 1;
    };
    for part in PARTS {
        match fs::rename(with_suffix(path, part), with_suffix(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// The path with something after its name, extension and all.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
