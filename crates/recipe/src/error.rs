//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf};

use xla_gym_protocol::Fingerprint;
use xla_gym_shared_file::FileError;

use crate::{believable::Doubt, written::Unreadable};

/// Why a recipe cannot be read from its file or written to it.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}; check the name and that you may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is no recipe, or one of another version.
    #[error("{}: {cause}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: Unreadable,
    },
    /// The file cannot be written.
    #[error(
        "cannot write {}: {cause}; check that its folder is there, that you may write to it, and \
         the space on its disk", path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The recipe would not be the same when it is read again.
    #[error("{} is not written: {doubt}", path.display())]
    Doubtful {
        /// The file.
        path: PathBuf,
        /// Why.
        doubt: Doubt,
    },
}

/// Why recipes cannot be looked up or kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened, or is none of recipes.
    #[error(transparent)]
    File(#[from] FileError),
    /// A look-up failed.
    #[error(
        "cannot read the recipes in {}: {cause}; remove the file if this persists",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: rusqlite::Error,
    },
    /// A recipe in the file is not one that this version understands.
    #[error(
        "cannot understand the recipe for program {fingerprint} in {}: {cause}; forget that \
         program's recipes, or remove the file", path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// The program.
        fingerprint: Fingerprint,
        /// Why.
        cause: Unreadable,
    },
    /// A change of the file failed. Nothing was changed.
    #[error(
        "cannot write to {}: {cause}; check the space on its disk, and that no other program \
         holds it", path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: rusqlite::Error,
    },
    /// The file could only be opened to read.
    #[error(
        "{} can only be read: {reason}; check that you may write to it and to its folder, and the \
         space on its disk, or name another file", path.display()
    )]
    OnlyRead {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The recipe is not believable, so it is not kept.
    #[error("the recipe for {program} is not kept: {doubt}")]
    Doubtful {
        /// The name of its program.
        program: String,
        /// Why.
        doubt: Doubt,
    },
    /// Recipes cannot be written out.
    #[error("cannot write out the recipes of {}: {cause}; check the space and try again", path.display())]
    Export {
        /// The store's file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Recipes cannot be read in.
    #[error(
        "cannot read line {line} of the recipes for {}: {cause}; those before it are kept, and \
         it does no harm to read them again", path.display()
    )]
    Import {
        /// The store's file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        cause: io::Error,
    },
}
