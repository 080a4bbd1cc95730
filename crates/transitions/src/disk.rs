//! The disk tier: look-ups in a file that many processes share.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process,
    sync::{Arc, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, params};
use serde::de::DeserializeOwned;
use xla_gym_common::lock;
use xla_gym_protocol::{Fingerprint, PassId};

use crate::{
    error::TransitionsError,
    file,
    known::{Outcome, State},
    memory::Memory,
    queue::{Entry, Queue},
    writer,
};

/// How long the end of the program waits for the last entries.
const CLOSING_PATIENCE: Duration = Duration::from_secs(5);

/// A file of transitions, open.
pub struct Disk {
    shared: Arc<Shared>,
    path: PathBuf,
    engine: String,
    /// Who opened it: SQLite must not be used in a fork.
    process: u32,
    moved_aside: Option<PathBuf>,
    thread: Option<JoinHandle<()>>,
}

/// What those who look up and the thread that writes have in common.
pub struct Shared {
    pub queue: Queue,
    pub trouble: Trouble,
    /// None where there is nothing to read.
    reader: Mutex<Option<Reader>>,
}

/// Reads the file.
struct Reader {
    connection: Connection,
    engine: i64,
    /// What is to be forgotten and may still be in the file. Guarded by the same lock as the
    /// look-ups, so that none brings back what was just forgotten.
    forgotten: HashSet<(Fingerprint, PassId)>,
}

/// The first thing that went wrong in each direction.
#[derive(Default)]
pub struct Trouble {
    reading: Mutex<Option<String>>,
    writing: Mutex<Option<String>>,
}

