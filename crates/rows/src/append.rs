//! Adding rows to a file, one at a time.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde::Serialize;
use xla_gym_common::{lock, write_whole};

use crate::{RowsError, is_packed, packed, read::whole, text};

/// Adds rows to a file as they come, from any thread.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: Mutex<File>,
}

impl Appender {
    /// Opens a file to add rows; it is made if need be. If only its packed form is there, that is
    /// unpacked first. A last line that a kill has cut off is dropped, so that what is added stands
    /// on a line of its own.
    pub fn open(path: &Path) -> Result<Appender, RowsError> {
        if is_packed(path) {
            let plain = path.with_extension("");
            return Err(RowsError::Packed { path: path.to_owned(), plain });
        }
        let cannot = |error| RowsError::Write { path: path.to_owned(), error };
        if !path.exists() && packed(path).exists() {
            write_whole(path, text(path)?.as_bytes()).map_err(cannot)?;
        }
        let mut file = File::options().create(true).append(true).open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_file() {
            mend(path, &mut file)?;
        }
        Ok(Appender { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Adds a row.
    pub fn add<T: Serialize + ?Sized>(&self, row: &T) -> Result<(), RowsError> {
        let cannot = |error| RowsError::Write { path: self.path.clone(), error };
        let line = serde_json::to_string(row).map_err(|error| cannot(error.into()))? + "\n";
        let mut file = lock(&self.file);
        file.write_all(line.as_bytes()).map_err(cannot)
    }
}

/// Drops a line that was cut off, and ends one that only lacks its end.
fn mend(path: &Path, file: &mut File) -> Result<(), RowsError> {
    let cannot = |error| RowsError::Write { path: path.to_owned(), error };
    let bytes = std::fs::read(path).map_err(cannot)?;
    let whole = whole(&bytes);
    file.set_len(whole as u64).map_err(cannot)?;
    if bytes[..whole].last().is_some_and(|byte| *byte != b'\n') {
        file.write_all(b"\n").map_err(cannot)?;
    }
    Ok(())
}
