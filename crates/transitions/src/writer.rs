//! The thread that writes to disk.

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use serde::Serialize;

use crate::{
    disk::{Shared, key},
    queue::{Entry, Queue},
};

/// Writes what is queued until the queue is closed or the disk fails, which ends the writing for
/// good.
pub fn run(connection: Connection, engine: i64, shared: &Shared) {
    // Declared first, to be dropped last: whoever waits for the end finds the file closed.
    let _end = EndOnDrop(&shared.queue);
    let mut connection = connection;
    while let Some(batch) = shared.queue.next_batch() {
        match write(&mut connection, engine, &batch) {
            Ok(()) => {
                shared.forget_done(&batch);
                shared.queue.written(batch.len());
            }
            Err(error) => return shared.trouble.writing(describe(&error)),
        }
    }
}

/// What went wrong and what to do about it.
pub fn describe(error: &rusqlite::Error) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "raise its bound, free some space, or remove the file",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process holds it; end that one, or name another file"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "remove the file",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "make the file and its folder writable, or name another file"
        }
        _ => "look after its disk, or name another file",
    };
    format!("nothing more is written: {error}; {advice}")
}

/// A writer that ends in any way must not be waited for.
struct EndOnDrop<'a>(&'a Queue);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn write(connection: &mut Connection, engine: i64, batch: &[Entry]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for entry in batch {
        write_entry(&transaction, engine, entry)?;
    }
    transaction.commit()
}

fn write_entry(transaction: &Transaction, engine: i64, entry: &Entry) -> rusqlite::Result<()> {
    match entry {
        Entry::Outcome { from, pass, outcome } => transaction
            .prepare_cached("INSERT OR IGNORE INTO transitions VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![engine, key(*from), pass.0, body(outcome)?])?,
        Entry::State(state) => {
            // One that is known in full takes the place of one that is not.
            let sql = if state.is_complete() {
                "INSERT OR REPLACE INTO states VALUES (?1, ?2, ?3)"
            } else {
                "INSERT OR IGNORE INTO states VALUES (?1, ?2, ?3)"
            };
            let mut statement = transaction.prepare_cached(sql)?;
            statement.execute(params![engine, key(state.id), body(state.as_ref())?])?
        }
        Entry::Start { source, kind, state } => transaction
            .prepare_cached("INSERT OR IGNORE INTO starts VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![engine, key(*source), kind, key(*state)])?,
        Entry::Forget { from, pass } => transaction
            .prepare_cached(
                "DELETE FROM transitions WHERE engine = ?1 AND state = ?2 AND pass = ?3",
            )?
            .execute(params![engine, key(*from), pass.0])?,
    };
    Ok(())
}

fn body<T: Serialize>(value: &T) -> rusqlite::Result<Vec<u8>> {
    postcard::to_stdvec(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
