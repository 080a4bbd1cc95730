//! The best recipe that is known for every program.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use rusqlite::{Connection, OptionalExtension, Params, Transaction, TransactionBehavior, params};
use xla_gym_common::{NoStateDir, lock, state_dir};
use xla_gym_protocol::Fingerprint;
use xla_gym_shared_file::take_turns;

use crate::{
    believable::encode_believable,
    database::{self, Access, RECIPES},
    error::StoreError,
    recipe::Recipe,
    written::decode,
};

/// How long a look-up may be delayed by its note that it took place.
const TOUCH_PATIENCE: Duration = Duration::from_millis(100);

/// How much a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimit {
    /// How many recipes; at least 1. Above, those that were not used for longest go with the next
    /// offer.
    pub recipes: usize,
}

impl Default for StoreLimit {
    fn default() -> Self {
        StoreLimit { recipes: 10_000 }
    }
}

/// A file with the best recipe that is known for each program, compiler and objective.
///
/// Many threads and processes may use it at once. One that is killed leaves the file whole.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("recipes.db");
/// use xla_gym_protocol::Fingerprint;
/// use xla_gym_recipe::{Store, StoreLimit};
///
/// let store = Store::open(&path, StoreLimit { recipes: 1000 })?;
/// assert!(store.is_empty()? && store.only_read_because().is_none());
/// assert_eq!(store.best(Fingerprint(7), "toy 1.0", "final")?, None);
/// assert_eq!(store.forget(Fingerprint(7))?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    access: Mutex<Access>,
    path: PathBuf,
    limit: usize,
    moved_aside: Option<PathBuf>,
    only_read: Option<String>,
}

impl Store {
    /// Opens a file, which may be new; its folders are made. A broken one is moved aside, see
    /// [`Store::moved_aside`]. One that cannot be written is only read, see
    /// [`Store::only_read_because`]; if it is not there either, it is empty.
    pub fn open(path: &Path, limit: StoreLimit) -> Result<Store, StoreError> {
        let path = RECIPES.absolute(path)?;
        let opened = database::open(&path)?;
        let only_read = match &opened.access {
            Access::Write(_) => None,
            Access::Read { reason } => Some(reason.clone()),
        };
        Ok(Store {
            access: Mutex::new(opened.access),
            path,
            limit: limit.recipes.max(1),
            moved_aside: opened.moved_aside,
            only_read,
        })
    }

