//! Folders for XLA's dump files.
//!
//! A worker may be killed while XLA dumps, so nobody may rely on it to clean up: whoever makes a new
//! folder removes those whose owner is gone. An owner holds a lock on its folder, which the kernel
//! lets go when the process ends, however it ends and whoever can see its id: processes in
//! containers may share the folder of temporary files without knowing of one another.

use std::{
    env,
    fs::{self, DirBuilder, File},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

const PREFIX: &str = "xla-gym-dump-";

/// Hexadecimal digits of a name.
const DIGITS: usize = 32;

/// How often a folder may be taken for an orphan before its owner has locked it.
const ATTEMPTS: u32 = 10;

/// A folder that only this user sees, and that is removed with the value, or by the next worker.
pub struct DumpDir {
    path: PathBuf,
    /// Open and locked for as long as the folder is in use. A fork of the worker would hold it too,
    /// which does no harm.
    _lock: File,
}

impl DumpDir {
    pub fn new() -> io::Result<DumpDir> {
        DumpDir::new_in(&env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<DumpDir> {
        for _ in 0..ATTEMPTS {
            let path = parent.join(random_name()?);
            DirBuilder::new().mode(0o700).create(&path)?;
            if let Some((lock, user)) = take(&path) {
                remove_orphans(parent, user);
                return Ok(DumpDir { path, _lock: lock });
            }
        }
        Err(io::Error::other("others remove every folder for dumps as soon as it is made"))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DumpDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A name that nobody can foresee. Workers are forked all the time, so the kernel is asked: what
/// a process knows, its forks know too.
fn random_name() -> io::Result<String> {
    let mut bytes = [0; DIGITS / 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}")))
}

/// Locks a folder, unless another process has, and says whose it is. None too if the name stands for
/// another folder, or none, by now.
fn take(path: &Path) -> Option<(File, u32)> {
    let named = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir)?;
    let lock = File::open(path).ok()?;
    lock.try_lock().ok()?;
    let (locked, still) = (lock.metadata().ok()?, fs::symlink_metadata(path).ok()?);
    let same = |one: &fs::Metadata| (one.dev(), one.ino()) == (locked.dev(), locked.ino());
    (same(&named) && same(&still)).then(|| (lock, locked.uid()))
}

fn remove_orphans(parent: &Path, user: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_ours = digits.is_some_and(|digits| {
            digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        if is_ours
            && let Some((_lock, owner)) = take(&entry.path())
            && owner == user
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A folder instead of the one for temporary files, which other workers use at the same time.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = env::temp_dir().join(format!("{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn folders_of_dead_workers_are_removed_and_those_of_living_ones_kept() {
        let place = Place::new("xla-gym-dump-test-orphans");
        let at = |name: &str| place.0.join(format!("{PREFIX}{name}"));
        let (dead, foreign) = (at(&"0".repeat(DIGITS)), at(&"1".repeat(DIGITS)));
        let (other, link) = (at("results"), at(&"2".repeat(DIGITS)));
        for folder in [&dead, &foreign, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "dump").unwrap();
        }
        symlink(&other, &link).unwrap();
        // Only root can give a folder away.
        let given = chown(&foreign, Some(12345), None).is_ok();

        let first = DumpDir::new_in(&place.0).unwrap();
        fs::write(first.path().join("file"), "dump").unwrap();
        let second = DumpDir::new_in(&place.0).unwrap();
        assert!(!dead.exists(), "its owner is gone");
        assert!(first.path().join("file").exists() && second.path().exists(), "they are in use");
        assert!(other.join("file").exists(), "it is none of ours");
        assert!(fs::symlink_metadata(&link).is_ok(), "it is no folder");
        assert!(!given || foreign.exists(), "it is another user's");
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn nobody_else_can_foresee_or_read_them() {
        let place = Place::new("xla-gym-dump-test-private");
        let (one, two) = (DumpDir::new_in(&place.0).unwrap(), DumpDir::new_in(&place.0).unwrap());
        assert_ne!(one.path(), two.path());
        for dir in [&one, &two] {
            let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
