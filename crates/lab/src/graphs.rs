//! The test graphs, and what every experiment does with them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use xla_gym_engine::{
    Engine, EngineConfig, Session,
    protocol::{Fingerprint, Limits, Observe, PassId, PipelineOptions},
};

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
    let config = EngineConfig {
        quarantine: None,
        limits: Limits {
            pass_millis: pass_seconds * 1000,
            request_millis: 120_000,
            memory_bytes: 6 << 30,
        },
        ..EngineConfig::xla()?
    };
    Ok(Engine::start(config)?)
}

/// The passes that make sense before layout assignment.
pub fn usable_passes(engine: &Engine) -> Vec<PassId> {
    let passes = engine.hello().passes.iter().enumerate();
    passes.filter(|(_, pass)| !pass.after_layout).map(|(id, _)| PassId(id as u16)).collect()
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
pub fn optimised(session: &mut Session) -> Option<Fingerprint> {
    let mut scratch = session.scratch().ok()?;
    let report = scratch.pipeline(&PipelineOptions::default(), Observe::FINGERPRINT).ok()?;
    report.end?.fingerprint
}
