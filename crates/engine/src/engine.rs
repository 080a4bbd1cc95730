//! The engine: one compiler, ready to make sessions.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use xla_gym_common::state_dir;
use xla_gym_protocol::{Form, Hello, Limits, PROTOCOL_VERSION, PassId, ProgramId, Reply, Request};

use crate::{
    error::{Death, EngineError},
    quarantine::Quarantine,
    session::Session,
    source::Source,
    worker::{Silence, Worker},
};

/// How often a worker that vanishes without a word is replaced before giving up.
pub(crate) const ATTEMPTS: u32 = 5;

/// 30 s a pass, 2 minutes for anything else, 8 GiB.
pub fn default_limits() -> Limits {
    Limits { pass_millis: 30_000, request_millis: 120_000, memory_bytes: 8 << 30 }
}

/// What one worker at a time may take, in bytes, where programs are run: two thirds of the machine's
/// memory, from 4 to 14 GiB.
pub fn memory_for_running() -> u64 {
    let total = || -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let kibibytes = total().unwrap_or(12 << 20);
    (kibibytes * 1024 / 3 * 2).clamp(4 << 30, 14 << 30)
}

/// How to run an engine.
///
/// ```
/// use xla_gym_engine::{EngineConfig, protocol::Limits};
///
/// let mut config = EngineConfig::new("target/release/xla-gym-worker-toy".into());
/// config.limits = Limits { pass_millis: 1_000, ..config.limits };
/// assert_eq!(config.quarantine, None);
/// ```
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The worker program.
    pub worker: PathBuf,
    /// Variables of the worker's environment that are set, or removed if None.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Limits of every worker.
    pub limits: Limits,
    /// Where failures are remembered; in memory only if None.
    pub quarantine: Option<PathBuf>,
    /// Workers kept ready beside those in use.
    pub warm_workers: usize,
    /// A session freezes a copy of itself whenever its passes since the last copy took longer
    /// than this, so that recovery never replays more. A copy costs about a millisecond.
    pub freeze_after: Duration,
}

impl EngineConfig {
    /// The configuration for the worker of an engine, found by [`find_worker`], remembering failures
    /// in the user's state folder.
    pub fn named(engine: &str) -> Result<EngineConfig, EngineError> {
        Ok(EngineConfig {
            quarantine: state_dir().ok().map(|folder| folder.join("quarantine.jsonl")),
            ..EngineConfig::new(find_worker(engine)?)
        })
    }

    /// The configuration for any worker, remembering failures in memory only.
    pub fn new(worker: PathBuf) -> EngineConfig {
        EngineConfig {
            worker,
            environment: Vec::new(),
            limits: default_limits(),
            quarantine: None,
            warm_workers: 1,
            freeze_after: Duration::from_millis(200),
        }
    }
}

/// The worker program of an engine: `$XLA_GYM_WORKER_<ENGINE>`, else beside the running program.
pub fn find_worker(engine: &str) -> Result<PathBuf, EngineError> {
    let variable = format!("XLA_GYM_WORKER_{}", engine.to_uppercase());
    if let Some(path) = env::var_os(&variable) {
        return Ok(path.into());
    }
    let name = format!("xla-gym-worker-{engine}");
    // Tests and examples run from a folder below the one with the binaries.
    let looked_at: Vec<PathBuf> = env::current_exe()
        .unwrap_or_default()
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name))
        .collect();
    match looked_at.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(EngineError::WorkerNotFound { name, variable, looked_at, target: "build" }),
    }
}

/// One compiler, ready to make sessions. Cheap to clone, shared between threads.
///
/// ```no_run
/// use xla_gym_engine::{Engine, EngineConfig};
///
/// let engine = Engine::start(EngineConfig::named("toy")?)?;
/// for pass in &engine.hello().passes {
///     println!("{}: {}", pass.name, pass.description);
/// }
/// let error = engine.pass("dedupe").unwrap_err();
/// println!("{error}"); // It names passes that are called almost so.
/// # Ok::<(), xla_gym_engine::EngineError>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    config: EngineConfig,
    hello: Hello,
    quarantine: Quarantine,
    workers: Mutex<Workers>,
}

struct Workers {
    // Dropped in this order: the stem sees the others end.
    warm: Vec<Worker>,
    /// Never loads a program; all others are forked from it.
    stem: Worker,
}

