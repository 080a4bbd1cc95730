//! Which crate may depend on which.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::rooms::{KNOWS_COMPILERS, compiler_of, floor_of};

/// Edges that the floors would allow and that nobody wants: each was there for one function or type,
/// whose place is below both.
pub const UNWANTED: &[(&str, &str, &str)] = &[
    ("env", "oracle", "the making of inputs"),
    ("contest", "optimize", "the coreset"),
    ("agents", "report", "the record of a training run"),
    ("contest", "report", "the record of a contest's outcome"),
    ("proof", "report", "the record of what was found of outputs"),
];

/// Those of them that are still there. A row goes with its edge; none may come.
pub const LEAVING: &[(&str, &str)] =
    &[("env", "oracle"), ("agents", "report"), ("contest", "report"), ("proof", "report")];

/// Crates that must not depend on any other of ours.
const ALONE: [&str; 4] = ["common", "protocol", "shared-file", "house"];

/// A crate as its `Cargo.toml` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crate {
    /// The package's name.
    pub package: String,
    /// Folders of the crates of ours that it is built from.
    pub needs: Vec<String>,
    /// Folders of the crates of ours that only its tests need.
    pub tested_with: Vec<String>,
}

/// All crates, by their folders.
pub type Crates = BTreeMap<String, Crate>;

/// Reads the `Cargo.toml` of every folder in `crates`.
pub fn read(workspace: &Path) -> Result<Crates> {
    let mut manifests = BTreeMap::new();
    for entry in fs::read_dir(workspace.join("crates")).context("there is no folder crates")? {
        let folder = entry?.path();
        let path = folder.join("Cargo.toml");
        if !path.is_file() {
            continue;
        }
        let named = || path.display().to_string();
        let manifest: Table = fs::read_to_string(&path).with_context(named)?.parse()?;
        let package = manifest.get("package").and_then(|package| package.get("name"));
        let package = package.and_then(Value::as_str).with_context(named)?.to_owned();
        let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        manifests.insert(folder, (package, manifest));
    }
    let folders: BTreeMap<&str, &str> = manifests
        .iter()
        .map(|(folder, (package, _))| (package.as_str(), folder.as_str()))
        .collect();
    let ours = |names: Vec<&str>| -> Vec<String> {
        names.into_iter().filter_map(|name| folders.get(name)).map(|f| (*f).to_owned()).collect()
    };
    let as_crate = |(folder, (package, manifest)): (&String, &(String, Table))| {
        let mut needs = dependencies(manifest, "dependencies");
        needs.extend(dependencies(manifest, "build-dependencies"));
        let tested_with = ours(dependencies(manifest, "dev-dependencies"));
        (folder.clone(), Crate { package: package.clone(), needs: ours(needs), tested_with })
    };
    Ok(manifests.iter().map(as_crate).collect())
}

/// Names of packages in a table of dependencies, those for some targets only included.
fn dependencies<'a>(manifest: &'a Table, kind: &str) -> Vec<&'a str> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    let entries = tables.filter_map(|table| table.get(kind)?.as_table()).flatten();
    let name = |(key, value): (&'a String, &'a Value)| {
        value.get("package").and_then(Value::as_str).unwrap_or(key)
    };
    entries.map(name).collect()
}

/// What is against the rules, a sentence each.
pub fn check(crates: &Crates, leaving: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (folder, each) in crates {
        let expected = if folder == "cli" { "xla-gym" } else { &format!("xla-gym-{folder}") };
        if each.package != expected {
            wrong.push(format!(
                "crates/{folder}: the package is called {}; call it {expected}, as its folder is",
                each.package
            ));
        }
        if compiler_of(folder).is_none() && floor_of(folder).is_none() {
            wrong.push(format!(
                "crates/{folder}: say on which floor it stands, in crates/house/src/rooms.rs"
            ));
        }
        // Tests may meet real compilers wherever they stand.
        let in_tests = each.tested_with.iter();
        let in_tests = in_tests.filter(|to| compiler_of(to).is_none() || to.ends_with("-shim"));
        for to in each.needs.iter().chain(in_tests) {
            wrong.extend(reason_against(folder, to).map(|reason| {
                format!("crates/{folder}/Cargo.toml: it must not depend on {to}: {reason}")
            }));
        }
    }
    let is_there = |from: &str, to: &str| {
        crates.get(from).is_some_and(|each| each.needs.iter().any(|need| need == to))
    };
    for (from, to, what) in UNWANTED {
        if is_there(from, to) && !leaving.contains(&(from, to)) {
            wrong.push(format!(
                "crates/{from}/Cargo.toml: it must not depend on {to}, as it once did for {what}; \
                 put what both need into a crate below both"
            ));
        }
    }
    for (from, to) in leaving {
        if !is_there(from, to) {
            wrong.push(format!(
                "{from} does not depend on {to} any more, so that it never shall again: take the \
                 row out of LEAVING in crates/house/src/graph.rs"
            ));
        }
    }
    wrong
}

