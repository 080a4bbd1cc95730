//! What the figures of outcomes are, in the words of a compiler's profile.

use xla_gym_profile::{self as profile, Comparison, Spec};
use xla_gym_report::{
    Baseline,
    results::{Header, Outcome, Ratio, StageInfo},
};

/// The stage at the end of the trajectory; all others are those of the profile.
pub const END: &str = "end";

/// What the figures of outcomes on a compiler are.
pub fn header(spec: &Spec) -> Header {
    let info = |stage: &profile::Stage| StageInfo {
        name: stage.name.to_owned(),
        label: stage.name.to_owned(),
        title: stage.title.to_owned(),
        things: stage.things.to_owned(),
        ratio: match stage.comparison {
            Comparison::Reduction => Ratio::Removed,
            Comparison::Quotient => Ratio::Left,
        },
        with_interval: true,
        note: stage.note.to_owned(),
    };
    let mut stages: Vec<StageInfo> = spec.stages.iter().map(info).collect();
    if let Some(first) = stages.first_mut() {
        first.title = "at the best state on the way".to_owned();
        let end = StageInfo {
            name: END.to_owned(),
            label: "at end".to_owned(),
            title: "at the end of the trajectory".to_owned(),
            with_interval: false,
            ..first.clone()
        };
        stages.insert(1, end);
    }
    let words = spec.words;
    Header { baseline: Baseline::new(words.baseline_short, words.baseline), stages }
}

/// Whether an outcome says something at every stage. Not everybody has a trajectory that ends.
pub fn is_whole(outcome: &Outcome, header: &Header) -> bool {
    let needed = header.stages.iter().filter(|stage| stage.name != END);
    needed.into_iter().all(|stage| outcome.stage(&stage.name).is_some())
}
