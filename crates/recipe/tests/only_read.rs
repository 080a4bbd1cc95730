//! Stores that cannot be written. Such a place is made by starting this test once more with fewer
//! rights, for the superuser may write anywhere.

#![cfg(unix)]

mod common;

use std::{
    env, fs, io,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use common::{best, id, open, recipe};
use xla_gym_recipe::{FileError, Store, StoreError, StoreLimit};

const STORE: &str = "XLA_GYM_TEST_STORE";
const RECIPES: &str = "XLA_GYM_TEST_RECIPES";
const WITHOUT_RIGHTS: &str = "XLA_GYM_TEST_WITHOUT_RIGHTS";

/// The part that runs with fewer rights: reads what there should be and fails to add to it.
#[test]
#[ignore = "started by the other tests of this file"]
fn child() {
    let path = env::var_os(STORE).unwrap();
    let expected: u64 = env::var(RECIPES).unwrap().parse().unwrap();
    let store = Store::open(Path::new(&path), StoreLimit::default()).unwrap();
    // A full disk may show only when something is written; that one may not, shows at once.
    if env::var_os(WITHOUT_RIGHTS).is_some() {
        assert!(store.only_read_because().is_some());
    }
    assert_eq!(store.len().unwrap() as u64, expected);
    assert_eq!(store.list().unwrap().len() as u64, expected);
    for program in 0..expected + 1 {
        let known = (program < expected).then(|| recipe(program, 2.0, 2));
        assert_eq!(best(&store, program), known);
    }
    let error = store.offer(&recipe(77, 2.0, 2)).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("recipes.db") && message.contains("check"), "{message}");
    assert!(matches!(error, StoreError::OnlyRead { .. } | StoreError::Write { .. }), "{message}");
    assert!(store.forget(id(0)).is_err());
    assert_eq!(store.len().unwrap() as u64, expected);
    println!("the child is done");
}

fn run_child(mut command: Command, path: &Path, recipes: u64) {
    let output = command
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env(STORE, path)
        .env(RECIPES, recipes.to_string())
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            eprintln!("skipped: this machine knows no other user: {error}");
            return;
        }
        output => output.unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("the child is done"), "{text}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs the child as one who may not write to `denied`, a file or folder of `folder`.
fn run_without_rights(folder: &Path, denied: &Path, path: &Path, recipes: u64) {
    // Where this program lies, others may not get to. The copy is left to another process: what
    // this one has open to write, a child of another test may hold open, and then it cannot run.
    let program = folder.join("program");
    if !program.exists() {
        let copied = Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status();
        assert!(copied.unwrap().success());
    }
    set_mode(folder, 0o755);
    let mode = fs::metadata(denied).unwrap().permissions().mode();
    set_mode(denied, mode & 0o555);
    let mut command = Command::new(&program);
    command.current_dir(folder).env(WITHOUT_RIGHTS, "1");
    let probe = folder.join("probe");
    fs::write(&probe, "").unwrap();
    set_mode(&probe, 0o444);
    if fs::File::options().write(true).open(&probe).is_ok() {
        command.uid(65534).gid(65534);
    }
    run_child(command, path, recipes);
    set_mode(denied, mode);
    fs::remove_file(&probe).unwrap();
}

/// Makes a folder with a store in it. Its name has characters that mean something in the
/// addresses by which SQLite takes its options.
fn make_place(folder: &Path) -> PathBuf {
    let place = folder.join("100% #1?");
    fs::create_dir_all(&place).unwrap();
    place
}

fn fill(store: &Store) {
    for number in 0..3 {
        store.offer(&recipe(number, 2.0, 2)).unwrap();
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = make_place(folder.path());
    let path = place.join("recipes.db");
    run_without_rights(folder.path(), &place, &path, 0);
    run_without_rights(folder.path(), &place, &place.join("deep/recipes.db"), 0);

    let store = open(&path);
    fill(&store);
    // While somebody has it open, with recipes that are only in the log so far.
    run_without_rights(folder.path(), &place, &path, 3);
    drop(store);
    run_without_rights(folder.path(), &place, &path, 3);
    assert_eq!(open(&path).len().unwrap(), 3);
}

#[test]
fn a_file_that_may_not_be_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = make_place(folder.path());
    let path = place.join("recipes.db");
    fill(&open(&path));
    set_mode(&place, 0o777);
    run_without_rights(folder.path(), &path, &path, 3);
}

#[test]
fn a_broken_file_is_left_where_it_may_not_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipes.db");
    fs::write(&path, b"no database ".repeat(1000)).unwrap();
    // A folder in the place of the lock, which so cannot be had.
    fs::create_dir(folder.path().join("recipes.db.lock")).unwrap();
    let error = Store::open(&path, StoreLimit::default()).err().unwrap();
    assert!(matches!(error, StoreError::File(FileError::Open { .. })), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"no database ".repeat(1000));
}

#[test]
fn a_full_disk_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipes.db");
    let store = open(&path);
    fill(&store);
    let full = || {
        // No file may grow, and to try is an error instead of a signal.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
        command.arg(env::current_exe().unwrap());
        command
    };
    run_child(full(), &path, 3);
    drop(store);
    run_child(full(), &path, 3);
    run_child(full(), &folder.path().join("new/recipes.db"), 0);
    assert_eq!(open(&path).len().unwrap(), 3);
}
