//! Whole files of rows, and packing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use xla_gym_common::write_whole;

use crate::{RowsError, is_packed, packed, plain, text};

/// The best that is still fast for what is read in a moment.
const LEVEL: i32 = 19;

/// Matches are looked for this far back (2^27 bytes), since rows of one kind resemble each other all
/// over the file. Readers accept it without being asked to.
const WINDOW: u32 = 27;

/// Writes rows to a file, whole or not at all; packed if its name ends in `.zst`.
pub fn write<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), RowsError> {
    let cannot =
        |error: serde_json::Error| RowsError::Write { path: path.to_owned(), error: error.into() };
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row).map_err(cannot)?;
        text.push('\n');
    }
    write_text(path, &text)
}

/// The same for rows that are text already.
pub fn write_text(path: &Path, text: &str) -> Result<(), RowsError> {
    let cannot = |error| RowsError::Write { path: path.to_owned(), error };
    if is_packed(path) {
        write_whole(path, &squeeze(text).map_err(cannot)?).map_err(cannot)
    } else {
        write_whole(path, text.as_bytes()).map_err(cannot)
    }
}

/// Packs a finished file and removes the plain one. What is packed already stays as it is. Returns
/// the packed file's name.
pub fn pack(path: &Path) -> Result<PathBuf, RowsError> {
    let (plain, packed) = (plain(path), packed(path));
    if !plain.exists() && packed.exists() {
        return Ok(packed);
    }
    let text = text(&plain)?;
    let cannot = |error| RowsError::Write { path: packed.clone(), error };
    write_whole(&packed, &squeeze(&text).map_err(cannot)?).map_err(cannot)?;
    fs::remove_file(&plain).map_err(|error| RowsError::Write { path: plain, error })?;
    Ok(packed)
}

/// With a checksum, so that damage is an error and no wrong row.
fn squeeze(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.window_log(WINDOW)?;
    encoder.set_pledged_src_size(Some(text.len() as u64))?;
    std::io::Write::write_all(&mut encoder, text.as_bytes())?;
    encoder.finish()
}
