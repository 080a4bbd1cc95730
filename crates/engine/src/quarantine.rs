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
use xla_gym_protocol::Fingerprint;

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
    /// When, in seconds since 1970.
    pub when: u64,
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

    /// The remembered failure, if it still counts under this time limit.
    pub fn find(
        &self,
        state: Fingerprint,
        pass: &str,
        limit_millis: u64,
    ) -> Option<QuarantineEntry> {
        let known = self.lock();
        let entry = known.entries.get(&(state, pass.to_owned()))?;
        match entry.limit_millis {
            Some(limit) if limit < limit_millis => None,
            _ => Some(entry.clone()),
        }
    }

    /// Remembers a failure, here and on disk. A full disk loses the entry, not the session.
    pub fn remember(&self, engine: &str, state: Fingerprint, pass: &str, failure: &PassFailure) {
        if matches!(failure, PassFailure::Quarantined(_)) {
            return;
        }
        let entry = QuarantineEntry {
            engine: engine.to_owned(),
            state,
            pass: pass.to_owned(),
            kind: failure.kind().to_owned(),
            what: failure.to_string(),
            limit_millis: match failure {
                PassFailure::Died(Death::TimeLimit { limit_millis }) => Some(*limit_millis),
                _ => None,
            },
            when: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        };
        if let Some(path) = &self.path {
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
    // The new file takes the place of the old one whole, or not at all.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&new, kept).and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed_out(limit_millis: u64) -> PassFailure {
        PassFailure::Died(Death::TimeLimit { limit_millis })
    }

    #[test]
    fn entries_outlive_the_process_and_belong_to_one_engine() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/quarantine.jsonl");
        let state = Fingerprint(42);
        let failure = PassFailure::Refused("RET_CHECK".to_owned());
        Quarantine::open(&path, "xla 1").unwrap().remember("xla 1", state, "cse", &failure);

        let again = Quarantine::open(&path, "xla 1").unwrap();
        assert!(again.knows_pass("cse") && !again.knows_pass("dce"));
        assert!(again.find(state, "cse", 1).is_some());
        assert!(again.find(Fingerprint(43), "cse", 1).is_none());
        assert!(Quarantine::open(&path, "xla 2").unwrap().find(state, "cse", 1).is_none());
    }

    #[test]
    fn a_longer_limit_deserves_another_try() {
        let quarantine = Quarantine::in_memory();
        quarantine.remember("xla", Fingerprint(1), "slow", &timed_out(1000));
        assert!(quarantine.find(Fingerprint(1), "slow", 1000).is_some());
        assert!(quarantine.find(Fingerprint(1), "slow", 1001).is_none());
    }

    #[test]
    fn a_cut_or_foreign_line_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        let quarantine = Quarantine::open(&path, "xla").unwrap();
        quarantine.remember("xla", Fingerprint(1), "a", &timed_out(5));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"noise\n", &whole[..20]].concat()).unwrap();
        quarantine.remember("xla", Fingerprint(2), "b", &timed_out(5));
        let passes: Vec<_> =
            Quarantine::read(&path).unwrap().into_iter().map(|entry| entry.pass).collect();
        assert_eq!(passes, ["a", "b"]);
    }

    #[test]
    fn the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        Quarantine::open(&path, "xla").unwrap().remember("xla", Fingerprint(7), "a", &timed_out(5));
        let line = fs::read(&path).unwrap();
        fs::write(&path, line.repeat(BOUND + 1)).unwrap();
        Quarantine::open(&path, "xla").unwrap();
        assert_eq!(Quarantine::read(&path).unwrap().len(), BOUND / 2);
    }
}