    /// The user's own store: `recipes.db` in the folder of remembered state.
    pub fn default_path() -> Result<PathBuf, NoStateDir> {
        Ok(state_dir()?.join("recipes.db"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file was moved, if it was broken.
    pub fn moved_aside(&self) -> Option<&Path> {
        self.moved_aside.as_deref()
    }

    /// Why nothing can be kept, if nothing can.
    pub fn only_read_because(&self) -> Option<&str> {
        self.only_read.as_deref()
    }

    /// The best recipe that is known.
    pub fn best(
        &self,
        fingerprint: Fingerprint,
        engine: &str,
        objective: &str,
    ) -> Result<Option<Recipe>, StoreError> {
        const SQL: &str = "
            SELECT fingerprint, body FROM recipes
            WHERE fingerprint = ?1 AND engine = ?2 AND objective = ?3
        ";
        let found = self.find(SQL, params![key(fingerprint), engine, objective])?.pop();
        if found.is_some() {
            self.note_use(fingerprint, engine, objective);
        }
        Ok(found)
    }

    /// Keeps a recipe if it gains more than the one that is known, or as much with fewer passes,
    /// and says whether it did. One that was imported gives way to any that was made here: a search
    /// tries the known one first, so it found out what that is worth. One that is not believable
    /// is an error, see [`crate::Doubt`].
    pub fn offer(&self, recipe: &Recipe) -> Result<bool, StoreError> {
        let body = encode_believable(recipe).map_err(|doubt| StoreError::Doubtful {
            program: recipe.program.name.clone(),
            doubt,
        })?;
        self.change(|transaction| {
            let better = is_better(transaction, recipe)?;
            if better {
                keep(transaction, recipe, &body)?;
            }
            touch(transaction, recipe.program.fingerprint, &recipe.engine, &recipe.objective)?;
            evict(transaction, self.limit)?;
            Ok(better)
        })
    }

    /// All recipes, in the order of fingerprint, engine and objective.
    pub fn list(&self) -> Result<Vec<Recipe>, StoreError> {
        const SQL: &str =
            "SELECT fingerprint, body FROM recipes ORDER BY fingerprint, engine, objective";
        self.find(SQL, [])
    }

    /// Forgets the recipes of a program, for any compiler and objective, and says how many.
    pub fn forget(&self, fingerprint: Fingerprint) -> Result<usize, StoreError> {
        self.change(|transaction| {
            transaction.execute("DELETE FROM recipes WHERE fingerprint = ?1", [key(fingerprint)])
        })
    }

    /// How many recipes there are.
    pub fn len(&self) -> Result<usize, StoreError> {
        self.look(count).map(Option::unwrap_or_default)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }

    /// The recipes that a statement finds, which has to give fingerprint and body.
    fn find(&self, sql: &str, parameters: impl Params) -> Result<Vec<Recipe>, StoreError> {
        let rows = self.look(|connection| {
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map(parameters, |row| {
                Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, String>(1)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let recipe = |(key, body): ([u8; 16], String)| {
            decode(body.as_bytes()).map_err(|cause| StoreError::Content {
                path: self.path.clone(),
                fingerprint: Fingerprint(u128::from_be_bytes(key)),
                cause,
            })
        };
        rows.unwrap_or_default().into_iter().map(recipe).collect()
    }

    /// Reads from the file, unless there is none. A file that is only read is opened for every
    /// look: it may be read as if nobody changed it, and yet somebody who may might.
    fn look<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let result = match &*self.access() {
            Access::Write(connection) => read(connection).map(Some),
            Access::Read { .. } => {
                database::connect_to_read(&self.path)?.as_ref().map(read).transpose()
            }
        };
        result.map_err(|cause| StoreError::Read { path: self.path.clone(), cause })
    }

    /// Changes the file, as the only one at that time, all at once or not at all.
    fn change<T>(
        &self,
        write: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut access = self.access();
        let connection = match &mut *access {
            Access::Write(connection) => connection,
            Access::Read { reason } => {
                let (path, reason) = (self.path.clone(), reason.clone());
                return Err(StoreError::OnlyRead { path, reason });
            }
        };
        alone(connection, write)
            .map_err(|cause| StoreError::Write { path: self.path.clone(), cause })
    }

    /// Notes that a recipe was used. That it cannot be noted is no reason not to use it, and
    /// neither is it one to wait for long.
    fn note_use(&self, fingerprint: Fingerprint, engine: &str, objective: &str) {
        if let Access::Write(connection) = &mut *self.access() {
            let _ = connection.busy_timeout(TOUCH_PATIENCE);
            let _ = touch(connection, fingerprint, engine, objective);
            let _ = take_turns(connection);
        }
    }

    fn access(&self) -> MutexGuard<'_, Access> {
        lock(&self.access)
    }
}

/// Runs a change that no other comes between.
fn alone<T>(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let result = write(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// A fingerprint as a key: the greater number is the later key.
fn key(fingerprint: Fingerprint) -> [u8; 16] {
    fingerprint.0.to_be_bytes()
}

/// Passes as SQLite counts them.
fn passes(recipe: &Recipe) -> i64 {
    i64::try_from(recipe.passes.len()).unwrap_or(i64::MAX)
}

fn is_better(connection: &Connection, recipe: &Recipe) -> rusqlite::Result<bool> {
    const SQL: &str = "
        SELECT gain, passes, json_valid(body) AND coalesce(json_extract(body, '$.imported'), 0)
        FROM recipes WHERE fingerprint = ?1 AND engine = ?2 AND objective = ?3
    ";
    let parameters = params![key(recipe.program.fingerprint), recipe.engine, recipe.objective];
    let known: Option<(f64, i64, bool)> = connection
        .query_row(SQL, parameters, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    Ok(known.is_none_or(|(gain, count, imported)| {
        imported && !recipe.imported
            || recipe.gain > gain
            || recipe.gain == gain && passes(recipe) < count
    }))
}

fn keep(connection: &Connection, recipe: &Recipe, body: &str) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT OR REPLACE INTO recipes (fingerprint, engine, objective, gain, passes, used, body)
        VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)
    ";
    connection.execute(
        SQL,
        params![
            key(recipe.program.fingerprint),
            recipe.engine,
            recipe.objective,
            recipe.gain,
            passes(recipe),
            body
        ],
    )?;
    Ok(())
}

/// Makes a recipe the one that was used last. If it is already, nothing is written.
fn touch(
    connection: &Connection,
    fingerprint: Fingerprint,
    engine: &str,
    objective: &str,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        UPDATE recipes SET used = (SELECT max(used) FROM recipes) + 1
        WHERE fingerprint = ?1 AND engine = ?2 AND objective = ?3
        AND (used = 0 OR used < (SELECT max(used) FROM recipes))
    ";
    connection.execute(SQL, params![key(fingerprint), engine, objective])?;
    Ok(())
}

fn evict(connection: &Connection, limit: usize) -> rusqlite::Result<()> {
    const SQL: &str = "
        DELETE FROM recipes
        WHERE rowid IN (SELECT rowid FROM recipes ORDER BY used, rowid LIMIT ?1)
    ";
    let excess = count(connection)?.saturating_sub(limit);
    if excess > 0 {
        connection.execute(SQL, [i64::try_from(excess).unwrap_or(i64::MAX)])?;
    }
    Ok(())
}

fn count(connection: &Connection) -> rusqlite::Result<usize> {
    let count: i64 = connection.query_row("SELECT count(*) FROM recipes", [], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}
