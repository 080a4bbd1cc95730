//! Reading rows, plain or packed.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{RowsError, is_packed, packed, plain};

/// Every row of a file. A last line that a kill has cut off is no row.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RowsError> {
    let (path, text) = found(path)?;
    let parse = |(number, line)| {
        let line_number = number + 1;
        serde_json::from_str(line).map_err(|error| RowsError::Line {
            path: path.clone(),
            line: line_number,
            error,
        })
    };
    text.lines().enumerate().map(parse).collect()
}

/// The same, and no rows if there is no such file.
pub fn read_if_any<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RowsError> {
    if plain(path).exists() || packed(path).exists() { read(path) } else { Ok(Vec::new()) }
}

/// The text of a file, unpacked, without a last line that a kill has cut off.
pub fn text(path: &Path) -> Result<String, RowsError> {
    Ok(found(path)?.1)
}

/// A file as it is, unpacked if its name says that it is packed.
pub fn reader(path: &Path) -> Result<Box<dyn BufRead>, RowsError> {
    let cannot = |error| RowsError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(cannot)?;
    Ok(if is_packed(path) {
        Box::new(BufReader::new(zstd::Decoder::new(file).map_err(cannot)?))
    } else {
        Box::new(BufReader::new(file))
    })
}

/// The file that is there, and its text. A plain one is newer than its packed brother: it was
/// unpacked to be added to.
fn found(path: &Path) -> Result<(PathBuf, String), RowsError> {
    let (plain, packed) = (plain(path), packed(path));
    let path = match (plain.exists(), packed.exists()) {
        (false, true) => packed,
        // Neither, or something that only looks packed, such as a pipe: as it was named.
        (false, false) => path.to_owned(),
        (true, _) => plain,
    };
    let cannot = |error| RowsError::Read { path: path.clone(), error };
    let mut bytes = Vec::new();
    reader(&path)?.read_to_end(&mut bytes).map_err(cannot)?;
    bytes.truncate(whole(&bytes));
    let text = String::from_utf8(bytes).map_err(|error| cannot(io::Error::other(error)))?;
    Ok((path, text))
}

/// How much of a file is whole lines. A last line without an end is whole if it is JSON, as an
/// editor may have left it; a cut may be in the middle of a letter.
pub(crate) fn whole(bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if serde_json::from_slice::<IgnoredAny>(&bytes[end..]).is_ok() { bytes.len() } else { end }
}
