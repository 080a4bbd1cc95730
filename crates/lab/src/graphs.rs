//! The test graphs, and what every experiment does with them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session,
    protocol::{Counts, Fingerprint, Finish, Limits, Observe, Pass, PassId, PipelineOptions},
};
use xla_gym_env::WorldConfig;
use xla_gym_oracle::{Options, Reference};
use xla_gym_profile::{Finished, Profile};
use xla_gym_xla_profile::{Xla, engine_config, optional};

/// Positions of the stages of XLA's pipeline: before layout assignment, and at the end.
pub const MIDDLE: usize = 0;
pub const END: usize = 1;

/// The folder of test graphs in this repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/graphs")
}

/// Every test graph: its name and file, in order.
pub fn all() -> Result<Vec<(String, PathBuf)>> {
    let folder = folder();
    let mut graphs = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        graphs.push((name.trim_end_matches(".hlo.zst").to_owned(), path.clone()));
    }
    graphs.sort();
    Ok(graphs)
}

/// XLA, with nothing remembered from earlier runs and a limit that suits an experiment.
pub fn engine(pass_seconds: u64) -> Result<Engine> {
    let limits =
        Limits { pass_millis: pass_seconds * 1000, request_millis: 120_000, memory_bytes: 6 << 30 };
    Ok(Engine::start(EngineConfig { limits, ..fresh()? })?)
}

/// How to run XLA with nothing remembered from earlier runs.
pub fn fresh() -> Result<EngineConfig> {
    Ok(EngineConfig { quarantine: None, ..engine_config()? })
}

/// A world of such an XLA, whose episodes begin at a start of its profile.
pub fn world(start: &str) -> Result<WorldConfig> {
    let config = WorldConfig::new(Arc::new(Xla::default()))?;
    Ok(WorldConfig { engine: fresh()?, start: start.to_owned(), ..config })
}

/// A session of its own at a start of XLA's profile.
pub fn start_session(session: &mut Session, start: &str) -> Result<Session> {
    let xla = Xla::default();
    let start = xla.spec().start(start).with_context(|| format!("there is no start {start}"))?;
    Ok(xla_gym_profile::start_session(&xla, session, start)?)
}

/// XLA's pipeline without its optional passes.
pub fn without_optional() -> Finish {
    without(&optional())
}

/// XLA's pipeline without some passes.
pub fn without(passes: &[String]) -> Finish {
    Finish { disabled: passes.to_vec(), ..Finish::default() }
}

/// XLA's own optimization passes, from the recording of its own run on the program.
pub fn own_order(session: &Session, default: &Finished) -> Result<Vec<PassId>, EngineError> {
    default.own_order(&Xla::default(), session)
}

/// What results are compared with.
pub fn reference(session: &mut Session, options: Options) -> Result<Reference, EngineError> {
    xla_gym_profile::reference(&Xla::default(), session, options)
}

/// What the worker counts of the current program.
pub fn counts(session: &mut Session) -> Result<Counts, EngineError> {
    let missing = || EngineError::Internal("the worker gave no counts".to_owned());
    session.observe(Observe::COUNTS)?.counts.ok_or_else(missing)
}

/// The passes that make sense before layout assignment.
pub fn usable_passes(engine: &Engine) -> Vec<PassId> {
    let passes = engine.hello().passes.iter().enumerate();
    passes.filter(|(_, pass)| is_usable(pass)).map(|(id, _)| PassId(id as u16)).collect()
}

/// Whether a pass makes sense before layout assignment.
pub fn is_usable(pass: &Pass) -> bool {
    pass.is_default_action || pass.lossy
}

/// A bar with rate and time left.
pub fn progress(total: u64, what: &str) -> ProgressBar {
    let template = format!("{what} {{bar:30}} {{pos}}/{{len}} ({{per_sec}}, {{eta}} left)");
    let style = ProgressStyle::with_template(&template);
    let bar = ProgressBar::new(total);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The middle of a list of measurements.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What XLA's own pipeline makes of a program, if it makes something.
pub fn optimized(session: &mut Session) -> Option<Fingerprint> {
    let mut scratch = session.scratch().ok()?;
    let report = scratch.pipeline(&PipelineOptions::default(), Observe::FINGERPRINT).ok()?;
    report.end()?.observation.fingerprint
}
