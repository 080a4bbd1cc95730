//! The two tiers as one.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use xla_gym_protocol::{Fingerprint, PassId};

use crate::{
    disk::Disk,
    error::TransitionsError,
    export::{self, Names},
    known::{Outcome, State},
    memory::Memory,
    queue::Entry,
};

/// How much to remember, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How much memory to use at most.
    pub memory_bytes: usize,
    /// The file that outlives the process and may be shared with others; it is made if need be.
    pub disk: Option<PathBuf>,
    /// How large the file may grow, by this process's doing. Its write-ahead log comes on top,
    /// a few MiB.
    pub disk_bytes: u64,
}

impl Default for Config {
    /// 256 MiB of memory, and no file; if one is named, up to 4 GiB.
    fn default() -> Config {
        Config { memory_bytes: 256 << 20, disk: None, disk_bytes: 4 << 30 }
    }
}

/// How well it went so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls of [`Transitions::outcome`] that were answered from memory.
    pub hits_memory: u64,
    /// Calls of [`Transitions::outcome`] that were answered from disk.
    pub hits_disk: u64,
    /// Calls of [`Transitions::outcome`] that found nothing.
    pub misses: u64,
    /// Outcomes, states and starts in memory.
    pub memory_entries: u64,
    /// What they take, roughly.
    pub memory_bytes: u64,
    /// How many entries were meant for the disk and did not get there.
    pub unwritten: u64,
    /// Why the disk is not used as it should be, and what to do about it.
    pub disk_error: Option<String>,
    /// What else there is to know: that a broken file was moved aside.
    pub note: Option<String>,
}

/// What passes do, as far as it is known. Shared by all threads of a process.
pub struct Transitions {
    memory: Memory,
    disk: Option<Disk>,
    hits_memory: AtomicU64,
    hits_disk: AtomicU64,
    misses: AtomicU64,
}

impl Transitions {
    /// Opens the file, if there is one. `engine` identifies the compiler, its version and its pass
    /// table: entries of other engines are not seen.
    ///
    /// A broken file is moved aside ([`Stats::note`]); one that is full, locked or cannot be
    /// written is only read ([`Stats::disk_error`]).
    pub fn open(config: &Config, engine: &str) -> Result<Transitions, TransitionsError> {
        let disk = config.disk.as_deref();
        Ok(Transitions {
            memory: Memory::new(config.memory_bytes),
            disk: disk.map(|path| Disk::open(path, engine, config.disk_bytes)).transpose()?,
            hits_memory: AtomicU64::new(0),
            hits_disk: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// What comes of the pass on the state.
    pub fn outcome(&self, state: Fingerprint, pass: PassId) -> Option<Outcome> {
        if let Some(outcome) = self.memory.outcome(state, pass) {
            self.hits_memory.fetch_add(1, Relaxed);
            return Some(outcome);
        }
        let found = self.disk().and_then(|disk| disk.outcome(state, pass, &self.memory));
        let counter = if found.is_some() { &self.hits_disk } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        found
    }

    /// What is known of the state of that identity.
    pub fn state(&self, id: Fingerprint) -> Option<Arc<State>> {
        self.memory.state(id).or_else(|| self.disk()?.state(id, &self.memory))
    }

    /// The state in which a program starts, by the fingerprint of its source text and the kind of
    /// start, such as `emitted` or `normalised`.
    pub fn start(&self, source: Fingerprint, kind: &str) -> Option<Fingerprint> {
        self.memory.start(source, kind).or_else(|| self.disk()?.start(source, kind, &self.memory))
    }

    /// Remembers what comes of a pass. On disk, the first to be added stays; a failure that may
    /// not repeat is kept in memory only.
    pub fn add(&self, from: Fingerprint, pass: PassId, outcome: Outcome) {
        let lasting = match &outcome {
            Outcome::Leads(_) => true,
            Outcome::Fails(failure) => failure.kind.repeats(),
        };
        match self.disk().filter(|_| lasting) {
            Some(disk) => {
                self.memory.add(from, pass, outcome.clone());
                disk.push(Entry::Outcome { from, pass, outcome });
            }
            None => self.memory.add(from, pass, outcome),
        }
    }

    /// Remembers a state. One with cost and opcode counts takes the place of one without.
    pub fn add_state(&self, state: Arc<State>) {
        if self.memory.add_state(&state)
            && let Some(disk) = self.disk()
        {
            disk.push(Entry::State(state));
        }
    }

    /// Remembers in which state a program starts.
    pub fn add_start(&self, source: Fingerprint, kind: &str, state: Fingerprint) {
        self.memory.add_start(source, kind, state);
        if let Some(disk) = self.disk() {
            disk.push(Entry::Start { source, kind: kind.into(), state });
        }
    }

    /// Forgets what comes of a pass, here and on disk, because it was seen to be otherwise. What
    /// other processes have in memory stays there.
    pub fn forget(&self, from: Fingerprint, pass: PassId) {
        match self.disk() {
            Some(disk) => disk.forget(from, pass, &self.memory),
            None => self.memory.forget(from, pass),
        }
    }

    /// How well it went so far.
    pub fn stats(&self) -> Stats {
        let disk = self.disk();
        let forked = self.disk.is_some() && disk.is_none();
        Stats {
            hits_memory: self.hits_memory.load(Relaxed),
            hits_disk: self.hits_disk.load(Relaxed),
            misses: self.misses.load(Relaxed),
            memory_entries: self.memory.entries(),
            memory_bytes: self.memory.bytes(),
            unwritten: disk.map_or(0, Disk::lost),
            disk_error: match forked {
                true => Some("the process was forked; open the file again in the fork".to_owned()),
                false => disk.and_then(Disk::trouble),
            },
            note: disk.and_then(Disk::note),
        }
    }

    /// Waits until everything added so far is on disk, or the disk is given up.
    pub fn flush(&self) {
        if let Some(disk) = self.disk() {
            disk.flush();
        }
    }

    /// Writes all transitions to a Parquet file, those on disk if there is a disk and else those in
    /// memory, in the order of states and passes. Returns the number of rows.
    ///
    /// The file appears whole or not at all.
    pub fn export_parquet(&self, path: &Path, names: Names<'_>) -> Result<u64, TransitionsError> {
        match self.disk() {
            Some(disk) => {
                disk.flush();
                let (file, engine) = disk.place();
                export::from_disk(path, names, file, engine)
            }
            None => export::from_memory(path, names, &self.memory),
        }
    }

    /// The disk, unless this is a fork of the process that opened it.
    fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref().filter(|disk| disk.is_of_this_process())
    }
}

impl Drop for Transitions {
    /// Writes what is not on disk yet, waiting a few seconds at most.
    fn drop(&mut self) {
        if let Some(disk) = self.disk.take() {
            if disk.is_of_this_process() {
                disk.close();
            } else {
                // Even to close the file in a fork would disturb the process that opened it.
                mem::forget(disk);
            }
        }
    }
}