/// Why a crate must not depend on another, if it must not.
fn reason_against(from: &str, to: &str) -> Option<String> {
    if ALONE.contains(&from) {
        return Some(format!("{from} stands below all and needs no crate of ours"));
    }
    match (compiler_of(from), compiler_of(to)) {
        (Some(one), Some(other)) if one != other => {
            Some(format!("what {one} and {other} share belongs in a general crate"))
        }
        // What wraps a compiler's library is seen by the process in which it runs, and nobody else.
        (one, Some(_)) if to.ends_with("-shim") => {
            let worker = from.ends_with("-worker") && one.is_some();
            (!worker).then(|| "only the worker may see the compiler's library".to_owned())
        }
        (Some(_), Some(_)) => None,
        (None, Some(compiler)) => (!KNOWS_COMPILERS.contains(&from)).then(|| {
            format!(
                "a general crate knows no compiler, and {to} is {compiler}'s; take what is \
                     needed as an argument, and let `compilers` hand it in"
            )
        }),
        (Some(_), None) => (KNOWS_COMPILERS.contains(&to) || to == "contest")
            .then(|| format!("{to} is put together from compilers' crates and what uses them")),
        (None, None) => {
            let (Some(own), Some(other)) = (floor_of(from), floor_of(to)) else { return None };
            (own <= other).then(|| {
                format!("it stands on floor {own} and {to} on floor {other}, which is not below")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates with what they are built from and what they are tested with.
    fn crates(edges: &[(&str, &[&str], &[&str])]) -> Crates {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let each = |(folder, needs, tested_with): &(&str, &[&str], &[&str])| {
            let package = if *folder == "cli" { String::new() } else { format!("-{folder}") };
            let package = format!("xla-gym{package}");
            (
                (*folder).to_owned(),
                Crate { package, needs: own(needs), tested_with: own(tested_with) },
            )
        };
        edges.iter().map(each).collect()
    }

    #[track_caller]
    fn check_edge(from: &str, to: &str, expected: Option<&str>) {
        let found = check(&crates(&[(from, &[to], &[])]), &[]);
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(reason) => {
                assert_eq!(found.len(), 1, "{found:?}");
                let said = &found[0];
                assert!(said.contains(&format!("crates/{from}/Cargo.toml")), "{said}");
                assert!(said.contains(reason) && said.contains(to), "{said}");
            }
        }
    }

    #[test]
    fn dependencies_point_one_way() {
        check_edge("search", "env", None);
        check_edge("env", "search", Some("floor"));
        check_edge("agents", "optimize", Some("floor"));
        check_edge("protocol", "common", Some("stands below all"));
        check_edge("common", "events", Some("stands below all"));
    }

    #[test]
    fn a_general_crate_knows_no_compiler() {
        for general in ["engine", "env", "profile", "optimize", "agents", "worker", "contest"] {
            for compilers in ["xla-shim", "xla-worker", "toy-worker", "llvm-data", "xla"] {
                let reason =
                    if compilers.ends_with("-shim") { "only the worker" } else { "no compiler" };
                check_edge(general, compilers, Some(reason));
            }
            check_edge(general, "compilers", Some("floor"));
        }
        for knows in KNOWS_COMPILERS {
            check_edge(knows, "llvm-profile", None);
            check_edge(knows, "xla-shim", Some("only the worker"));
        }
    }

    #[test]
    fn compilers_use_what_is_general_and_not_each_other() {
        check_edge("xla-worker", "xla-shim", None);
        check_edge("xla-profile", "xla-shim", Some("only the worker"));
        check_edge("toy-worker", "worker", None);
        check_edge("llvm-profile", "profile", None);
        check_edge("llvm-profile", "xla-profile", Some("general crate"));
        check_edge("xla-profile", "cli", Some("put together"));
        check_edge("toy-profile", "compilers", Some("put together"));
    }

    #[test]
    fn tests_of_a_general_crate_may_meet_compilers() {
        let tests = crates(&[("env", &[], &["toy-profile", "xla-profile", "data"])]);
        assert_eq!(check(&tests, &[]), [""; 0]);
        assert_eq!(check(&crates(&[("env", &[], &["xla-shim"])]), &[]).len(), 1);
        assert_eq!(check(&crates(&[("env", &[], &["search"])]), &[]).len(), 1);
    }

    #[test]
    fn a_crate_has_a_floor_and_the_name_of_its_folder() {
        let mut strange = crates(&[("cellar", &[], &[])]);
        assert!(check(&strange, &[])[0].contains("on which floor"));
        strange = crates(&[("engine", &[], &[])]);
        strange.entry("engine".to_owned()).or_default().package = "engine".to_owned();
        assert!(check(&strange, &[])[0].contains("call it xla-gym-engine"));
    }

    #[test]
    fn an_unwanted_edge_goes_and_never_comes_back() {
        let (with, without) = (crates(&[("env", &["oracle"], &[])]), crates(&[("env", &[], &[])]));
        let row = [("env", "oracle")];
        assert_eq!(check(&with, &row), [""; 0]);
        assert!(check(&without, &row)[0].contains("take the row out"));
        assert_eq!(check(&without, &[]), [""; 0]);
        assert!(check(&with, &[])[0].contains("must not depend on oracle"));
    }

    #[test]
    fn manifests_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let crate_folder = folder.path().join("crates").join(name);
            fs::create_dir_all(&crate_folder).unwrap();
            fs::write(crate_folder.join("Cargo.toml"), text).unwrap();
        };
        write("xla-worker", "[package]\nname = \"worker-of-xla\"");
        write(
            "engine",
            "[package]\nname = \"xla-gym-engine\"\n\
             [dependencies]\nserde = \"1\"\nother = { package = \"worker-of-xla\", path = \"..\" }\n\
             [dev-dependencies]\nxla-gym-engine.workspace = true\n\
             [target.'cfg(unix)'.build-dependencies]\nworker-of-xla = { path = \"..\" }",
        );
        fs::create_dir(folder.path().join("crates/no-crate")).unwrap();
        let read = read(folder.path()).unwrap();
        let worker = || "xla-worker".to_owned();
        let engine = Crate {
            package: "xla-gym-engine".to_owned(),
            needs: vec![worker(), worker()],
            tested_with: vec!["engine".to_owned()],
        };
        assert_eq!(read["engine"], engine);
        assert_eq!(read.len(), 2);
        assert!(check(&read, &[]).iter().any(|said| said.contains("knows no compiler")));
    }
}
