//! Files of one kind: how they are made and recognised.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::{
    aside::move_aside,
    error::FileError,
    wait::{alone, take_turns, write_ahead},
};

/// What all files of one kind have in common.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Marks a file as one of this kind, in its `application_id`: four letters.
    pub application: i64,
    /// The version of the tables, kept in the `user_version`. Later ones are refused.
    pub version: i64,
    /// What makes the tables in a new file.
    pub tables: &'static str,
    /// What such a file may be called, for the error about a path that is no file.
    pub example: &'static str,
}

/// A file that was opened, as far as it could be.
#[derive(Debug)]
pub struct Opened<T> {
    /// What can be written with, or why nothing can.
    pub result: Result<T, rusqlite::Error>,
    /// Where a broken file was moved.
    pub moved_aside: Option<PathBuf>,
    /// Until this is dropped, no other process opens the file, so that one who cannot write can
    /// begin to read the very file that was found.
    _lock: Option<Connection>,
}

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing yet.
    New,
    /// Tables of this kind.
    Known,
}

impl Kind {
    /// The path as it stays the same when the process changes its folder, and without the meaning
    /// that SQLite gives names such as `:memory:`.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, FileError> {
        std::path::absolute(path).map_err(|_| self.not_a_file(path))
    }

    /// Opens the file to write, which may be new; its folders are made. `prepare` gets the
    /// connection, and should look at the tables, so that damage is noticed now: a broken file is
    /// moved aside and a new one begun.
    ///
    /// That SQLite cannot write to the file is not an error of this call, since it may be good
    /// enough to read; see [`Opened::result`].
    pub fn open<T>(
        &self,
        path: &Path,
        prepare: impl Fn(Connection) -> rusqlite::Result<T>,
    ) -> Result<Opened<T>, FileError> {
        if path.file_name().is_none() || fs::metadata(path).is_ok_and(|data| !data.is_file()) {
            return Err(self.not_a_file(path));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|cause| FileError::Folder { path: path.to_owned(), cause })?;
        }
        let open = || prepare(self.open_to_write(path)?).map_err(|cause| open_error(path, cause));
        let lock = alone(path).ok();
        let mut moved_aside = None;
        let mut result = open();
        if lock.is_some() && result.as_ref().is_err_and(FileError::is_broken) {
            let aside = move_aside(path)
                .map_err(|cause| FileError::MoveAside { path: path.to_owned(), cause })?;
            moved_aside = Some(aside);
            result = open();
        }
        let result = match result {
            Ok(opened) => Ok(opened),
            Err(FileError::Open { cause, .. }) => Err(cause),
            Err(error) => return Err(error),
        };
        Ok(Opened { result, moved_aside, _lock: lock })
    }

    /// Whether a file is of this kind; one of another kind is an error.
    pub fn format(&self, connection: &Connection, path: &Path) -> Result<Format, FileError> {
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
        if application != self.application {
            return Err(FileError::Foreign { path: path.to_owned() });
        }
        if version > self.version {
            let path = path.to_owned();
            return Err(FileError::TooNew { path, found: version, known: self.version });
        }
        Ok(Format::Known)
    }

    /// A connection to write with, to a file that is known to be of this kind.
    fn open_to_write(&self, path: &Path) -> Result<Connection, FileError> {
        let failed = |cause| open_error(path, cause);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        take_turns(&connection).map_err(failed)?;
        // A file of another kind must stay as it is, so this comes first.
        let format = self.format(&connection, path)?;
        // SQLite opens what may not be written without a word.
        if connection.is_readonly("main").map_err(failed)? {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
            return Err(failed(rusqlite::Error::SqliteFailure(code, None)));
        }
        if format == Format::New {
            write_ahead(&connection).map_err(failed)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(failed)?;
            // Another process may have made the tables by now, so the format is read again.
            if self.format(&transaction, path)? == Format::New {
                transaction
                    .execute_batch(self.tables)
                    .and_then(|()| {
                        transaction.pragma_update(None, "application_id", self.application)
                    })
                    .and_then(|()| transaction.pragma_update(None, "user_version", self.version))
                    .map_err(failed)?;
            }
            transaction.commit().map_err(failed)?;
        }
        // A kill loses nothing; a loss of power the last entries, but never the file.
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        Ok(connection)
    }

    fn not_a_file(&self, path: &Path) -> FileError {
        FileError::NotAFile { path: path.to_owned(), example: self.example }
    }
}

fn open_error(path: &Path, cause: rusqlite::Error) -> FileError {
    FileError::Open { path: path.to_owned(), cause }
}