impl Disk {
    /// Opens the file and starts the thread that writes to it.
    pub fn open(path: &Path, engine: &str, bytes: u64) -> Result<Disk, TransitionsError> {
        let path = &file::TRANSITIONS.absolute(path)?;
        let opened = file::open(path, engine, bytes)?;
        let number = opened.reader.as_ref().map(|(_, number)| *number);
        let reader = opened.reader.map(|(connection, engine)| Reader {
            connection,
            engine,
            forgotten: HashSet::new(),
        });
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            trouble: Trouble::default(),
            reader: Mutex::new(reader),
        });
        if let Some(problem) = opened.problem {
            shared.trouble.writing(writer::describe(&problem));
        }
        let thread =
            match (opened.writer, number) {
                (Some(connection), Some(number)) => {
                    let shared = Arc::clone(&shared);
                    let thread = thread::Builder::new()
                        .name("transitions".to_owned())
                        .spawn(move || writer::run(connection, number, &shared));
                    Some(thread.map_err(|source| TransitionsError::Thread {
                        path: path.to_owned(),
                        source,
                    })?)
                }
                _ => {
                    shared.queue.end();
                    None
                }
            };
        Ok(Disk {
            shared,
            path: path.to_owned(),
            engine: engine.to_owned(),
            process: process::id(),
            moved_aside: opened.moved_aside,
            thread,
        })
    }

    /// Whether this process opened the file. In a fork of it there is no thread that writes, and
    /// SQLite's locks do not hold.
    pub fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }

    /// Looks up an outcome, and keeps it in memory.
    pub fn outcome(&self, from: Fingerprint, pass: PassId, memory: &Memory) -> Option<Outcome> {
        const SQL: &str =
            "SELECT body FROM transitions WHERE engine = ?1 AND state = ?2 AND pass = ?3";
        let guard = self.shared.reader();
        let reader = guard.as_ref().filter(|reader| !reader.forgotten.contains(&(from, pass)))?;
        let parameters = params![reader.engine, key(from), pass.0];
        let outcome: Outcome = self.found(find(&reader.connection, SQL, parameters))?;
        memory.add(from, pass, outcome.clone());
        Some(outcome)
    }

    /// Looks up a state, and keeps it in memory.
    pub fn state(&self, id: Fingerprint, memory: &Memory) -> Option<Arc<State>> {
        let guard = self.shared.reader();
        let reader = guard.as_ref()?;
        let state = Arc::new(self.found(find_state(&reader.connection, reader.engine, id))?);
        drop(guard);
        memory.add_state(&state);
        Some(state)
    }

    /// Looks up a start, and keeps it in memory.
    pub fn start(&self, source: Fingerprint, kind: &str, memory: &Memory) -> Option<Fingerprint> {
        const SQL: &str =
            "SELECT state FROM starts WHERE engine = ?1 AND source = ?2 AND kind = ?3";
        let guard = self.shared.reader();
        let reader = guard.as_ref()?;
        let result = reader.connection.prepare_cached(SQL).and_then(|mut statement| {
            let parameters = params![reader.engine, key(source), kind];
            statement.query_row(parameters, |row| row.get::<_, [u8; 16]>(0)).optional()
        });
        let state = Fingerprint(u128::from_be_bytes(self.found(result)?));
        memory.add_start(source, kind, state);
        Some(state)
    }

    /// Leaves an entry to the thread that writes.
    pub fn push(&self, entry: Entry) {
        self.shared.queue.push(entry);
    }

    /// Forgets an outcome here at once, and in the file with the next write.
    pub fn forget(&self, from: Fingerprint, pass: PassId, memory: &Memory) {
        {
            let mut guard = self.shared.reader();
            if let Some(reader) = guard.as_mut() {
                reader.forgotten.insert((from, pass));
            }
            memory.forget(from, pass);
        }
        self.push(Entry::Forget { from, pass });
    }

    /// Waits until everything pushed so far is written.
    pub fn flush(&self) {
        self.shared.queue.flush();
    }

    /// The file's path and the engine.
    pub fn place(&self) -> (&Path, &str) {
        (&self.path, &self.engine)
    }

    /// What went wrong, if something did.
    pub fn trouble(&self) -> Option<String> {
        let trouble = &self.shared.trouble;
        let what = lock(&trouble.writing).clone().or_else(|| lock(&trouble.reading).clone())?;
        Some(format!("{}: {what}", self.path.display()))
    }

    /// A remark about the file.
    pub fn note(&self) -> Option<String> {
        let aside = self.moved_aside.as_ref()?;
        Some(format!(
            "{} was broken; it is now {}, and a new file was begun",
            self.path.display(),
            aside.display()
        ))
    }

    /// How many entries never reached the file.
    pub fn lost(&self) -> u64 {
        self.shared.queue.lost()
    }

    /// Writes what waits, within reason, and closes the file.
    pub fn close(self) {
        // First, so that the writer is the last to close the file and tidies up its log.
        *self.shared.reader() = None;
        if self.shared.queue.close(CLOSING_PATIENCE)
            && let Some(thread) = self.thread
        {
            let _ = thread.join();
        }
    }

    /// What a look-up found. A look-up that fails finds nothing; that it had to wait too long for
    /// another process is not even worth a word.
    fn found<T>(&self, result: rusqlite::Result<Option<T>>) -> Option<T> {
        result.unwrap_or_else(|error| {
            if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
                lock(&self.shared.trouble.reading).get_or_insert_with(|| {
                    format!("cannot be read: {error}; remove the file if this persists")
                });
            }
            None
        })
    }
}

impl Shared {
    /// What the writer has deleted need not be hidden any more.
    pub fn forget_done(&self, batch: &[Entry]) {
        for entry in batch {
            if let Entry::Forget { from, pass } = entry
                && let Some(reader) = self.reader().as_mut()
            {
                reader.forgotten.remove(&(*from, *pass));
            }
        }
    }

    fn reader(&self) -> MutexGuard<'_, Option<Reader>> {
        lock(&self.reader)
    }
}

impl Trouble {
    /// Remembers why nothing more is written.
    pub fn writing(&self, what: String) {
        lock(&self.writing).get_or_insert(what);
    }
}

/// A fingerprint as a key: the greater number is the later key.
pub fn key(fingerprint: Fingerprint) -> [u8; 16] {
    fingerprint.0.to_be_bytes()
}

/// The state of that identity, if the file has it.
pub fn find_state(
    connection: &Connection,
    engine: i64,
    id: Fingerprint,
) -> rusqlite::Result<Option<State>> {
    let sql = "SELECT body FROM states WHERE engine = ?1 AND id = ?2";
    let state: Option<State> = find(connection, sql, params![engine, key(id)])?;
    Ok(state.filter(|state| state.id == id))
}

/// Decodes a body from the file.
pub fn decode<T: DeserializeOwned>(row: &rusqlite::Row, column: usize) -> rusqlite::Result<T> {
    let value = row.get_ref(column)?;
    postcard::from_bytes(value.as_blob()?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
    })
}

fn find<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(parameters, |row| decode(row, 0)).optional()
}
