//! A recipe as a file.

mod common;

use std::{fs, path::Path};

use common::{open, place, recipe};
use xla_gym_profile::Ratio;
use xla_gym_recipe::{Imported, Recipe, RecipeError, StageEvidence, VERSION};

#[test]
fn a_file_comes_back_the_same_and_is_for_people_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    let written = recipe(1, 4.0 / 3.0, 2);
    recipe(2, 9.0, 40).write(&path).unwrap();
    written.write(&path).unwrap();
    assert_eq!(Recipe::read(&path).unwrap(), written);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{\n  \"version\": 2,\n") && text.ends_with("}\n"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn errors_name_the_file_and_leave_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    let fails = || {
        let error = Recipe::read(&path).unwrap_err();
        assert!(error.to_string().contains("recipe.json"), "{error}");
        error
    };
    assert!(matches!(fails(), RecipeError::Read { .. }));
    for version in [0, 3] {
        fs::write(&path, format!("{{\"version\": {version}, \"anything\": []}}")).unwrap();
        let error = fails().to_string();
        let says = format!("has version {version}, and versions 1 to 2 are read; make it again");
        assert!(error.contains(&says), "{error}");
    }
    for (text, says) in [
        ("[2]", "not a recipe"),
        ("[1]", "not a recipe"),
        ("{\"version\": 2}", "missing field"),
        ("{\"version\": 1, \"evidence\": 3}", "not a recipe"),
        ("{\"version\": 1}", "missing field"),
    ] {
        fs::write(&path, text).unwrap();
        assert!(fails().to_string().contains(says), "{text}: {}", fails());
    }

    let mut endless = recipe(1, 2.0, 2);
    endless.evidence.stages[0].value = Some(f64::NAN);
    let error = endless.write(&path).unwrap_err();
    assert!(matches!(error, RecipeError::Doubtful { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"version\": 1}", "it is left as it was");

    let nowhere = folder.path().join("missing/recipe.json");
    let error = recipe(1, 2.0, 2).write(&nowhere).unwrap_err();
    assert!(matches!(error, RecipeError::Write { .. }), "{error}");
    assert!(error.to_string().contains("missing/recipe.json"), "{error}");
}

/// A recipe as the first version wrote it.
fn first_version(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn stage(name: &str, figures: [u64; 3], value: f64) -> StageEvidence {
    let [initial, default, result] = figures;
    let (stage, ratio) = (name.to_owned(), Ratio { initial, default, result });
    StageEvidence { stage, ratio, value: Some(value) }
}

#[test]
fn the_first_version_is_read_with_its_stages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        Recipe::read(&path).unwrap()
    };
    let found = read(&first_version("version-1.json"));
    assert_eq!((found.version, found.start.as_str(), found.pipeline.as_str()), (2, "emitted", ""));
    assert_eq!((found.passes.len(), found.evidence.figures.len()), (10, 6));
    let stages = [
        stage("order", [95, 58, 90], 0.13513513513513514),
        stage("legal", [303, 108, 88], 1.1025641025641026),
    ];
    assert_eq!(found.evidence.stages, stages);
    assert_eq!(found.evidence.stage("legal"), Some(&stages[1]));
    assert_eq!(found.evidence.stage("kernels"), None);
    assert!(found.evidence.outputs.as_ref().unwrap().is_equal());

    let own = read(&first_version("version-1-normalised.json"));
    assert!(own.is_default());
    assert_eq!((own.start.as_str(), own.evidence.stages.len()), ("normalized", 2));

    // Where the compiler itself removed nothing there was no ratio.
    let without = first_version("version-1.json").replace("1.1025641025641026", "null");
    assert_eq!(read(&without).evidence.stages[1].value, None);

    // From then on it is one of today's.
    found.write(&path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("\"version\": 2"));
    assert_eq!(Recipe::read(&path).unwrap(), found);
}

#[test]
fn stores_take_the_first_version_and_know_what_they_kept_of_it() {
    let (_folder, path) = place();
    let line = |name| first_version(name).replace('\n', "") + "\n";
    let text = line("version-1.json") + &line("version-1-normalised.json");
    let store = open(&path);
    let taken = Imported { offered: 2, taken: 2, refused: Vec::new() };
    assert_eq!(
        store.import(text.as_bytes()).unwrap(),
        taken,
        "their gains follow from their figures"
    );
    drop(store);
    // What an earlier release kept lies in the file as it was written.
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE recipes SET body = ?1 WHERE gain > 1";
    assert_eq!(connection.execute(sql, [line("version-1.json")]).unwrap(), 1);
    drop(connection);
    let known = open(&path).list().unwrap();
    assert!(known.iter().all(|recipe| recipe.version == VERSION));
    let gains: Vec<f64> = known.iter().map(|recipe| recipe.gain).collect();
    assert_eq!(gains.iter().copied().fold(1.0, f64::max), 108.0 / 88.0);
}
