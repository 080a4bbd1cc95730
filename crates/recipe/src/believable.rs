//! Which recipes deserve to be kept.

use xla_gym_oracle::Verdict;

use crate::{
    recipe::{Recipe, VERSION},
    written::decode,
};

/// Why a recipe is not believed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Doubt {
    /// It has another format.
    #[error("it has version {found}, and only version {VERSION} is kept; make it again")]
    Version {
        /// Its format.
        found: u32,
    },
    /// Its gain is no number, or a loss.
    #[error(
        "its gain is {gain}, and must be a number from 1 up; where nothing is gained, the \
         compiler's own order is the recipe"
    )]
    Gain {
        /// Its gain.
        gain: f64,
    },
    /// The result computes something else.
    #[error("its result computes something else than the program; leave it")]
    Different,
    /// The compiler does not take the result.
    #[error("the compiler does not take its result ({reason}); leave it")]
    Rejected {
        /// In the compiler's words.
        reason: String,
    },
    /// JSON has no infinities and no NaN.
    #[error("one of its figures is infinite or not a number; measure again, or leave that out")]
    Figures,
}

/// The recipe as one line of JSON, if it deserves to be kept.
pub fn encode_believable(recipe: &Recipe) -> Result<String, Doubt> {
    if recipe.version != VERSION {
        return Err(Doubt::Version { found: recipe.version });
    }
    if !recipe.gain.is_finite() || recipe.gain < 1.0 {
        return Err(Doubt::Gain { gain: recipe.gain });
    }
    match recipe.evidence.outputs.as_ref().map(|report| &report.verdict) {
        Some(Verdict::Different { .. } | Verdict::OtherSignature { .. }) => {
            return Err(Doubt::Different);
        }
        Some(Verdict::Rejected { reason }) => {
            return Err(Doubt::Rejected { reason: reason.clone() });
        }
        Some(Verdict::Equal | Verdict::NotComparable { .. }) | None => {}
    }
    let text = serde_json::to_string(recipe).map_err(|_| Doubt::Figures)?;
    comes_back(recipe, &text)?;
    Ok(text)
}

/// Whether the text means the recipe. It does not where a number is lost on the way.
pub fn comes_back(recipe: &Recipe, text: &str) -> Result<(), Doubt> {
    match decode(text.as_bytes()) {
        Ok(back) if back == *recipe => Ok(()),
        _ => Err(Doubt::Figures),
    }
}
