//! A new file in a folder, under a name that readers recognise and sort rightly.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// What every event file's name begins with.
const BEGINNING: &str = "events.out.tfevents.";

/// Creates a file that comes after all event files of the folder.
///
/// Readers take files in the order of their names, in which the second of creation stands first.
/// A run that is resumed within that second, or after the clock was set back, gets a later one.
pub fn create(folder: &Path) -> io::Result<(PathBuf, File)> {
    fs::create_dir_all(folder)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut second = now.max(latest(folder)?.map_or(0, |latest| latest.saturating_add(1)));
    loop {
        // Ten digits, as of all seconds until the year 2286, sort as numbers do.
        let name = format!("{BEGINNING}{second:010}.{}.{}", host(), std::process::id());
        let path = folder.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // Another process or thread took the name just now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => second += 1,
            other => return other.map(|file| (path, file)),
        }
    }
}

/// The latest second in the names of a folder's event files.
fn latest(folder: &Path) -> io::Result<Option<u64>> {
    let mut latest = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(BEGINNING));
        let second = rest.and_then(|rest| rest.split('.').next()?.parse().ok());
        latest = latest.max(second);
    }
    Ok(latest)
}

/// The machine's name, as far as it may stand in the name of a file.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let name: String =
        name.chars().map(|letter| if plain(letter) { letter } else { '-' }).take(64).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
