//! Files of outcomes: what their figures are, and an outcome on every further line.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use xla_gym_report::results::{Header, Outcome};

use crate::earlier::EarlierOutcome;

/// What files of outcomes hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// What the figures are. Files that were written before that was said have XLA's.
    pub header: Option<Header>,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

/// Why a file of outcomes cannot be read.
#[derive(Debug, Error)]
pub enum RecordsError {
    /// A line is none of what is written to such files.
    #[error("line {line}")]
    Line {
        /// Which one, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// Figures of one kind cannot be set beside figures of another.
    #[error(
        "line {line}: its outcomes are not measured as those before it, so they cannot be compared"
    )]
    OtherHeader {
        /// Which one, from 1.
        line: usize,
    },
}

/// The line that says what the figures are.
#[derive(Serialize, Deserialize)]
struct HeaderLine {
    header: Header,
}

impl Records {
    /// Adds what is written in a file. The last line may have been cut off by a kill. `earlier` is how
    /// outcomes are measured that were written before files said so.
    pub fn add(&mut self, text: &str, earlier: &Header) -> Result<(), RecordsError> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (line, text) in (1..).zip(text[..whole].lines()) {
            let wrong = |source| RecordsError::Line { line, source };
            let value: Value = serde_json::from_str(text).map_err(wrong)?;
            if value.get("header").is_some() {
                let HeaderLine { header } = serde_json::from_str(text).map_err(wrong)?;
                self.measured_by(header, line)?;
            } else if value.get("stages").is_some() {
                self.outcomes.push(serde_json::from_str(text).map_err(wrong)?);
            } else {
                let outcome: EarlierOutcome = serde_json::from_str(text).map_err(wrong)?;
                self.measured_by(earlier.clone(), line)?;
                self.outcomes.push(outcome.into());
            }
        }
        Ok(())
    }

    /// All outcomes are measured alike, or cannot be compared.
    fn measured_by(&mut self, header: Header, line: usize) -> Result<(), RecordsError> {
        match &self.header {
            Some(known) if *known != header => Err(RecordsError::OtherHeader { line }),
            _ => {
                self.header = Some(header);
                Ok(())
            }
        }
    }

    /// The row that a file begins with.
    pub fn first_row(header: &Header) -> impl Serialize + use<> {
        HeaderLine { header: header.clone() }
    }
}
