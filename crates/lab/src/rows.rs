//! Results of experiments: one line of JSON each, written as they come.

use std::{fs::File, path::Path};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// Rows that are there already. A last line that a kill has cut off is dropped, in the file too, so that
/// what is appended stands on a line of its own.
pub fn read_rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(named)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        File::options().write(true).open(path).with_context(named)?.set_len(whole as u64)?;
    }
    let parse = |(number, line)| {
        let at = || format!("{}, line {}: not what this command writes", named(), number + 1);
        serde_json::from_str(line).with_context(at)
    };
    text[..whole].lines().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_that_was_cut_off_is_dropped_and_a_wrong_one_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1\n2\n3").unwrap();
        assert_eq!(super::read_rows::<u32>(file.path()).unwrap(), [1, 2]);
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "1\n2\n");
        std::fs::write(file.path(), "1\nx\n").unwrap();
        let error = format!("{:#}", super::read_rows::<u32>(file.path()).unwrap_err());
        assert!(error.contains("line 2"), "{error}");
    }
}