impl Engine {
    /// Starts the compiler.
    pub fn start(config: EngineConfig) -> Result<Engine, EngineError> {
        let (stem, hello) = start_stem(&config)?;
        let quarantine = match &config.quarantine {
            Some(path) => Quarantine::open(path, &engine_name(&hello)).map_err(|error| {
                EngineError::Internal(format!("the quarantine {}: {error}", path.display()))
            })?,
            None => Quarantine::in_memory(),
        };
        let workers = Mutex::new(Workers { warm: Vec::new(), stem });
        let engine = Engine { shared: Arc::new(Shared { config, hello, quarantine, workers }) };
        engine.refill()?;
        Ok(engine)
    }

    /// What the compiler says about itself.
    pub fn hello(&self) -> &Hello {
        &self.shared.hello
    }

    /// Name and version in one, as the quarantine and recipes carry it.
    pub fn name(&self) -> String {
        engine_name(&self.shared.hello)
    }

    /// The configuration it was started with.
    pub fn config(&self) -> &EngineConfig {
        &self.shared.config
    }

    /// The remembered failures.
    pub fn quarantine(&self) -> &Quarantine {
        &self.shared.quarantine
    }

    /// Finds a pass by name.
    pub fn pass(&self, name: &str) -> Result<PassId, EngineError> {
        let passes = &self.shared.hello.passes;
        match passes.iter().position(|pass| pass.name == name) {
            Some(index) => Ok(PassId(index as u16)),
            None => Err(EngineError::UnknownPass {
                name: name.to_owned(),
                suggestions: similar(name, passes.iter().map(|pass| pass.name.as_str())),
            }),
        }
    }

    /// Finds several passes by name.
    pub fn passes<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<PassId>, EngineError> {
        names.into_iter().map(|name| self.pass(name)).collect()
    }

    /// The name of a pass.
    pub fn pass_name(&self, pass: PassId) -> &str {
        &self.shared.hello.passes[usize::from(pass.0)].name
    }

    /// The opcodes that occur, by name, of the counts of an observation.
    pub fn name_opcodes(&self, counts: Vec<u32>) -> impl Iterator<Item = (String, u32)> {
        let named = self.hello().opcodes.iter().cloned().zip(counts);
        named.filter(|(_, count)| *count > 0)
    }

    /// Loads a program, refusing what the compiler's verifier refuses.
    pub fn load(&self, source: &Source) -> Result<Session, EngineError> {
        Session::load(self, source.clone())
    }

    /// Reads and loads a file (`-` for standard input).
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<Session, EngineError> {
        self.load(&Source::read(path.as_ref())?)
    }

    /// A worker without programs.
    pub(crate) fn worker(&self) -> Result<Worker, EngineError> {
        let mut workers = self.workers();
        if let Some(worker) = workers.warm.pop() {
            return Ok(worker);
        }
        self.fork_stem(&mut workers)
    }

    /// Tops the warm workers up; called where nobody waits.
    pub(crate) fn refill(&self) -> Result<(), EngineError> {
        let mut workers = self.workers();
        while workers.warm.len() < self.shared.config.warm_workers {
            let worker = self.fork_stem(&mut workers)?;
            workers.warm.push(worker);
        }
        Ok(())
    }

