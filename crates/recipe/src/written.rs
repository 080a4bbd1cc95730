//! A recipe as a file.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};
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
        "this recipe has version {found}, and versions {FIRST} to {VERSION} are read; make it again, \
         or use a matching release"
    )]
    Version {
        /// Its format.
        found: u32,
    },
}

/// Reads JSON. The version comes first: a recipe of another version may have any shape. The first
/// version is brought into today's.
pub fn decode(text: &[u8]) -> Result<Recipe, Unreadable> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(text).map_err(Unreadable::Malformed)?;
    match version {
        VERSION => serde_json::from_slice(text).map_err(Unreadable::Malformed),
        FIRST => {
            // A list, which could stand for the fields in their order, was never written.
            let old: Map<String, Value> =
                serde_json::from_slice(text).map_err(Unreadable::Malformed)?;
            serde_json::from_value(from_first(old).into()).map_err(Unreadable::Malformed)
        }
        found => Err(Unreadable::Version { found }),
    }
}

/// The version before stages had names: each was a field of the evidence, with its value beside it.
const FIRST: u32 = 1;

/// Turns the fields of [`FIRST`] into stages. Whatever does not fit is left for the reading to refuse.
fn from_first(mut old: Map<String, Value>) -> Map<String, Value> {
    old.insert("version".to_owned(), VERSION.into());
    if let Some(start) = old.get_mut("start")
        && start == "normalised"
    {
        *start = "normalized".into();
    }
    let Some(evidence) = old.get_mut("evidence").and_then(Value::as_object_mut) else { return old };
    let is_stage = |value: &Value| value.get("initial").is_some() && value.get("result").is_some();
    let named = |(name, value): (&String, &Value)| is_stage(value).then(|| name.clone());
    let mut names: Vec<String> = evidence.iter().filter_map(named).collect();
    // Where the order ends comes before what the pipeline makes of it.
    names.sort_by_key(|name| name != "order");
    let mut stages = Vec::new();
    for name in names {
        let mut stage = evidence.remove(&name).unwrap_or_default();
        stage["value"] = evidence.remove(&format!("{name}_ratio")).unwrap_or_default();
        stage["stage"] = name.into();
        stages.push(stage);
    }
    evidence.insert("stages".to_owned(), stages.into());
    old
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
