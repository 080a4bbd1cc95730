//! Folders for XLA's dump files.
//!
//! A worker may be killed while XLA dumps, so nobody may rely on it to clean up: a folder
//! carries the process id of its owner, and whoever makes a new one removes those of the dead.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

const PREFIX: &str = "xla-gym-dump-";

/// A folder that is removed with the value, or by the next worker.
pub struct DumpDir(PathBuf);

impl DumpDir {
    pub fn new() -> io::Result<DumpDir> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = env::temp_dir();
        remove_orphans(&parent);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", process::id()));
        fs::create_dir(&path)?;
        Ok(DumpDir(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DumpDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn remove_orphans(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_workers_are_removed_and_those_of_living_ones_kept() {
        // No process can have this id: it is above the kernel's maximum.
        let dead = env::temp_dir().join(format!("{PREFIX}4999999-0"));
        fs::create_dir_all(&dead).unwrap();
        let first = DumpDir::new().unwrap();
        let second = DumpDir::new().unwrap();
        assert!(!dead.exists() && first.path().exists() && second.path().exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
