//! The disk tier: what lasts, and what happens when the disk fails.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use common::{ENGINE, count, fill, id, on_disk, open, outcome, state};
use rusqlite::Connection;
use tempfile::TempDir;
use xla_gym_protocol::PassId;
use xla_gym_transitions::{
    Config, Failure, FailureKind, FileError, Outcome, State, Transitions, TransitionsError,
};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/transitions.sqlite");
    (folder, path)
}

/// Opens with so little memory that everything is looked up on disk.
fn open_without_memory(path: &Path) -> Transitions {
    Transitions::open(&Config { memory_bytes: 0, ..on_disk(path) }, ENGINE).unwrap()
}

#[test]
fn entries_outlive_the_process() {
    let (_folder, path) = place();
    let first = open(&path);
    fill(&first, 0..5000);
    drop(first);
    assert!(!path.with_extension("sqlite-wal").exists(), "the log is tidied up");

    let second = open(&path);
    assert_eq!(count(&second, 0..5001), [5000; 3]);
    let stats = second.stats();
    assert_eq!((stats.hits_memory, stats.hits_disk, stats.misses), (0, 5000, 1));
    assert_eq!(count(&second, 0..5000), [5000; 3]);
    assert_eq!(second.stats().hits_memory, 5000, "now they are in memory");
    assert_eq!(second.stats().disk_error, None);
}

#[test]
fn more_than_the_queue_holds_reaches_the_disk() {
    let (_folder, path) = place();
    let transitions = open_without_memory(&path);
    fill(&transitions, 0..20_000);
    transitions.flush();
    assert_eq!(transitions.stats().unwritten, 0);
    assert_eq!(count(&transitions, 0..20_000), [20_000; 3]);
}

#[test]
fn another_engine_sees_nothing() {
    let (_folder, path) = place();
    fill(&open(&path), 0..10);
    let other = Transitions::open(&on_disk(&path), "toy 2").unwrap();
    assert_eq!(count(&other, 0..10), [0; 3]);
    drop(other);
    assert_eq!(count(&open(&path), 0..10), [10; 3]);
}

#[test]
fn two_at_once_see_each_other() {
    let (_folder, path) = place();
    let (first, second) = (open(&path), open(&path));
    fill(&first, 0..100);
    fill(&second, 100..200);
    first.flush();
    second.flush();
    assert_eq!(count(&first, 0..200), [200; 3]);
    assert_eq!(count(&second, 0..200), [200; 3]);
}

#[test]
fn many_may_open_a_new_file_at_once() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let transitions = open(path);
                fill(&transitions, thread * 100..(thread + 1) * 100);
                transitions.flush();
                assert_eq!(transitions.stats().disk_error, None);
            });
        }
    });
    assert_eq!(count(&open(&path), 0..800), [800; 3]);
}

#[test]
fn what_is_forgotten_is_gone_from_the_disk_and_may_be_added_anew() {
    let (_folder, path) = place();
    fill(&open(&path), 0..3);
    let transitions = open(&path);
    let anew = Outcome::Leads(id(77));
    for number in [1, 2] {
        let pass = PassId(number as u16);
        assert_eq!(transitions.outcome(id(number), pass), Some(outcome(id(number), pass)));
        transitions.forget(id(number), pass);
        assert_eq!(transitions.outcome(id(number), pass), None, "at once");
    }
    transitions.add(id(2), PassId(2), anew.clone());
    drop(transitions);
    let again = open(&path);
    assert_eq!(again.outcome(id(0), PassId(0)), Some(outcome(id(0), PassId(0))));
    assert_eq!(again.outcome(id(1), PassId(1)), None);
    assert_eq!(again.outcome(id(2), PassId(2)), Some(anew));
}

#[test]
fn what_is_forgotten_stays_hidden_when_the_disk_cannot_be_written() {
    let (_folder, path) = place();
    fill(&open(&path), 0..1);
    let transitions = open_without_memory(&path);
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    transitions.forget(id(0), PassId(0));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(transitions.outcome(id(0), PassId(0)), None);
    blocker.execute_batch("COMMIT").unwrap();
    transitions.flush();
    assert_eq!(open(&path).outcome(id(0), PassId(0)), None);
}

#[test]
fn failures_that_may_not_repeat_are_kept_in_memory_only() {
    let (_folder, path) = place();
    let transitions = open(&path);
    let kinds = [
        FailureKind::Refused,
        FailureKind::Died,
        FailureKind::Invalid,
        FailureKind::OutOfMemory,
        FailureKind::TimeLimit,
        FailureKind::Killed,
    ];
    let fails = |kind: FailureKind| Outcome::Fails(Failure { kind, message: kind.to_string() });
    for (pass, kind) in kinds.into_iter().enumerate() {
        transitions.add(id(1), PassId(pass as u16), fails(kind));
        assert!(transitions.outcome(id(1), PassId(pass as u16)).is_some());
    }
    drop(transitions);
    let again = open(&path);
    for (pass, kind) in kinds.into_iter().enumerate() {
        let expected = kind.repeats().then(|| fails(kind));
        assert_eq!(again.outcome(id(1), PassId(pass as u16)), expected);
    }
}

#[test]
fn a_state_known_in_full_takes_the_place_of_one_that_is_not() {
    let (_folder, path) = place();
    let full = state(id(1));
    let bare = Arc::new(State { cost: None, ..State::clone(&full) });
    for (added, expected) in [(&bare, &bare), (&full, &full), (&bare, &full)] {
        open_without_memory(&path).add_state(Arc::clone(added));
        assert_eq!(open(&path).state(id(1)).as_ref(), Some(expected));
    }
}

