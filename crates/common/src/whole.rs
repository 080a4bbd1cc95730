//! Files that are written whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Links that are followed before giving up, as many as the system follows.
const LINKS: usize = 40;

/// Writes a file whole or not at all, whatever happens in between: a new file takes the old one's
/// place in one step, with its permissions. A link stays, and the file that it names is written.
/// What is no file (a device, a pipe, standard output) is written to and stays what it is.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("recipe.json");
/// xla_gym_common::write_whole(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path);
    if old.as_ref().is_ok_and(|old| !old.is_file()) || is_descriptor(path) {
        return OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes);
    }
    let path = follow(path)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Temporary files are private; a result is as readable as the umask makes other new files.
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .prefix(".xla-gym-")
        .tempfile_in(folder)?;
    if let Ok(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    // So that after a loss of power there is the old file or the new one, not an empty one.
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    // The name too must be on the disk. Some file systems have no such thing.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Whether the path stands for something that is open already, even if that is a file: whoever
/// opened it would be left with the old one.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc")
        || ["/dev/fd", "/dev/stdout", "/dev/stderr"].iter().any(|name| path.starts_with(name))
}

/// Where links lead, which may be a file that is yet to be made.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("there are too many links"))
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{FileTypeExt, symlink},
        thread,
    };

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_as_readable_as_others_and_an_old_one_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (new, other) = (folder.path().join("new"), folder.path().join("other"));
        fs::write(&other, "").unwrap();
        write_whole(&new, b"one").unwrap();
        assert_eq!(mode(&new), mode(&other));
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        write_whole(&new, b"two").unwrap();
        assert_eq!((fs::read(&new).unwrap(), mode(&new)), (b"two".to_vec(), 0o600));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/file", at("one")).unwrap();
        symlink("one", at("two")).unwrap();
        for text in ["made", "written again"] {
            write_whole(&at("two"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("deep/file")).unwrap(), text);
            assert!(fs::read_link(at("two")).is_ok() && fs::read_link(at("one")).is_ok());
        }
        symlink("loop", at("loop")).unwrap();
        write_whole(&at("loop"), b"x").unwrap_err();
    }

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_whole(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

        let link = folder.path().join("null");
        symlink("/dev/null", &link).unwrap();
        write_whole(&link, b"nowhere").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        write_whole(folder.path(), b"a folder").unwrap_err();
    }
}
