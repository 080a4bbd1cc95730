//! What the figures of outcomes are, in words.

use xla_gym_profile::{Comparison, Spec, Stage};
use xla_gym_report::{
    Baseline,
    results::{Header, Ratio, StageInfo},
};

/// The end of the trajectory, beside the best state on the way.
pub const END: &str = "end";

/// What the figures of outcomes are, for a compiler.
pub fn header(spec: &Spec) -> Header {
    let info = |stage: &Stage| StageInfo {
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
    let end = StageInfo {
        name: END.to_owned(),
        label: "at end".to_owned(),
        title: "at the end of the trajectory".to_owned(),
        with_interval: false,
        note: String::new(),
        ..stages[0].clone()
    };
    stages.insert(1, end);
    Header { baseline: Baseline::new(spec.words.baseline_short, spec.words.baseline), stages }
}
