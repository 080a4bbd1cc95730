//! The file on disk: what is in it, and how it is opened.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior,
};
use xla_gym_shared_file::{FileError, Kind, alone};

/// A file of transitions; the mark is the letters `XGtr`.
pub const TRANSITIONS: Kind =
    Kind { application: 0x5847_7472, version: 1, tables: TABLES, example: "transitions.sqlite" };

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
pub fn open(path: &Path, engine: &str, bytes: u64) -> Result<Opened, FileError> {
    let opened = TRANSITIONS.open(path, |mut writer| {
        bound(&writer, bytes)?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let engine = find_or_add_engine(&transaction, engine)?;
        transaction.commit()?;
        Ok((writer, connect_to_read(path)?, engine))
    })?;
    let moved_aside = opened.moved_aside;
    match opened.result {
        Ok((writer, reader, engine)) => {
            let reader = Some((reader, engine));
            Ok(Opened { writer: Some(writer), reader, problem: None, moved_aside })
        }
        Err(cause) => {
            let reader = find_engine(path, engine);
            let may_pass = matches!(
                cause.sqlite_error_code(),
                Some(
                    ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::DiskFull
                        | ErrorCode::ReadOnly
                        | ErrorCode::SystemIoFailure
                )
            );
            match reader {
                Err(_) if !may_pass => Err(FileError::Open { path: path.to_owned(), cause }),
                reader => {
                    let reader = reader.ok().flatten();
                    Ok(Opened { writer: None, reader, problem: Some(cause), moved_aside })
                }
            }
        }
    }
}

/// Another connection to read with and the engine's number, if the file knows the engine.
pub fn open_reader(path: &Path, engine: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
    let _lock = alone(path);
    find_engine(path, engine)
}

/// A connection that leaves the file as it is.
fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READER_PATIENCE)?;
    connection.pragma_update(None, "query_only", true)?;
    // The first look opens the log, which must be the log of this very file; see [`alone`].
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

/// Bounds the size of the file.
fn bound(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = u32::try_from(bytes / u64::from(page.max(1))).unwrap_or(u32::MAX);
    let pages = pages.clamp(LEAST_PAGES, MOST_PAGES);
    connection.pragma_update(None, "max_page_count", pages)
}

fn find_or_add_engine(connection: &Transaction, engine: &str) -> rusqlite::Result<i64> {
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
