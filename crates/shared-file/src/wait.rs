//! How processes wait for one another.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode};

use crate::with_suffix;

/// How long one process waits for another that writes.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How long it sleeps before it tries again.
const TURN: Duration = Duration::from_millis(10);

/// Has a connection wait for its turn up to [`PATIENCE`], and try again every few milliseconds.
/// SQLite's own way sleeps ever longer, so that of many busy writers some might never have a turn.
pub fn take_turns(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(|tries| {
        thread::sleep(TURN);
        TURN * u32::try_from(tries).unwrap_or(0) < PATIENCE
    }))
}

/// Lets one process at a time open the file, until the result is dropped. Otherwise a broken file
/// might be moved aside between the moments when another process opens it and when that opens its
/// log, which would then be the log of the new file; or the new file might be moved in its turn.
///
/// The lock is one of SQLite's on an empty file beside, which stays: to remove it would let two
/// processes lock two files of the same name. Where it cannot be had, a file is opened without,
/// but never moved.
pub fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(with_suffix(path, ".lock"))?;
    take_turns(&connection)?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    Ok(connection)
}

/// Changes to a log that is written ahead, so that readers wait for nobody.
pub(crate) fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    // SQLite does not wait for others here by itself.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let result = connection.pragma_update(None, "journal_mode", "WAL");
        match result.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
            Some(ErrorCode::DatabaseBusy) if Instant::now() < deadline => thread::sleep(TURN),
            _ => return result,
        }
    }
}
