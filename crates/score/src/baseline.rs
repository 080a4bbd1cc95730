//! What XLA's CPU compiler does with a program.

use std::time::Duration;

use serde::Serialize;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Counts, Observation, Observe, PassId, PipelineOptions, PipelinePass},
};

use crate::roles::{OPTIMISATION, is_optimisation};

/// The pass with which the target-independent part ends.
const LAYOUT_ASSIGNMENT: &str = "layout-assignment";

/// XLA's own run on a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DefaultRun {
    /// Just before layout assignment.
    pub middle: Counts,
    /// At the end; its operations are the kernels.
    pub end: Counts,
    /// Every pass, in order.
    pub passes: Vec<PipelinePass>,
    /// How many of them ran before layout assignment.
    pub passes_before_layout: usize,
    /// Time of the whole pipeline, without code generation.
    pub time: Duration,
}

/// Runs the real pipeline without the passes in `disable`.
pub fn run_default(session: &mut Session, disable: &[String]) -> Result<DefaultRun, EngineError> {
    let options =
        PipelineOptions { disable: disable.to_vec(), middle: true, ..PipelineOptions::default() };
    let report = session.scratch()?.pipeline(&options, Observe::COUNTS)?;
    let passes_before_layout = report
        .passes
        .iter()
        .position(|pass| pass.pass == LAYOUT_ASSIGNMENT)
        .unwrap_or(report.passes.len());
    Ok(DefaultRun {
        middle: counts(&report.middle.unwrap_or_default())?,
        end: counts(&report.end)?,
        passes: report.passes,
        passes_before_layout,
        time: Duration::from_nanos(report.nanos),
    })
}

/// The optimisation passes of XLA's own run, before layout assignment, as passes of ours: the
/// same order, the same repetitions, the compiler's own options.
pub fn default_passes(
    session: &Session,
    default: &DefaultRun,
) -> Result<Vec<PassId>, EngineError> {
    default.passes[..default.passes_before_layout]
        .iter()
        .filter(|pass| is_optimisation(&pass.pass))
        .map(|pass| {
            session.engine().pass(match pass.pass.as_str() {
                // The CPU compiler inlines only what is called once.
                "call-inliner" => "call-inliner:single-call-site",
                name => name,
            })
        })
        .collect()
}

/// The same by XLA itself: the real pipeline with nothing but its optimisation passes enabled,
/// up to layout assignment. An independent check of [`default_passes`]; the back end may refuse
/// what is not legalised.
pub fn run_only_optimisation(session: &mut Session) -> Result<Counts, EngineError> {
    // Inner pipelines count as passes.
    const PIPELINES: [&str; 2] = ["simplification", "post_scatter_expansion_simplification"];
    let only = OPTIMISATION
        .iter()
        .chain(&PIPELINES)
        .chain([&LAYOUT_ASSIGNMENT])
        .map(|&name| name.to_owned())
        .collect();
    let options = PipelineOptions { only, middle: true, ..PipelineOptions::default() };
    let report = session.scratch()?.pipeline(&options, Observe::COUNTS)?;
    counts(&report.middle.unwrap_or_default())
}

pub(crate) fn counts(observation: &Observation) -> Result<Counts, EngineError> {
    observation
        .counts
        .ok_or_else(|| EngineError::Internal("the worker gave no counts".to_owned()))
}
