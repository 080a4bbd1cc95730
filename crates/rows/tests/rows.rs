//! Rows survive kills, packing, and being added to again.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use xla_gym_rows::{Appender, RowsError, pack, read, read_if_any, reader, write};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    number: u32,
    name: String,
}

fn row(number: u32) -> Row {
    Row { number, name: format!("größe {number}") }
}

fn at(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

#[test]
fn a_kill_costs_the_line_that_was_being_written_wherever_it_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let path = at(&folder, "rows.jsonl");
    let whole = [row(1), row(2)].map(|row| serde_json::to_string(&row).unwrap() + "\n").concat();
    let last = serde_json::to_string(&row(3)).unwrap();
    // In the middle of an umlaut too.
    for cut in 0..=last.len() {
        fs::write(&path, [whole.as_bytes(), &last.as_bytes()[..cut]].concat()).unwrap();
        let kept =
            if cut == last.len() { vec![row(1), row(2), row(3)] } else { vec![row(1), row(2)] };
        assert_eq!(read::<Row>(&path).unwrap(), kept, "cut at {cut}");
        Appender::open(&path).unwrap().add(&row(4)).unwrap();
        assert_eq!(read::<Row>(&path).unwrap(), [kept, vec![row(4)]].concat(), "cut at {cut}");
    }
}

#[test]
fn readers_do_not_care_which_of_the_two_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (at(&folder, "rows.jsonl"), at(&folder, "rows.jsonl.zst"));
    assert!(read_if_any::<Row>(&plain).unwrap().is_empty());
    assert!(matches!(read::<Row>(&plain), Err(RowsError::Read { .. })));
    let rows: Vec<Row> = (0..500).map(row).collect();
    write(&plain, &rows).unwrap();
    let size = fs::metadata(&plain).unwrap().len();
    assert_eq!(pack(&plain).unwrap(), packed);
    assert!(!plain.exists() && fs::metadata(&packed).unwrap().len() < size / 4);
    assert_eq!(pack(&plain).unwrap(), packed, "again");
    assert_eq!(read::<Row>(&plain).unwrap(), rows);
    assert_eq!(read_if_any::<Row>(&packed).unwrap(), rows);
    let mut text = String::new();
    reader(&packed).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 500);
    write(&packed, &rows[..3]).unwrap();
    assert_eq!(read::<Row>(&plain).unwrap(), rows[..3]);
}

#[test]
fn what_is_packed_is_unpacked_to_be_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (at(&folder, "rows.jsonl"), at(&folder, "rows.jsonl.zst"));
    write(&packed, &[row(1)]).unwrap();
    let error = Appender::open(&packed).unwrap_err().to_string();
    assert!(error.contains(plain.to_str().unwrap()), "{error}");
    Appender::open(&plain).unwrap().add(&row(2)).unwrap();
    assert_eq!(read::<Row>(&packed).unwrap(), [row(1), row(2)], "the plain one is newer");
    pack(&packed).unwrap();
    assert_eq!(read::<Row>(&packed).unwrap(), [row(1), row(2)]);
}

#[test]
fn damage_is_an_error_that_names_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (at(&folder, "rows.jsonl"), at(&folder, "rows.jsonl.zst"));
    fs::write(&plain, "{\"number\":1,\"name\":\"\"}\n{\"number\":\"x\"}\n").unwrap();
    let error = read::<Row>(&plain).unwrap_err().to_string();
    assert!(error.contains("rows.jsonl, line 2"), "{error}");
    check_damage(&plain, &packed);
}

fn check_damage(plain: &Path, packed: &Path) {
    write(plain, &(0..100).map(row).collect::<Vec<_>>()).unwrap();
    pack(plain).unwrap();
    let mut bytes = fs::read(packed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(packed, &bytes).unwrap();
    assert!(matches!(read::<Row>(plain), Err(RowsError::Read { .. } | RowsError::Line { .. })));
    fs::write(packed, &bytes[..middle]).unwrap();
    assert!(matches!(read::<Row>(plain), Err(RowsError::Read { .. })));
}
