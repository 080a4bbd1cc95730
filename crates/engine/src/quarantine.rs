//! Pairs of state and pass that are known to fail.
//!
//! One JSON object a line, appended with one `write` each, so that several processes can share
//! the file and a kill loses at most the line being written. Lines that cannot be read are
//! skipped. When the file outgrows its bound, the older half is dropped under a lock.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use xla_gym_common::write_whole;
use xla_gym_protocol::{Fingerprint, Limits};

use crate::error::{Death, PassFailure};

/// How many entries a file keeps.
const BOUND: usize = 20_000;

/// One remembered failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// Compiler and its version; another version may have mended it.
    pub engine: String,
    /// The state before the pass.
    pub state: Fingerprint,
    /// The pass.
    pub pass: String,
    /// `refused`, `aborted`, `timed out` or `out of memory`.
    pub kind: String,
    /// A sentence about it.
    pub what: String,
    /// The time limit it ran into, if it did; a longer one is worth another try.
    pub limit_millis: Option<u64>,
    /// How long it worked of that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_millis: Option<u64>,
    /// The memory limit it ran into, if it did; a larger one is worth another try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// When, in seconds since 1970.
    pub when: u64,
}

impl QuarantineEntry {
    /// Whether it says something about the pass. What a kill from outside did does not, nor does
    /// what ran out of time without having worked; earlier versions wrote down such things too.
    fn is_about_the_pass(&self) -> bool {
        let death = match (self.kind.as_str(), self.limit_millis) {
            ("killed", _) => Death::Killed,
            (_, Some(limit_millis)) => {
                Death::TimeLimit { limit_millis, busy_millis: self.busy_millis }
            }
            _ => return true,
        };
        death.is_its_own()
    }
}

/// The set of remembered failures, on disk or in memory only.
pub struct Quarantine {
    path: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    entries: HashMap<(Fingerprint, String), QuarantineEntry>,
    passes: HashSet<String>,
}

impl Known {
    fn insert(&mut self, entry: QuarantineEntry) {
        self.passes.insert(entry.pass.clone());
        self.entries.insert((entry.state, entry.pass.clone()), entry);
    }
}

impl Quarantine {
    /// A set that ends with the process.
    pub fn in_memory() -> Quarantine {
        Quarantine { path: None, known: Mutex::default() }
    }

    /// Opens the file; the first failure makes it. Only entries of `engine` take effect. A file
    /// that cannot be read is an error, one that cannot be written costs only the memory of it.
    pub fn open(path: &Path, engine: &str) -> io::Result<Quarantine> {
        let entries = Quarantine::read(path)?;
        if entries.len() > BOUND {
            let _ = compact(path);
        }
        let mut known = Known::default();
        for entry in entries.into_iter().filter(|entry| entry.engine == engine) {
            if !entry.is_about_the_pass() {
                continue;
            }
            known.insert(entry);
        }
        Ok(Quarantine { path: Some(path.to_owned()), known: Mutex::new(known) })
    }

