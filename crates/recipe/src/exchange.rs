//! Recipes on their way between stores: JSON, one recipe a line.

use std::io::{BufRead, Write};

use crate::{error::StoreError, recipe::Recipe, store::Store, written::decode};

/// What became of recipes that were read in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Recipes that could be kept.
    pub offered: usize,
    /// Of those, how many were better than what was known.
    pub taken: usize,
    /// Lines, from 1, that were passed over, with the reason.
    pub refused: Vec<(usize, String)>,
}

impl Store {
    /// Writes all recipes as JSON, one a line, and says how many.
    pub fn export(&self, out: &mut impl Write) -> Result<usize, StoreError> {
        let failed = |cause| StoreError::Export { path: self.path().to_owned(), cause };
        let recipes = self.list()?;
        for recipe in &recipes {
            // Where it was tried is nobody else's business.
            let recipe = Recipe { imported: false, ..recipe.clone() };
            serde_json::to_writer(&mut *out, &recipe).map_err(|error| failed(error.into()))?;
            out.write_all(b"\n").map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        Ok(recipes.len())
    }

    /// Offers the recipes of another store, one a line. The better ones stay, so it does no harm
    /// to read the same twice. They count as [`Recipe::imported`] until they were tried here. A
    /// line that is no believable recipe is reported and passed over; blank lines are nothing.
    pub fn import(&self, mut input: impl BufRead) -> Result<Imported, StoreError> {
        let mut imported = Imported::default();
        // Bytes, because a line that is not even text must not end it all.
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = input.read_until(b'\n', &mut line).map_err(|cause| StoreError::Import {
                path: self.path().to_owned(),
                line: number,
                cause,
            })?;
            if read == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match decode(&line) {
                Err(reason) => imported.refused.push((number, reason.to_string())),
                Ok(recipe) => match self.offer(&Recipe { imported: true, ..recipe }) {
                    Ok(taken) => {
                        imported.offered += 1;
                        imported.taken += usize::from(taken);
                    }
                    Err(error @ StoreError::Doubtful { .. }) => {
                        imported.refused.push((number, error.to_string()));
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(imported)
    }
}
