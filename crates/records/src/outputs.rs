//! Whether what counts computes what it should.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether what an order makes of a program was found to compute what the program as emitted does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Outputs {
    /// It was run, and does.
    Equal,
    /// It was run, and does not.
    Different,
    /// It takes or gives something else, or overwrites what it may not.
    OtherSignature,
    /// The compiler does not take it.
    Rejected,
    /// It cannot be found out, with the reason.
    NotComparable(String),
    /// Nobody ran it.
    #[default]
    Unchecked,
}

impl Outputs {
    /// Whether figures count as they are: it was found equal, or nobody was asked.
    pub fn count(&self) -> bool {
        matches!(self, Outputs::Equal | Outputs::Unchecked)
    }

    /// Which of the six it is, without a reason.
    pub fn kind(&self) -> &'static str {
        match self {
            Outputs::Equal => "equal",
            Outputs::Different => "different",
            Outputs::OtherSignature => "other-signature",
            Outputs::Rejected => "rejected",
            Outputs::NotComparable(_) => "not-comparable",
            Outputs::Unchecked => "unchecked",
        }
    }
}

impl fmt::Display for Outputs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outputs::NotComparable(reason) => write!(out, "{}: {reason}", self.kind()),
            _ => out.write_str(self.kind()),
        }
    }
}

impl From<Outputs> for String {
    fn from(outputs: Outputs) -> String {
        outputs.to_string()
    }
}

impl TryFrom<String> for Outputs {
    type Error = String;
    fn try_from(text: String) -> Result<Outputs, String> {
        let plain = [
            Outputs::Equal,
            Outputs::Different,
            Outputs::OtherSignature,
            Outputs::Rejected,
            Outputs::Unchecked,
        ];
        if let Some(found) = plain.into_iter().find(|outputs| outputs.kind() == text) {
            return Ok(found);
        }
        match text.strip_prefix("not-comparable") {
            Some(rest) => Ok(Outputs::NotComparable(rest.trim_start_matches(": ").to_owned())),
            None => Err(format!("{text:?} says nothing of outputs: equal, different, …")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outputs;

    #[test]
    fn they_survive_being_written_and_what_is_unknown_is_refused() {
        let reason = "it draws random numbers: 3".to_owned();
        for outputs in [
            Outputs::Equal,
            Outputs::Different,
            Outputs::OtherSignature,
            Outputs::Rejected,
            Outputs::NotComparable(reason),
            Outputs::Unchecked,
        ] {
            assert_eq!(Outputs::try_from(outputs.to_string()), Ok(outputs.clone()));
            assert_eq!(outputs.count(), ["equal", "unchecked"].contains(&outputs.kind()));
        }
        assert!(Outputs::try_from("eqal".to_owned()).is_err());
    }
}