    /// Every entry of a file, oldest first. A file that does not exist has none, and neither has
    /// a device, some of which could be read for ever.
    pub fn read(path: &Path) -> io::Result<Vec<QuarantineEntry>> {
        if fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
            return Ok(Vec::new());
        }
        match fs::read(path) {
            Ok(bytes) => Ok(bytes
                .split(|&byte| byte == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Vec::new()),
                _ => Err(error),
            },
        }
    }

    /// Whether the pass has failed on any state; a cheap test that spares most look-ups the
    /// computation of a fingerprint.
    pub fn knows_pass(&self, pass: &str) -> bool {
        self.lock().passes.contains(pass)
    }

    /// The remembered failure, if it still counts under these limits.
    pub fn find(&self, state: Fingerprint, pass: &str, limits: &Limits) -> Option<QuarantineEntry> {
        let known = self.lock();
        let entry = known.entries.get(&(state, pass.to_owned()))?;
        let more_time = entry.limit_millis.is_some_and(|limit| limit < limits.pass_millis);
        // Earlier versions did not write down how much memory there was.
        let more_memory = entry.kind == Death::OutOfMemory.kind()
            && entry.limit_bytes.is_none_or(|limit| limit < limits.memory_bytes);
        (!more_time && !more_memory).then(|| entry.clone())
    }

    /// Remembers a failure under limits, here and, if it says something about the pass, on disk. A
    /// full disk loses the entry, not the session.
    pub fn remember(
        &self,
        engine: &str,
        state: Fingerprint,
        pass: &str,
        failure: &PassFailure,
        limits: &Limits,
    ) {
        if matches!(failure, PassFailure::Quarantined(_)) {
            return;
        }
        let (limit_millis, busy_millis) = match failure {
            PassFailure::Died(Death::TimeLimit { limit_millis, busy_millis }) => {
                (Some(*limit_millis), *busy_millis)
            }
            _ => (None, None),
        };
        let out_of_memory = matches!(failure, PassFailure::Died(Death::OutOfMemory));
        let entry = QuarantineEntry {
            engine: engine.to_owned(),
            state,
            pass: pass.to_owned(),
            kind: failure.kind().to_owned(),
            what: failure.to_string(),
            limit_millis,
            busy_millis,
            limit_bytes: out_of_memory.then_some(limits.memory_bytes),
            when: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        };
        if let Some(path) = &self.path
            && entry.is_about_the_pass()
        {
            let _ = append(path, &entry);
        }
        self.lock().insert(entry);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn append(path: &Path, entry: &QuarantineEntry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    // A pipe without a reader must not be waited for.
    options.create(true).append(true).custom_flags(libc::O_NONBLOCK);
    let mut file = options.open(path)?;
    flock(&file, FlockOperation::LockShared)?;
    // A line cut short by a full disk or a kill must not swallow this one.
    if file.metadata()?.len() > 0 && !ends_with_newline(path)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line)
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Keeps the newer half. Who appends at this very moment may lose that one line.
fn compact(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let entries = Quarantine::read(path)?;
    if entries.len() <= BOUND {
        return Ok(());
    }
    let mut kept = Vec::new();
    for entry in &entries[entries.len() - BOUND / 2..] {
        serde_json::to_writer(&mut kept, entry)?;
        kept.push(b'\n');
    }
    write_whole(path, &kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { pass_millis: 1000, request_millis: 1000, memory_bytes: 1 << 30 };

    fn timed_out(limit_millis: u64) -> PassFailure {
        PassFailure::Died(Death::TimeLimit { limit_millis, busy_millis: Some(limit_millis) })
    }

    #[test]
    fn entries_outlive_the_process_and_belong_to_one_engine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/quarantine.jsonl");
        let state = Fingerprint(42);
        let failure = PassFailure::Refused("RET_CHECK".to_owned());
        Quarantine::open(&path, "toy 1")
            .unwrap()
            .remember("toy 1", state, "cse", &failure, &LIMITS);

        let again = Quarantine::open(&path, "toy 1").unwrap();
        assert!(again.knows_pass("cse") && !again.knows_pass("dce"));
        assert!(again.find(state, "cse", &LIMITS).is_some());
        assert!(again.find(Fingerprint(43), "cse", &LIMITS).is_none());
        assert!(Quarantine::open(&path, "toy 2").unwrap().find(state, "cse", &LIMITS).is_none());
    }

    #[test]
    fn a_longer_limit_deserves_another_try() {
        let quarantine = Quarantine::in_memory();
        let hog = PassFailure::Died(Death::OutOfMemory);
        quarantine.remember("toy", Fingerprint(1), "slow", &timed_out(1000), &LIMITS);
        quarantine.remember("toy", Fingerprint(1), "large", &hog, &LIMITS);
        let longer = Limits { pass_millis: 1001, ..LIMITS };
        let larger = Limits { memory_bytes: LIMITS.memory_bytes + 1, ..LIMITS };
        for (pass, limits, counts) in [
            ("slow", LIMITS, true),
            ("slow", longer, false),
            ("slow", larger, true),
            ("large", LIMITS, true),
            ("large", longer, true),
            ("large", larger, false),
        ] {
            let found = quarantine.find(Fingerprint(1), pass, &limits);
            assert_eq!(found.is_some(), counts, "{pass} under {limits:?}");
        }
    }

    #[test]
    fn what_happened_to_a_pass_is_forgotten_with_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        let quarantine = Quarantine::open(&path, "toy").unwrap();
        let time_limit = |busy_millis| Death::TimeLimit { limit_millis: 1000, busy_millis };
        let deaths = [
            (Death::Killed, false),
            (time_limit(None), false),
            (time_limit(Some(3)), false),
            (time_limit(Some(900)), true),
            (Death::OutOfMemory, true),
        ];
        for (number, (death, _)) in deaths.iter().enumerate() {
            let failure = PassFailure::Died(death.clone());
            quarantine.remember("toy", Fingerprint(number as u128), "a", &failure, &LIMITS);
        }
        let again = Quarantine::open(&path, "toy").unwrap();
        for (number, (death, lasts)) in deaths.iter().enumerate() {
            let state = Fingerprint(number as u128);
            assert!(quarantine.find(state, "a", &LIMITS).is_some(), "{death:?}");
            assert_eq!(again.find(state, "a", &LIMITS).is_some(), *lasts, "{death:?}");
        }
        // As an earlier version wrote it.
        let old = r#"{"engine":"toy","state":"00000000000000000000000000000009","pass":"a","#;
        let old = format!(
            "{old}\"kind\":\"timed out\",\"what\":\"\",\"limit_millis\":1000,\"when\":1}}\n"
        );
        fs::write(&path, old).unwrap();
        assert_eq!(Quarantine::read(&path).unwrap().len(), 1);
        let again = Quarantine::open(&path, "toy").unwrap();
        assert!(again.find(Fingerprint(9), "a", &LIMITS).is_none());
    }

    #[test]
    fn a_cut_or_foreign_line_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        let quarantine = Quarantine::open(&path, "toy").unwrap();
        quarantine.remember("toy", Fingerprint(1), "a", &timed_out(5), &LIMITS);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"noise\n", &whole[..20]].concat()).unwrap();
        quarantine.remember("toy", Fingerprint(2), "b", &timed_out(5), &LIMITS);
        let passes: Vec<_> =
            Quarantine::read(&path).unwrap().into_iter().map(|entry| entry.pass).collect();
        assert_eq!(passes, ["a", "b"]);
    }

    #[test]
    fn the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        Quarantine::open(&path, "toy").unwrap().remember(
            "toy",
            Fingerprint(7),
            "a",
            &timed_out(5),
            &LIMITS,
        );
        let line = fs::read(&path).unwrap();
        fs::write(&path, line.repeat(BOUND + 1)).unwrap();
        Quarantine::open(&path, "toy").unwrap();
        assert_eq!(Quarantine::read(&path).unwrap().len(), BOUND / 2);
    }
}
