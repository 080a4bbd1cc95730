//! The programs of `testdata/classics` print what their table says, however clang compiles them, and
//! do nothing that C leaves undefined.

mod common;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use common::{clang, classic_names, classics, run};

/// Program, name of the size, argument, checksum.
fn table() -> Vec<[String; 4]> {
    let text = fs::read_to_string(classics().join("classics.tsv")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("{cells:?}"))
    })
    .collect()
}

fn compile(program: &str, options: &[&str], to: &Path) {
    let source = classics().join(format!("{program}.c"));
    run(clang().args(["-Wall", "-Wextra", "-Werror"]).args(options).arg(source).arg("-o").arg(to));
}

#[test]
fn each_program_has_three_sizes() {
    let mut sizes: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    for [program, size, argument, _] in table() {
        sizes.entry(program).or_default().push((size, argument.parse().unwrap()));
    }
    assert_eq!(sizes.keys().cloned().collect::<Vec<_>>(), classic_names());
    for (program, sizes) in sizes {
        let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["small", "medium", "large"], "{program}");
        assert!(sizes.is_sorted_by(|a, b| a.1 < b.1), "{program}");
    }
}

fn check(options: &[&str], sizes: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for program in classic_names() {
        let binary = folder.path().join(&program);
        compile(&program, options, &binary);
        for [_, size, argument, expected] in table().iter().filter(|row| row[0] == program) {
            if sizes.contains(&size.as_str()) {
                let output = run(Command::new(&binary).arg(argument));
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!(printed, format!("{program} {expected}\n"), "{options:?} {size}");
            }
        }
    }
}

#[test]
fn they_print_the_same_without_optimisation() {
    check(&["-O0"], &["small", "medium"]);
}

#[test]
fn they_print_the_same_with_all_of_it() {
    check(&["-O3"], &["small", "medium", "large"]);
}

#[test]
fn they_do_nothing_undefined() {
    let options = ["-g", "-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    check(&options, &["small", "medium"]);
}

#[test]
fn a_wrong_size_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("sort");
    compile("sort", &["-O1"], &binary);
    for argument in ["0", "ten", ""] {
        let output = Command::new(&binary).arg(argument).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{argument}");
    }
}
