//! Writing programs to files.

use std::{
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::builder::{PathBufValueParser, TypedValueParser};
use xla_gym_engine::{Engine, protocol::Form};

/// Where and how to write a program, told by the file's name.
#[derive(Clone)]
pub struct OutFile {
    path: PathBuf,
    ending: String,
    compression: Compression,
}

#[derive(Clone)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl OutFile {
    /// The ending says in which of the compiler's forms (of XLA's: `.hlo`/`.txt` is HLO text, `.pb` an
    /// HloModuleProto, `.mlir` StableHLO text, `.mlirbc` StableHLO bytecode); with `.gz` or `.zst` behind
    /// it, compressed.
    fn new(path: PathBuf) -> Result<OutFile> {
        let extension = path.extension().and_then(OsStr::to_str);
        let (compression, inner) = match extension {
            Some("gz") => (Compression::Gzip, path.with_extension("")),
            Some("zst") => (Compression::Zstd, path.with_extension("")),
            _ => (Compression::None, path.clone()),
        };
        let ending = inner.extension().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let known = xla_gym_compilers::endings();
        if !known.contains(&&*ending) {
            bail!("the name must end in .{} (and .gz or .zst)", known.join(", ."));
        }
        check_place(&path)?;
        Ok(OutFile { path, ending, compression })
    }

    /// For arguments: a name that cannot be written to is wrong usage.
    pub fn parser() -> impl TypedValueParser<Value = OutFile> {
        PathBufValueParser::new().try_map(OutFile::new)
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// In which form to ask the compiler for the program.
    pub fn form(&self, engine: &Engine) -> Result<Form> {
        let hello = engine.hello();
        hello.form_of_ending(&self.ending).with_context(|| {
            let endings = hello.forms.iter().flat_map(|form| &form.endings);
            let endings: Vec<&str> = endings.map(String::as_str).collect();
            let name = self.path.display();
            format!(
                "{name}: {} writes no .{}; it writes .{}",
                hello.engine,
                self.ending,
                endings.join(", .")
            )
        })
    }

    /// Writes the file whole or not at all.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let packed = match self.compression {
            Compression::None => bytes.to_vec(),
            Compression::Gzip => {
                let level = flate2::Compression::best();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes)?;
                encoder.finish()?
            }
            Compression::Zstd => zstd::encode_all(bytes, 19)?,
        };
        write_whole(&self.path, &packed)
    }
}

/// For arguments: a file that is written at the end, and should be known to be writable before.
pub fn writable() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| -> Result<PathBuf> {
        check_place(&path)?;
        Ok(path)
    })
}

/// Known now, it does not cost the work whose result is to be written.
fn check_place(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("it is a directory");
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        bail!("there is no directory {}", folder.display());
    }
    Ok(())
}

/// Writes a file whole or not at all; see [`xla_gym_common::write_whole`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    xla_gym_common::write_whole(path, bytes)
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
