//! Results as lines of JSON: `NAME.jsonl`, or `NAME.jsonl.zst` once they are finished.
//!
//! What grows is plain, so that a kill at any moment costs at most the line that was being written.
//! What is finished is packed, since such rows shrink to a twentieth. Readers need not know which of
//! the two is there: asked for either name, they take the plain file, or else the packed one.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("seen.jsonl");
//! let rows = xla_gym_rows::Appender::open(&path)?;
//! rows.add(&("gpt2", 1.2))?;
//! let packed = xla_gym_rows::pack(&path)?;
//! assert!(packed.ends_with("seen.jsonl.zst"));
//! assert_eq!(xla_gym_rows::read::<(String, f64)>(&path)?, [("gpt2".to_owned(), 1.2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod append;
mod pack;
mod read;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use append::Appender;
pub use pack::{pack, write, write_text};
pub use read::{read, read_if_any, reader, text};

/// The ending of packed files.
const PACKED: &str = ".zst";

/// Why rows could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line is not what it should be.
    #[error("{}, line {line}: {error}", path.display())]
    Line {
        /// In which file.
        path: PathBuf,
        /// Which, counted from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// Rows cannot be added to a packed file.
    #[error("{} is packed: name {} to add rows, and pack it afterwards", path.display(), plain.display())]
    Packed {
        /// The packed file.
        path: PathBuf,
        /// The name under which rows can be added.
        plain: PathBuf,
    },
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == &PACKED[1..])
}

/// The name of the plain file, whichever is given.
fn plain(path: &Path) -> PathBuf {
    if is_packed(path) { path.with_extension("") } else { path.to_owned() }
}

/// The name of the packed file, whichever is given.
fn packed(path: &Path) -> PathBuf {
    let mut name = plain(path).into_os_string();
    name.push(PACKED);
    name.into()
}
