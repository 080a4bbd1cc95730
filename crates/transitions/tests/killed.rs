//! Processes that write to one file at once, and one of them is killed again and again.

mod common;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{count, fill, open, outcome, state};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rusqlite::Connection;
use xla_gym_protocol::{Fingerprint, PassId};

/// Tells this program, started by itself, to write to the file until it is killed.
const FILE: &str = "XLA_GYM_TRANSITIONS_VICTIM_FILE";
const FIRST: &str = "XLA_GYM_TRANSITIONS_VICTIM_FIRST";

/// Does nothing when it is run as a test.
#[test]
fn victim() {
    let (Some(file), Ok(first)) = (env::var_os(FILE), env::var(FIRST)) else { return };
    let transitions = open(&PathBuf::from(file));
    // Ends by itself should the one who kills be killed.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut number: u64 = first.parse().unwrap();
    while Instant::now() < deadline {
        fill(&transitions, number..number + 200);
        transitions.flush();
        number += 200;
    }
}

fn start_victim(file: &Path, first: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "victim"])
        .env(FILE, file)
        .env(FIRST, first.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_kill_breaks_nothing() {
    const ROUNDS: u64 = 10;
    const FAR: u64 = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("transitions.sqlite");
    let mut random = ChaCha8Rng::seed_from_u64(7);

    let survivor = open(&file);
    let mut own = 0;
    for round in 1..=ROUNDS {
        let mut victim = start_victim(&file, round * FAR);
        let end = Instant::now() + Duration::from_millis(random.random_range(20..500));
        while Instant::now() < end {
            fill(&survivor, own..own + 10);
            own += 10;
            thread::sleep(Duration::from_millis(2));
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    assert_eq!(survivor.stats().disk_error, None);
    assert_eq!(survivor.stats().unwritten, 0);
    drop(survivor);

    let transitions = open(&file);
    assert_eq!((transitions.stats().disk_error, transitions.stats().note), (None, None));
    assert_eq!(count(&transitions, 0..own), [own as usize; 3], "the survivor's are all there");

    let connection = Connection::open(&file).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");

    let from_victims = check_every_row(&connection, &transitions, own);
    assert!(from_victims > 1000, "the victims wrote {from_victims}: too few to prove anything");
}

/// Looks at what is there, whoever wrote it, and says how much of it is not the survivor's.
fn check_every_row(
    connection: &Connection,
    transitions: &xla_gym_transitions::Transitions,
    own: u64,
) -> usize {
    let key = |bytes: [u8; 16]| Fingerprint(u128::from_be_bytes(bytes));
    let mut statement = connection.prepare("SELECT state, pass FROM transitions").unwrap();
    let rows: Vec<(Fingerprint, PassId)> = statement
        .query_map([], |row| Ok((key(row.get(0)?), PassId(row.get(1)?))))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for &(from, pass) in &rows {
        assert_eq!(transitions.outcome(from, pass), Some(outcome(from, pass)));
    }
    let mut statement = connection.prepare("SELECT id FROM states").unwrap();
    let ids = statement.query_map([], |row| Ok(key(row.get(0)?))).unwrap();
    let mut states = 0;
    for id in ids.map(Result::unwrap) {
        assert_eq!(transitions.state(id), Some(state(id)));
        states += 1;
    }
    assert!(states >= own as usize);
    rows.len() - own as usize
}