    fn fork_stem(&self, workers: &mut Workers) -> Result<Worker, EngineError> {
        for _ in 0..ATTEMPTS {
            match workers.stem.fork() {
                Ok(worker) => return Ok(worker),
                Err(
                    silence @ (Silence::Confused(_)
                    | Silence::Lost(_)
                    | Silence::Interrupted
                    | Silence::Unforkable),
                ) => {
                    return Err(silence.into_error("starting a worker"));
                }
                Err(Silence::Died(_)) => workers.stem = start_stem(&self.shared.config)?.0,
            }
        }
        Err(EngineError::Internal("the compiler worker dies as soon as it starts".to_owned()))
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.shared.workers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Loads a source into a fresh worker.
    pub(crate) fn load_into_worker(
        &self,
        source: &Source,
    ) -> Result<(Worker, ProgramId), EngineError> {
        let mut bytes = source.bytes.to_vec();
        let mut converted = false;
        // Each warm worker may have been killed while it waited.
        let mut attempts = ATTEMPTS as usize + self.shared.config.warm_workers;
        loop {
            let mut worker = self.worker()?;
            attempts -= 1;
            let silence = match worker.call(&Request::Load { bytes: bytes.clone(), verify: true }) {
                Ok(Reply::Loaded { program, threads: 1 }) => return Ok((worker, program)),
                // Reading this format started threads, so this worker can never be forked: have
                // it write the program in the compiler's own form and give that to another one.
                Ok(Reply::Loaded { program, .. }) if !converted => {
                    match worker.call(&Request::Print { program, form: Form::BINARY }) {
                        Ok(Reply::Bytes(own)) => {
                            bytes = own;
                            converted = true;
                            attempts += 1;
                            continue;
                        }
                        Ok(Reply::Failed(failure)) => {
                            return Err(EngineError::refused("reading", failure));
                        }
                        Ok(other) => return Err(unexpected("reading", &other)),
                        Err(silence) => silence,
                    }
                }
                Ok(Reply::Loaded { .. }) => {
                    return Err(EngineError::Internal(
                        "loading a program in the compiler's own form started threads".to_owned(),
                    ));
                }
                Ok(Reply::Failed(failure)) => {
                    return Err(EngineError::Load {
                        name: source.name.to_string(),
                        message: failure.message,
                    });
                }
                Ok(other) => return Err(unexpected("loading", &other)),
                Err(silence) => silence,
            };
            match silence {
                Silence::Died(Death::Killed) if attempts > 0 => {}
                Silence::Died(death) => {
                    return Err(EngineError::Load {
                        name: source.name.to_string(),
                        message: format!("while reading it, the compiler {death}"),
                    });
                }
                other => return Err(other.into_error("loading")),
            }
        }
    }
}

fn start_stem(config: &EngineConfig) -> Result<(Worker, Hello), EngineError> {
    let failed =
        |message: String| EngineError::WorkerStart { path: config.worker.clone(), message };
    let mut attempts = ATTEMPTS;
    loop {
        let mut worker =
            Worker::start(&config.worker, &config.environment, config.limits).map_err(failed)?;
        attempts -= 1;
        match introduce(&mut worker, config.limits) {
            Ok(hello) => return Ok((worker, hello)),
            // Whoever kills workers may have met this one too.
            Err(Silence::Died(Death::Killed)) if attempts > 0 => {}
            Err(Silence::Died(death)) => {
                let how = match (&death, worker.exit_status()) {
                    (Death::Killed, Some(status)) => format!("ended with {status}"),
                    _ => death.to_string(),
                };
                let words = worker.last_words();
                return Err(failed(format!("it {how}; it said: {}", words.trim())));
            }
            Err(Silence::Confused(message)) => return Err(failed(message)),
            Err(other) => return Err(other.into_error("starting")),
        }
    }
}

fn introduce(worker: &mut Worker, limits: Limits) -> Result<Hello, Silence> {
    let hello = match worker.call(&Request::Hello { protocol: PROTOCOL_VERSION })? {
        Reply::Hello(hello) => hello,
        Reply::Failed(failure) => return Err(Silence::Confused(failure.message)),
        other => return Err(Silence::Confused(format!("it introduced itself by {other:?}"))),
    };
    match worker.call(&Request::Limits(limits))? {
        Reply::Done => Ok(hello),
        other => Err(Silence::Confused(format!("it answered its limits by {other:?}"))),
    }
}

fn engine_name(hello: &Hello) -> String {
    format!("{} {}", hello.engine, hello.version)
}

pub(crate) fn expect(answer: Result<Reply, Silence>, doing: &str) -> Result<Reply, EngineError> {
    match answer {
        Ok(Reply::Failed(failure)) => Err(EngineError::refused(doing, failure)),
        Ok(reply) => Ok(reply),
        Err(silence) => Err(silence.into_error(doing)),
    }
}

pub(crate) fn unexpected(doing: &str, reply: &Reply) -> EngineError {
    EngineError::Internal(format!("{doing} was answered by {reply:?}"))
}

/// Names that a person may have meant, best first.
fn similar<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(name);
    let mut scored: Vec<(usize, &str)> = all
        .map(|candidate| {
            let candidate_plain = plain(candidate);
            let base = candidate_plain.split(':').next().unwrap_or_default();
            let distance = edit_distance(&wanted, &candidate_plain);
            let contained = wanted.len() >= 3 && candidate_plain.contains(&wanted);
            (
                if base == wanted {
                    0
                } else if contained {
                    1
                } else {
                    distance
                },
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= 1 + wanted.len() / 4)
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let substitution = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_misspelt_pass_finds_its_name() {
        let all = ["algsimp", "constant_folding", "constant_folding:aggressive", "cse", "dce"];
        let check = |name: &str, expected: &str| {
            assert_eq!(similar(name, all.into_iter()).first().map(String::as_str), Some(expected));
        };
        check("algsim", "algsimp");
        check("constant-folding", "constant_folding");
        check("constantfolding:agressive", "constant_folding:aggressive");
        assert!(similar("quantum", all.into_iter()).is_empty());
    }
}
