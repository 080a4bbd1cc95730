//! What XLA's CPU compiler does with a program.

use std::{collections::BTreeSet, time::Duration};

use serde::Serialize;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{
        Cost, Counts, Fingerprint, Needs, Observation, Observe, PassId, PipelineOptions,
        PipelinePass,
    },
};

use crate::roles::is_optimisation;

/// The pass with which the target-independent part ends.
const LAYOUT_ASSIGNMENT: &str = "layout-assignment";

/// XLA's own run on a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DefaultRun {
    /// Just before layout assignment.
    pub middle: Counts,
    /// At the end; its operations are the kernels.
    pub end: Counts,
    /// The compiler's estimate of the work that is left at the end.
    pub end_cost: Option<Cost>,
    /// What the program at the end needs beside inputs and outputs, by the compiler's own buffer
    /// assignment.
    pub memory: Option<Needs>,
    /// The program at the end.
    pub end_fingerprint: Option<Fingerprint>,
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
    let look = Observe::COUNTS.and(Observe::COST).and(Observe::FINGERPRINT);
    let report = session.scratch()?.pipeline(&options, look)?;
    let passes_before_layout = report
        .passes
        .iter()
        .position(|pass| pass.pass == LAYOUT_ASSIGNMENT)
        .unwrap_or(report.passes.len());
    let end = report.end.unwrap_or_default();
    Ok(DefaultRun {
        middle: counts(&report.middle.unwrap_or_default())?,
        end: counts(&end)?,
        end_cost: end.cost.and_then(Result::ok),
        memory: report.memory,
        end_fingerprint: end.fingerprint,
        passes: report.passes,
        passes_before_layout,
        time: Duration::from_nanos(report.nanos),
    })
}

/// The optimisation passes of XLA's own run, before layout assignment, as passes of ours: the
/// same order, the same repetitions, the compiler's own options.
pub fn default_passes(session: &Session, default: &DefaultRun) -> Result<Vec<PassId>, EngineError> {
    default.passes[..default.passes_before_layout]
        .iter()
        .filter(|pass| is_optimisation(&pass.pass))
        .map(|pass| session.engine().pass(own_option(&pass.pass)))
        .collect()
}

/// The pass of ours that has the options with which XLA's CPU compiler runs one of its passes.
pub fn own_option(pass: &str) -> &str {
    match pass {
        // It inlines only what is called once.
        "call-inliner" => "call-inliner:single-call-site",
        name => name,
    }
}

/// The same by XLA itself: the real pipeline with every pass switched off that its own run
/// recorded before layout assignment and that does not optimise. An independent check of
/// [`default_passes`]. The back end may refuse what is not legalised; by then the counts are
/// taken.
pub fn run_without_legalisation(
    session: &mut Session,
    default: &DefaultRun,
) -> Result<Counts, EngineError> {
    let recorded = &default.passes[..default.passes_before_layout];
    let pipelines: BTreeSet<&str> = default.passes.iter().map(|pass| &*pass.pipeline).collect();
    let disable: BTreeSet<&str> = recorded
        .iter()
        .map(|pass| &*pass.pass)
        .filter(|pass| !is_optimisation(pass) && !pipelines.contains(pass))
        .collect();
    let options = PipelineOptions {
        disable: disable.into_iter().map(str::to_owned).collect(),
        middle: true,
        until_middle: true,
        ..PipelineOptions::default()
    };
    let report = session.scratch()?.pipeline(&options, Observe::COUNTS)?;
    counts(&report.middle.unwrap_or_default())
}

pub(crate) fn counts(observation: &Observation) -> Result<Counts, EngineError> {
    observation.counts.ok_or_else(|| EngineError::Internal("the worker gave no counts".to_owned()))
}
