//! Reading inputs: files, standard input, compressed or not.

use std::{
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Beyond this an input is an accident or an attack, not a program.
const MAX_BYTES: u64 = 512 << 20;

/// A program file, uncompressed.
///
/// ```
/// use xla_gym_engine::Source;
///
/// let source = Source::from_bytes("sum", b"toy\ninput 0\n".to_vec())?;
/// assert_eq!((&*source.name, source.bytes.len()), ("sum", 12));
/// # Ok::<(), xla_gym_engine::SourceError>(())
/// ```
#[derive(Clone)]
pub struct Source {
    /// For messages.
    pub name: Arc<str>,
    /// The content.
    pub bytes: Arc<[u8]>,
}

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The system says no.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder was named.
    #[error("{} is a directory; name a program file inside it", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
    },
    /// The compressed data is broken.
    #[error("{name}: the {form} data is broken: {error}")]
    Compression {
        /// The input's name.
        name: String,
        /// `gzip` or `zstd`.
        form: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Larger than any program.
    #[error("{name} holds more than {} MiB, which no program file does", MAX_BYTES >> 20)]
    TooLarge {
        /// The input's name.
        name: String,
    },
}

impl Source {
    /// Reads a file, or standard input for `-`.
    pub fn read(path: &Path) -> Result<Source, SourceError> {
        let failed = |error| SourceError::Read { path: path.to_owned(), error };
        if path == Path::new("-") {
            let bytes = read_bounded(io::stdin().lock(), "standard input").map_err(|error| {
                error.unwrap_or_else(|| SourceError::TooLarge { name: "standard input".into() })
            })?;
            return Source::from_bytes("standard input", bytes);
        }
        if fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(SourceError::Directory { path: path.to_owned() });
        }
        let name = path.display().to_string();
        let bytes = read_bounded(fs::File::open(path).map_err(failed)?, &name)
            .map_err(|error| error.unwrap_or(SourceError::TooLarge { name: name.clone() }))?;
        Source::from_bytes(&name, bytes)
    }

    /// Takes bytes, compressed or not. Compression is told by content, not by name.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Source, SourceError> {
        let (form, reader): (_, Box<dyn Read>) = match bytes.as_slice() {
            [0x1f, 0x8b, ..] => ("gzip", Box::new(flate2::read::MultiGzDecoder::new(&bytes[..]))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let broken =
                    |error| SourceError::Compression { name: name.to_owned(), form: "zstd", error };
                ("zstd", Box::new(zstd::stream::read::Decoder::new(&bytes[..]).map_err(broken)?))
            }
            _ => return Ok(Source { name: name.into(), bytes: bytes.into() }),
        };
        let mut plain = Vec::new();
        reader
            .take(MAX_BYTES + 1)
            .read_to_end(&mut plain)
            .map_err(|error| SourceError::Compression { name: name.to_owned(), form, error })?;
        if plain.len() as u64 > MAX_BYTES {
            return Err(SourceError::TooLarge { name: name.to_owned() });
        }
        Ok(Source { name: name.into(), bytes: plain.into() })
    }
}

/// The error is None if the input is too long.
fn read_bounded(reader: impl Read, name: &str) -> Result<Vec<u8>, Option<SourceError>> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Some(SourceError::Read { path: name.into(), error }))?;
    if bytes.len() as u64 > MAX_BYTES { Err(None) } else { Ok(bytes) }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn check(bytes: Vec<u8>, expected: &[u8]) {
        assert_eq!(&*Source::from_bytes("test", bytes).unwrap().bytes, expected);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_told_by_content() {
        check(b"HloModule m".to_vec(), b"HloModule m");
        check(gzip(b"HloModule m"), b"HloModule m");
        check(zstd::encode_all(&b"HloModule m"[..], 3).unwrap(), b"HloModule m");
    }

    #[test]
    fn a_truncated_archive_is_an_error_that_names_the_input() {
        let mut bytes = gzip(&[b'x'; 5000]);
        bytes.truncate(20);
        let error = Source::from_bytes("a.hlo.gz", bytes).unwrap_err();
        assert!(error.to_string().starts_with("a.hlo.gz: the gzip data is broken"), "{error}");
    }

    #[test]
    fn a_compression_bomb_is_refused() {
        let bomb = zstd::encode_all(io::repeat(0).take(MAX_BYTES + 10), 1).unwrap();
        assert!(matches!(Source::from_bytes("bomb", bomb), Err(SourceError::TooLarge { .. })));
    }
}
