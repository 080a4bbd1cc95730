//! What XLA's programs are measured by, in words.

use xla_gym_report::{
    Baseline,
    results::{Header, Ratio, StageInfo},
};

/// Operations at the best state on the way.
pub const ORDER: &str = "order";
/// Operations at the end of the trajectory.
pub const END: &str = "end";
/// Operations before layout assignment, from the program made legal.
pub const LEGAL: &str = "legal";
/// Kernels of what comes of that.
pub const KERNELS: &str = "kernels";

/// What the figures of outcomes are.
pub fn header() -> Header {
    let stage = |name: &str, label: &str, title: &str| StageInfo {
        name: name.to_owned(),
        label: label.to_owned(),
        title: title.to_owned(),
        things: "operations".to_owned(),
        ratio: Ratio::Removed,
        with_interval: true,
        note: String::new(),
    };
    let end = stage(END, "at end", "at the end of the trajectory");
    Header {
        baseline: Baseline::new("XLA's own", "XLA's own order"),
        stages: vec![
            stage(ORDER, "order", "at the best state on the way"),
            StageInfo { with_interval: false, ..end },
            stage(LEGAL, "legal", "legal programs"),
            StageInfo {
                things: "kernels".to_owned(),
                ratio: Ratio::Left,
                note: "after the whole pipeline".to_owned(),
                ..stage(KERNELS, "kernels", "kernels")
            },
        ],
    }
}
