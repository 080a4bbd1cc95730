//! Which recipes deserve to be kept.

use xla_gym_oracle::Verdict;

use crate::{
    gain::{self, MOST_GAIN},
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
    /// Its gain is no number, a loss, or absurd.
    #[error(
        "its gain is {gain}, and must be a number from 1 to {MOST_GAIN}; where nothing is gained, \
         the compiler's own order is the recipe"
    )]
    Gain {
        /// Its gain.
        gain: f64,
    },
    /// Its gain does not follow from what was measured.
    #[error(
        "its gain is {gain}, and its own figures {}; make it again with `xla-gym optimize`",
        .supported.map_or("do not say that".to_owned(), |gain| format!("give {gain}"))
    )]
    Unsupported {
        /// Its gain.
        gain: f64,
        /// What its figures give, if they give anything.
        supported: Option<f64>,
    },
    /// Nobody found the outputs of its result equal to the program's.
    #[error(
        "its result was not found to compute the same ({reason}); make it again where the program \
         can be run"
    )]
    Unproven {
        /// What was found instead.
        reason: String,
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
    if !(1.0..=MOST_GAIN).contains(&recipe.gain) {
        return Err(Doubt::Gain { gain: recipe.gain });
    }
    if !recipe.is_default() {
        check_outputs(recipe)?;
        gain::check(recipe)
            .map_err(|supported| Doubt::Unsupported { gain: recipe.gain, supported })?;
    } else if recipe.gain != 1.0 {
        return Err(Doubt::Unsupported { gain: recipe.gain, supported: Some(1.0) });
    }
    let text = serde_json::to_string(recipe).map_err(|_| Doubt::Figures)?;
    comes_back(recipe, &text)?;
    Ok(text)
}

/// Whether both programs were run, and computed the same.
fn check_outputs(recipe: &Recipe) -> Result<(), Doubt> {
    let reason = match recipe.evidence.outputs.as_ref().map(|report| &report.verdict) {
        Some(Verdict::Equal) => return Ok(()),
        Some(Verdict::Different { .. } | Verdict::OtherSignature { .. }) => {
            return Err(Doubt::Different);
        }
        Some(Verdict::Rejected { reason }) => {
            return Err(Doubt::Rejected { reason: reason.clone() });
        }
        Some(Verdict::NotComparable { reason }) => reason.clone(),
        None => "nobody ran it".to_owned(),
    };
    Err(Doubt::Unproven { reason })
}

/// Whether the text means the recipe. It does not where a number is lost on the way.
pub fn comes_back(recipe: &Recipe, text: &str) -> Result<(), Doubt> {
    match decode(text.as_bytes()) {
        Ok(back) if back == *recipe => Ok(()),
        _ => Err(Doubt::Figures),
    }
}
