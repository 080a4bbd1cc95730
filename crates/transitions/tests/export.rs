//! The exported table, read back.

mod common;

use std::{fs, fs::File, path::Path, sync::Arc};

use common::{ENGINE, count, fill, id, on_disk, open, state};
use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use xla_gym_protocol::PassId;
use xla_gym_transitions::{
    Config, Failure, FailureKind, Names, Outcome, State, Transitions, TransitionsError,
};

/// Names of passes and metrics, for as long as the tests run.
fn names() -> Names<'static> {
    let leak = |names: &[&str]| -> &'static [String] {
        Vec::leak(names.iter().map(|name| (*name).to_owned()).collect())
    };
    Names {
        passes: leak(&["cse", "dce", "fusion"]),
        counts: leak(&["operations", "instructions"]),
        costs: leak(&["flops", "bytes"]),
    }
}

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap().1
}

fn text(text: impl ToString) -> Field {
    Field::Str(text.to_string())
}

fn numbers(field: &Field) -> Vec<u32> {
    let Field::ListInternal(list) = field else { panic!("{field:?} is no list") };
    let number = |field: &Field| match field {
        Field::Int(number) => *number as u32,
        other => panic!("{other:?} is no number"),
    };
    list.elements().iter().map(number).collect()
}

/// Four transitions from one state: a change, no change, a failure, and one into the unknown.
fn check(transitions: &Transitions, path: &Path) {
    let (from, to) = (id(1), id(2));
    let failure = Failure { kind: FailureKind::Died, message: "SIGABRT".to_owned() };
    transitions.add(from, PassId(0), Outcome::Leads(to));
    transitions.add(from, PassId(1), Outcome::Leads(from));
    transitions.add(from, PassId(2), Outcome::Fails(failure));
    transitions.add(from, PassId(9), Outcome::Leads(id(3)));
    transitions.add_state(state(from));
    let bare = State { cost: None, opcodes: Vec::new(), ..State::clone(&state(to)) };
    transitions.add_state(Arc::new(bare.clone()));

    assert_eq!(transitions.export_parquet(path, names()).unwrap(), 4);
    let rows = rows(path);
    assert_eq!(rows.len(), 4);
    let before = state(from);
    for (row, (pass, name)) in rows.iter().zip([(0, "cse"), (1, "dce"), (2, "fusion"), (9, "#9")]) {
        assert_eq!(field(row, "state"), &text(from));
        assert_eq!(field(row, "pass"), &text(name));
        assert_eq!(field(row, "pass_id"), &Field::Int(pass));
        assert_eq!(field(row, "operations_before"), &Field::Long(before.counts[0] as i64));
        assert_eq!(field(row, "instructions_before"), &Field::Long(before.counts[1] as i64));
        let cost = before.cost.unwrap();
        assert_eq!(field(row, "flops_before"), &Field::Double(cost[0]));
        assert_eq!(field(row, "bytes_before"), &Field::Double(cost[1]));
        assert_eq!(numbers(field(row, "opcodes_before")), before.opcodes);
    }
    let [change, same, fails, unknown] = &rows[..] else { unreachable!() };

    assert_eq!(field(change, "next"), &text(to));
    assert_eq!(field(change, "changed"), &Field::Bool(true));
    assert_eq!(field(change, "failure"), &Field::Null);
    assert_eq!(field(change, "operations_after"), &Field::Long(bare.counts[0] as i64));
    assert_eq!(field(change, "flops_after"), &Field::Null);
    assert_eq!(numbers(field(change, "opcodes_after")), [0; 0]);

    assert_eq!(field(same, "next"), &text(from));
    assert_eq!(field(same, "changed"), &Field::Bool(false));
    assert_eq!(numbers(field(same, "opcodes_after")), before.opcodes);

    assert_eq!(field(fails, "next"), &Field::Null);
    assert_eq!(field(fails, "changed"), &Field::Bool(false));
    assert_eq!(field(fails, "failure"), &text("died"));
    assert_eq!(field(fails, "failure_message"), &text("SIGABRT"));
    assert_eq!(field(fails, "instructions_after"), &Field::Null);

    assert_eq!(field(unknown, "next"), &text(id(3)));
    assert_eq!(field(unknown, "changed"), &Field::Bool(true));
    for column in ["operations_after", "flops_after", "opcodes_after"] {
        assert_eq!(field(unknown, column), &Field::Null);
    }
}

#[test]
fn memory_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let transitions = Transitions::open(&Config::default(), ENGINE).unwrap();
    check(&transitions, &folder.path().join("deep/table.parquet"));
    let left: Vec<_> = fs::read_dir(folder.path().join("deep")).unwrap().collect();
    assert_eq!(left.len(), 1, "no partial file stays: {left:?}");
}

#[test]
fn the_disk_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("transitions.sqlite");
    let other = Transitions::open(&on_disk(&file), "toy 2").unwrap();
    fill(&other, 0..10);
    drop(other);
    check(&open(&file), &folder.path().join("table.parquet"));
}

#[test]
fn many_rows_are_exported_once_each_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let transitions = open(&folder.path().join("transitions.sqlite"));
    let table = folder.path().join("table.parquet");
    assert_eq!(transitions.export_parquet(&table, names()).unwrap(), 0);
    assert!(rows(&table).is_empty());

    fill(&transitions, 0..40_000);
    assert_eq!(transitions.export_parquet(&table, names()).unwrap(), 40_000);
    let key = |row: &Row| (field(row, "state").to_string(), field(row, "pass_id").to_string());
    let keys: Vec<_> = rows(&table).iter().map(key).collect();
    assert_eq!(keys.len(), 40_000);
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert_eq!(count(&transitions, 0..40_000)[0], 40_000);
}

#[test]
fn a_link_to_a_table_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let transitions = Transitions::open(&Config::default(), ENGINE).unwrap();
    let (table, link) = (folder.path().join("table.parquet"), folder.path().join("link"));
    transitions.export_parquet(&table, names()).unwrap();
    std::os::unix::fs::symlink("table.parquet", &link).unwrap();
    fill(&transitions, 0..10);
    assert_eq!(transitions.export_parquet(&link, names()).unwrap(), 10);
    assert!(fs::read_link(&link).is_ok());
    assert_eq!(rows(&table).len(), 10);
}

#[test]
fn a_table_that_cannot_be_written_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let transitions = Transitions::open(&Config::default(), ENGINE).unwrap();
    fill(&transitions, 0..10);
    let error = transitions.export_parquet(folder.path(), names()).unwrap_err();
    assert!(matches!(error, TransitionsError::Export { .. }));
    let error = transitions.export_parquet(Path::new("/dev/null"), names()).unwrap_err();
    assert!(error.to_string().contains("/dev/null"), "{error}");
    assert!(!fs::metadata("/dev/null").unwrap().is_file(), "it is still a device");
    let parent = folder.path().parent().unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    let partial = fs::read_dir(parent)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .find(|file| file.starts_with(&name) && file.ends_with(".partial"));
    assert_eq!(partial, None);
}
