//! Where remembered state lives.

use std::{
    env,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Why there is no place for remembered state.
#[derive(Debug, thiserror::Error)]
#[error(
    "nothing is remembered, because {} {reason}; set HOME, or XLA_GYM_STATE_DIR to a folder of your \
     own", path.display()
)]
pub struct NoStateDir {
    /// The folder that would do.
    pub path: PathBuf,
    /// Why it does not.
    pub reason: String,
}

/// The folder for remembered state: `$XLA_GYM_STATE_DIR`, or the user's state folder. Where there is
/// no home, it is one among temporary files that only this user can see.
///
/// ```
/// match xla_gym_common::state_dir() {
///     Ok(folder) => println!("what is remembered lies in {}", folder.display()),
///     Err(reason) => println!("{reason}"),
/// }
/// ```
pub fn state_dir() -> Result<PathBuf, NoStateDir> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = folder("XLA_GYM_STATE_DIR") {
        return Ok(dir.into());
    }
    if let Some(dir) = folder("XDG_STATE_HOME") {
        return Ok(PathBuf::from(dir).join("xla-gym"));
    }
    match folder("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".local/state/xla-gym")),
        None => private(&env::temp_dir()),
    }
}

/// Makes a folder of this user's own in one that everybody may write to. Anybody may have made it
/// before, so that it is looked at first.
fn private(parent: &Path) -> Result<PathBuf, NoStateDir> {
    let user = rustix::process::geteuid().as_raw();
    let path = parent.join(format!("xla-gym-state-{user}"));
    let made = DirBuilder::new().mode(0o700).create(&path);
    let reason = match (made, fs::symlink_metadata(&path)) {
        (Err(error), _) if error.kind() != io::ErrorKind::AlreadyExists => {
            format!("cannot be made: {error}")
        }
        (_, Err(error)) => format!("cannot be looked at: {error}"),
        (_, Ok(data)) if !data.is_dir() => "is no folder".to_owned(),
        (_, Ok(data)) if data.uid() != user => "belongs to somebody else".to_owned(),
        (_, Ok(data)) if data.mode() & 0o077 != 0 => "is open to others".to_owned(),
        _ => return Ok(path),
    };
    Err(NoStateDir { path, reason })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[track_caller]
    fn refused(parent: &Path, says: &str) {
        let error = private(parent).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("set HOME"), "{error}");
    }

    #[test]
    fn without_a_home_the_folder_is_the_users_own_or_none() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let path = private(parent).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private(parent).unwrap(), path, "the same again");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        refused(parent, "open to others");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        // Only root can give a folder away.
        if chown(&path, Some(12345), None).is_ok() {
            refused(parent, "somebody else");
        }
        fs::remove_dir(&path).unwrap();
        symlink(parent, &path).unwrap();
        refused(parent, "is no folder");
        refused(&parent.join("missing"), "cannot be made");
    }
}
