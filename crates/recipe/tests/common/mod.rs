//! Recipes whose content follows from a few numbers.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use xla_gym_oracle::{Report, Verdict};
use xla_gym_profile::Ratio;
use xla_gym_protocol::Fingerprint;
use xla_gym_recipe::{
    Evidence, Program, Recipe, SearchRecord, StageEvidence, Store, StoreLimit, VERSION,
};

pub const ENGINE: &str = "xla 1";
pub const OBJECTIVE: &str = "kernels";

/// Numbers spread over all 128 bits, as true fingerprints are.
pub fn id(number: u64) -> Fingerprint {
    Fingerprint(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

pub fn verdict(verdict: Verdict) -> Option<Report> {
    Some(Report { trials: 3, elements: 12, worst: 0.1, ..Report::without_trials(verdict) })
}

pub fn recipe(program: u64, gain: f64, passes: usize) -> Recipe {
    let ratio = Ratio { initial: 100, default: 60, result: 50 };
    let stage = |name: &str, value| StageEvidence { stage: name.to_owned(), ratio, value };
    Recipe {
        version: VERSION,
        engine: ENGINE.to_owned(),
        program: Program {
            name: format!("graph-{program}"),
            fingerprint: id(program),
            instructions: 100 + program,
        },
        start: "emitted".to_owned(),
        passes: (0..passes).map(|number| format!("pass-{number}")).collect(),
        pipeline: String::new(),
        disabled_passes: vec!["cse".to_owned()],
        objective: OBJECTIVE.to_owned(),
        gain,
        evidence: Evidence {
            stages: vec![stage("order", ratio.value()), stage("legal", None)],
            figures: ["kernels", "flops"]
                .map(|figure| (figure.to_owned(), (12.0, 12.0 / gain)))
                .into(),
            outputs: verdict(Verdict::Equal),
            timing: None,
            search: SearchRecord {
                method: "beam".to_owned(),
                seed: u64::MAX,
                passes: 1000,
                pipelines: 3,
                seconds: 1.5,
                stopped: "budget".to_owned(),
            },
            dropped: vec!["a \"quoted\"\nline".to_owned()],
        },
        imported: false,
    }
}

pub fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/recipes.db");
    (folder, path)
}

pub fn open(path: &Path) -> Store {
    open_with(path, StoreLimit::default().recipes)
}

pub fn open_with(path: &Path, recipes: usize) -> Store {
    let store = Store::open(path, StoreLimit { recipes }).unwrap();
    assert_eq!(store.only_read_because(), None);
    store
}

/// The best of a program, by the usual engine and objective.
pub fn best(store: &Store, program: u64) -> Option<Recipe> {
    store.best(id(program), ENGINE, OBJECTIVE).unwrap()
}
