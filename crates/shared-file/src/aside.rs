//! A broken file, moved out of the way.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

/// Moves the file and what SQLite keeps beside it. The file itself goes last: a kill in between
/// leaves a broken file to the next one who opens it, never a new file with an old log.
pub(crate) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    const PARTS: [&str; 4] = ["-wal", "-shm", "-journal", ""];
    let is_free = |aside: &PathBuf| PARTS.iter().all(|part| !with_suffix(aside, part).exists());
    let aside = (1..)
        .map(|number| with_suffix(path, &format!(".broken-{number}")))
        .find(is_free)
        .ok_or(io::ErrorKind::AlreadyExists)?;
    for part in PARTS {
        match fs::rename(with_suffix(path, part), with_suffix(&aside, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// The path with something after its name, extension and all.
///
/// ```
/// use std::path::Path;
///
/// let log = xla_gym_shared_file::with_suffix(Path::new("recipes.db"), "-wal");
/// assert_eq!(log, Path::new("recipes.db-wal"));
/// ```
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