#[test]
fn a_full_disk_costs_only_the_disk() {
    let (_folder, path) = place();
    let config = Config { disk_bytes: 256 << 10, ..on_disk(&path) };
    let transitions = Transitions::open(&config, ENGINE).unwrap();
    fill(&transitions, 0..10_000);
    transitions.flush();
    assert_eq!(count(&transitions, 0..10_000), [10_000; 3]);
    let stats = transitions.stats();
    let error = stats.disk_error.unwrap();
    assert!(error.contains("full") && error.contains("transitions.sqlite"), "{error}");
    assert!(stats.unwritten > 0);
    transitions.add(id(1), PassId(1), Outcome::Leads(id(2)));
    drop(transitions);
    assert!(fs::metadata(&path).unwrap().len() <= 256 << 10);
    // What was written before is whole and can be read.
    let [outcomes, ..] = count(&open(&path), 0..10_000);
    assert!((300..10_000).contains(&outcomes), "{outcomes} on disk");
}

#[test]
fn a_locked_file_delays_nobody() {
    let (_folder, path) = place();
    let time = |transitions: &Transitions| {
        let start = Instant::now();
        fill(transitions, 0..20_000);
        assert_eq!(count(transitions, 0..20_000), [20_000; 3]);
        start.elapsed()
    };
    let free = time(&open(&path.with_file_name("free.sqlite")));
    let transitions = open(&path);
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = time(&transitions);
    // Whoever waited for the lock would wait for as long as SQLite is patient, again and again.
    assert!(locked < free * 5 + Duration::from_secs(4), "{locked:?}, and {free:?} without a lock");
    transitions.flush();
    let error = transitions.stats().disk_error.unwrap();
    assert!(error.contains("locked"), "{error}");
    assert_eq!(count(&transitions, 0..20_000), [20_000; 3]);
}

#[test]
fn a_locked_file_is_opened_to_read() {
    let (_folder, path) = place();
    fill(&open(&path), 0..10);
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let transitions = open(&path);
    assert!(transitions.stats().disk_error.unwrap().contains("locked"));
    assert_eq!(count(&transitions, 0..10), [10; 3]);
    fill(&transitions, 10..20);
    transitions.flush();
    assert_eq!(count(&transitions, 0..20), [20; 3]);
}

#[test]
fn a_broken_file_is_moved_aside() {
    for garbage in [b"no database".to_vec(), b"no database ".repeat(10_000)] {
        let (_folder, path) = place();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for number in 1..3 {
            fs::write(&path, &garbage).unwrap();
            let transitions = open(&path);
            let note = transitions.stats().note.unwrap();
            assert!(note.contains(&format!("transitions.sqlite.broken-{number}")), "{note}");
            assert_eq!(transitions.stats().disk_error, None);
            fill(&transitions, 0..10);
            drop(transitions);
            let aside = path.with_file_name(format!("transitions.sqlite.broken-{number}"));
            assert_eq!(fs::read(aside).unwrap(), garbage);
            let again = open(&path);
            assert_eq!((count(&again, 0..10), again.stats().note), ([10; 3], None));
        }
    }
}

#[test]
fn a_file_cut_short_is_moved_aside_by_one_of_many() {
    let (_folder, path) = place();
    fill(&open(&path), 0..1000);
    fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let notes: Vec<_> = std::thread::scope(|scope| {
        let open_one = |thread: u64| {
            let transitions = open(&path);
            fill(&transitions, thread * 10..(thread + 1) * 10);
            transitions.flush();
            assert_eq!(transitions.stats().disk_error, None);
            transitions.stats().note
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || open_one(thread))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(count(&open(&path), 0..1000), [40; 3]);
}

#[test]
fn a_file_that_breaks_later_costs_only_the_disk() {
    let (_folder, path) = place();
    fill(&open(&path), 0..2000);
    let transitions = open(&path);
    let length = fs::metadata(&path).unwrap().len();
    // Everything but the first pages, which hold the schema and the roots of the tables.
    let mut bytes = fs::read(&path).unwrap();
    bytes[7 * 4096..].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), length);
    let _ = count(&transitions, 0..100);
    fill(&transitions, 0..2000);
    transitions.flush();
    assert_eq!(count(&transitions, 0..2000), [2000; 3]);
    let error = transitions.stats().disk_error.unwrap();
    assert!(error.contains("malformed"), "{error}");
}

#[test]
fn what_is_no_file_of_ours_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |path: &Path| Transitions::open(&on_disk(path), ENGINE).err().unwrap();

    let error = fails(folder.path());
    assert!(matches!(error, TransitionsError::File(FileError::NotAFile { .. })));
    assert!(error.to_string().contains("name a file"), "{error}");
    assert!(matches!(
        fails(Path::new("/dev/null")),
        TransitionsError::File(FileError::NotAFile { .. })
    ));
    assert!(matches!(fails(Path::new("")), TransitionsError::File(FileError::NotAFile { .. })));
    assert!(matches!(
        fails(Path::new("/proc/x/y")),
        TransitionsError::File(FileError::Folder { .. })
    ));

    let foreign = folder.path().join("foreign");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE diary (page)").unwrap();
    let before = fs::read(&foreign).unwrap();
    assert!(matches!(fails(&foreign), TransitionsError::File(FileError::Foreign { .. })));
    assert_eq!(fs::read(&foreign).unwrap(), before, "it is left as it was");

    let newer = folder.path().join("newer");
    drop(open(&newer));
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = fails(&newer);
    assert!(matches!(error, TransitionsError::File(FileError::TooNew { found: 99, .. })));
    assert!(error.to_string().contains("use a newer version"), "{error}");
}
