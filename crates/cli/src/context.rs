//! What every command shares: options, the engine, output.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{grouped, plain, state_dir};
use xla_gym_data::Library;
use xla_gym_engine::{
    Engine, EngineConfig, EngineError, Session, SourceError, default_limits, memory_for_running,
    protocol::{Limits, PassId},
};
use xla_gym_profile::Profile;

use crate::{Global, progress::Progress};

/// The options of a call, and what follows from them.
pub struct Context {
    global: Global,
}

impl Context {
    pub fn new(global: Global) -> Context {
        Context { global }
    }

    /// Whether to print JSON.
    pub fn json(&self) -> bool {
        self.global.json
    }

    /// Whether to say nothing but the result.
    pub fn quiet(&self) -> bool {
        self.global.quiet
    }

    /// A progress display that is silent when nobody looks.
    pub fn progress(&self) -> Progress {
        Progress::new(self.global.quiet)
    }

    /// The quarantine file, unless switched off, or unless there is no place for it.
    pub fn quarantine_path(&self) -> Option<PathBuf> {
        if self.global.no_quarantine {
            return None;
        }
        let path = self.global.quarantine.clone();
        path.or_else(|| match state_dir() {
            Ok(folder) => Some(folder.join("quarantine.jsonl")),
            Err(error) => {
                warn(&error.to_string());
                None
            }
        })
    }

    /// The compiler that is meant: the one that was named, or the one of a file.
    pub fn profile(&self, file: &str) -> Arc<dyn Profile> {
        let name = self.global.engine.as_deref();
        let name = name.unwrap_or_else(|| xla_gym_compilers::of_file(file));
        xla_gym_compilers::profile(name).expect("clap takes only names that there are")
    }

    /// The compiler of several programs: that of the first.
    pub fn profile_of(&self, files: &[String]) -> Arc<dyn Profile> {
        self.profile(files.first().map_or("", String::as_str))
    }

    /// The compiler that is meant where there is no file.
    pub fn usual_profile(&self) -> Arc<dyn Profile> {
        self.profile("")
    }

    /// Starts the compiler of a file, for one program at a time.
    pub fn engine(&self, file: &Path) -> Result<Engine> {
        let profile = self.profile(&file.to_string_lossy());
        Ok(Engine::start(self.config_for_one(&*profile, default_limits().pass_millis)?)?)
    }

    /// How to start a compiler for many programs at a time.
    pub fn engine_config(&self, profile: &dyn Profile) -> Result<EngineConfig> {
        self.config(profile, default_limits())
    }

    /// How to start it for one program at a time, which may be large. `pass_millis` is the time limit for
    /// a pass if nobody said otherwise.
    pub fn config_for_one(&self, profile: &dyn Profile, pass_millis: u64) -> Result<EngineConfig> {
        let limits = Limits { pass_millis, memory_bytes: memory_for_running(), ..default_limits() };
        self.config(profile, limits)
    }

    fn config(&self, profile: &dyn Profile, usual: Limits) -> Result<EngineConfig> {
        let millis = |value: f64| (value * 1000.0).ceil() as u64;
        let bytes = |value: f64| (value * f64::from(1 << 30)) as u64;
        Ok(EngineConfig {
            limits: Limits {
                pass_millis: self.global.pass_limit.map_or(usual.pass_millis, millis),
                request_millis: millis(self.global.request_limit),
                memory_bytes: self.global.memory_limit.map_or(usual.memory_bytes, bytes),
            },
            quarantine: self.quarantine_path(),
            ..profile.engine_config()?
        })
    }

    /// Loads a program: a file, or a graph of the benchmark library.
    pub fn load(&self, engine: &Engine, file: &Path) -> Result<Session> {
        let progress = self.progress();
        progress.doing(&format!("reading {}", file.display()));
        if let Some(id) = file.to_str().filter(|name| Library::is_id(name) && !file.exists()) {
            let library = Library::of_id(id)?;
            return Ok(engine.load(&library.source(library.graph(id)?)?)?);
        }
        Ok(engine.load_file(file)?)
    }

    /// Prints to standard output. What it prints may hold names that strangers chose.
    pub fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(plain(text).as_bytes())?;
        Ok(out.flush()?)
    }

    /// Prints a value as JSON.
    pub fn print_json(&self, value: &impl Serialize) -> Result<()> {
        self.print(&(serde_json::to_string_pretty(value)? + "\n"))
    }
}

/// Says something on standard error.
pub fn warn(text: &str) {
    eprintln!("xla-gym: {}", plain(text));
}

/// Whether an error only means that the reader of the output went away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Reads a list of passes: names separated by commas or white space, or `@FILE` with such a list.
pub fn parse_passes(engine: &Engine, text: &str) -> Result<Vec<PassId>> {
    let content;
    let list = match text.strip_prefix('@') {
        Some(file) => {
            content = std::fs::read_to_string(file).map_err(|error| {
                EngineError::from(SourceError::Read { path: file.into(), error })
            })?;
            &content
        }
        None => text,
    };
    let names = list
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .flat_map(|line| line.split(|c: char| c == ',' || c.is_whitespace()))
        .filter(|name| !name.is_empty());
    Ok(engine.passes(names)?)
}

/// Names with commas, or a word for no names.
pub fn or_none(names: &[String]) -> String {
    if names.is_empty() { "(none)".to_owned() } else { names.join(",") }
}

/// A float that counts something, for people.
pub fn count(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e15 { grouped(value as u64) } else { value.to_string() }
}

/// A duration in a unit that fits.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(time(Duration::from_micros(12)), "12 µs");
        assert_eq!(time(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(time(Duration::from_millis(2500)), "2.50 s");
    }
}
