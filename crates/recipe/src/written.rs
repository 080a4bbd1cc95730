//! A recipe as a file.

use std::{fs, path::Path};

use serde::Deserialize;
use xla_gym_common::write_whole;

use crate::{
    believable::{Doubt, comes_back},
    error::RecipeError,
    recipe::{Recipe, VERSION},
};

/// Why a text is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON, or not of a recipe's shape.
    #[error("this is not a recipe: {0}")]
    Malformed(serde_json::Error),
    /// It has another format.
    #[error(
        "this recipe has version {found}, and version {VERSION} is read; make it again, or use a \
         matching release"
    )]
    Version {
        /// Its format.
        found: u32,
    },
}

/// Reads JSON. The version comes first: a recipe of another version may have any shape.
pub fn decode(text: &[u8]) -> Result<Recipe, Unreadable> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(text).map_err(Unreadable::Malformed)?;
    if version != VERSION {
        return Err(Unreadable::Version { found: version });
    }
    serde_json::from_slice(text).map_err(Unreadable::Malformed)
}

impl Recipe {
    /// Reads a recipe from a file.
    pub fn read(path: &Path) -> Result<Recipe, RecipeError> {
        let text =
            fs::read(path).map_err(|cause| RecipeError::Read { path: path.to_owned(), cause })?;
        decode(&text).map_err(|cause| RecipeError::Content { path: path.to_owned(), cause })
    }

    /// Writes the recipe to a file, for people to read too: whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), RecipeError> {
        let doubtful = |doubt| RecipeError::Doubtful { path: path.to_owned(), doubt };
        if self.version != VERSION {
            return Err(doubtful(Doubt::Version { found: self.version }));
        }
        let mut text = serde_json::to_string_pretty(self).map_err(|_| doubtful(Doubt::Figures))?;
        comes_back(self, &text).map_err(doubtful)?;
        text.push('\n');
        write_whole(path, text.as_bytes())
            .map_err(|cause| RecipeError::Write { path: path.to_owned(), cause })
    }
}
