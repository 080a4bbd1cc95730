//! Records are read as they were written.

use std::{collections::BTreeMap, fmt::Debug};

use serde::{Serialize, de::DeserializeOwned};
use xla_gym_records::{Header, Kind, Outcome, Outputs, Progress, Ratio, Stage, StageInfo};

/// Reads what was written, and gives the line.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(record: &T) -> String {
    let line = serde_json::to_string(record).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&line).unwrap(), record, "{line}");
    line
}

#[test]
fn lines_of_json_are_read() {
    let legal = Stage {
        claimed: Some(4.0),
        outputs: Some(Outputs::NotComparable("it draws random numbers".to_owned())),
        passes: Some(vec!["dce".to_owned()]),
        ..Stage::left("legal", 9.0, 9.0)
    };
    let outcome = Outcome {
        graph: "mlp".to_owned(),
        splits: vec!["test".to_owned()],
        contestant: "ppo".to_owned(),
        kind: Kind::Search,
        seed: 3,
        weights: Some("ppo-3".to_owned()),
        budget: 100,
        charged: 99,
        stages: vec![Stage::new("order", 12.0, 10.0, 9.0), legal],
        seconds: 0.5,
        refused: Some("no".to_owned()),
        why: Some("it was refused".to_owned()),
        guilty: Some("dce".to_owned()),
    };
    check(&outcome);
    let progress = Progress {
        run: "a".to_owned(),
        step: 64,
        ratio: 0.5,
        validation: Some(1.25),
        figures: BTreeMap::from([("entropy".to_owned(), 2.5)]),
        ..Progress::default()
    };
    check(&progress);
    let info = StageInfo { name: "size".to_owned(), ratio: Ratio::Left, ..StageInfo::default() };
    check(&Header { stages: vec![info], ..Header::default() });
}

#[test]
fn what_is_not_known_is_not_written() {
    let line =
        check(&Outcome { stages: vec![Stage::left("size", 2.0, 1.0)], ..Outcome::default() });
    for absent in ["initial", "claimed", "outputs", "passes", "weights", "refused", "guilty"] {
        assert!(!line.contains(absent), "{absent}: {line}");
    }
}

#[test]
fn an_outcome_is_proven_if_every_stage_was_found_equal() {
    let check = |outputs: &[Option<Outputs>], expected: bool| {
        let stage = |outputs: &Option<Outputs>| Stage {
            outputs: outputs.clone(),
            ..Stage::new("size", 3.0, 2.0, 1.0)
        };
        let stages = outputs.iter().map(stage).collect();
        let outcome = Outcome { stages, ..Outcome::default() };
        assert_eq!(outcome.is_proven(), expected, "{outputs:?}");
    };
    check(&[], false);
    check(&[Some(Outputs::Equal)], true);
    // What is not said of a later stage is as at the one before; of the first, nobody ran it.
    check(&[Some(Outputs::Equal), None], true);
    check(&[None, Some(Outputs::Equal)], false);
    check(&[Some(Outputs::Equal), Some(Outputs::Different)], false);
}
