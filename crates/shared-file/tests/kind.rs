//! Files of one kind, as several processes meet them.

use std::{fs, path::Path, thread};

use rusqlite::Connection;
use xla_gym_shared_file::{FileError, Format, Kind, Opened};

const DIARIES: Kind = Kind {
    application: 0x5847_6469,
    version: 1,
    tables: "CREATE TABLE pages (text TEXT NOT NULL);",
    example: "diary.db",
};

fn open(kind: Kind, path: &Path) -> Result<Opened<Connection>, FileError> {
    kind.open(path, |connection| {
        connection.query_row("SELECT count(*) FROM pages", [], |_| Ok(()))?;
        Ok(connection)
    })
}

fn write(path: &Path, text: &str) {
    let connection = open(DIARIES, path).unwrap().result.unwrap();
    connection.execute("INSERT INTO pages VALUES (?1)", [text]).unwrap();
}

fn pages(path: &Path) -> u32 {
    let connection = open(DIARIES, path).unwrap().result.unwrap();
    connection.query_row("SELECT count(*) FROM pages", [], |row| row.get(0)).unwrap()
}

#[test]
fn many_at_once_make_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/diary.db");
    thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || write(path, &writer.to_string()));
        }
    });
    assert_eq!(pages(&path), 8);
}

#[test]
fn what_is_of_another_kind_or_newer_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diary.db");
    write(&path, "one");
    let before = fs::read(&path).unwrap();
    let other = Kind { application: 0x5847_6f74, ..DIARIES };
    let error = open(other, &path).unwrap_err();
    assert!(matches!(error, FileError::Foreign { .. }), "{error}");
    let older = Kind { version: 0, ..DIARIES };
    let error = open(older, &path).unwrap_err();
    assert!(matches!(error, FileError::TooNew { found: 1, known: 0, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    // Whoever only reads looks for himself.
    let reader = Connection::open(&path).unwrap();
    assert_eq!(DIARIES.format(&reader, &path).unwrap(), Format::Known);
    assert!(other.format(&reader, &path).is_err());
}

#[test]
fn a_broken_file_is_moved_aside_by_one_of_many() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diary.db");
    let garbage = b"no database ".repeat(1000);
    fs::write(&path, &garbage).unwrap();
    let moved: Vec<_> = thread::scope(|scope| {
        let open_one = || open(DIARIES, &path).unwrap().moved_aside;
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(open_one)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(moved, [folder.path().join("diary.db.broken-1")]);
    assert_eq!(fs::read(&moved[0]).unwrap(), garbage);
    assert_eq!(pages(&path), 0);
}

#[test]
fn what_sqlite_cannot_write_is_told_and_others_wait_while_it_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diary.db");
    write(&path, "one");
    let refuses = |_| Err::<Connection, _>(rusqlite::Error::InvalidQuery);
    let opened = DIARIES.open(&path, refuses).unwrap();
    assert!(matches!(opened.result, Err(rusqlite::Error::InvalidQuery)));
    let busy = |path: &Path| {
        let lock = Connection::open(path.with_file_name("diary.db.lock")).unwrap();
        lock.busy_timeout(std::time::Duration::ZERO).unwrap();
        lock.execute_batch("BEGIN EXCLUSIVE").is_err()
    };
    assert!(busy(&path));
    drop(opened);
    assert!(!busy(&path));
    let error = open(DIARIES, folder.path()).unwrap_err().to_string();
    assert!(error.contains("name a file") && error.contains("diary.db"), "{error}");
}
