//! A pass order beside the default.

use serde::{Deserialize, Serialize};
use xla_gym_engine::{
    EngineError, PassError, Session, Source,
    protocol::{Observe, PassId},
};

use crate::{
    baseline::{DefaultRun, counts, default_passes, run_default},
    roles::{NORMALISING, OPTIONAL},
};

/// Where a pass order starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// As the framework emitted the program.
    #[default]
    Emitted,
    /// After [`NORMALISING`].
    Normalised,
}

/// Operations at the start, after the given passes, and by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// `I`.
    pub initial: u64,
    /// `D`.
    pub default: u64,
    /// `R`.
    pub result: u64,
}

impl Ratio {
    /// Reduction by the given passes over reduction by default, if the default reduces at all.
    pub fn value(&self) -> Option<f64> {
        let reduction = |end: u64| self.initial as f64 - end as f64;
        (reduction(self.default) > 0.0).then(|| reduction(self.result) / reduction(self.default))
    }
}

/// Operations at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kernels {
    /// The untouched pipeline.
    pub default: u64,
    /// The given passes, then the untouched pipeline.
    pub prefix: u64,
    /// The given passes, then the pipeline without its optional passes.
    pub replace: u64,
}

/// A pass order beside the default.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Where it started.
    pub start: Start,
    /// The same passes in another order.
    pub order: Ratio,
    /// Just before layout assignment, legal for the back end.
    pub legal: Ratio,
    /// At the end.
    pub kernels: Kernels,
    /// Passes of the given order that did not take place, with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Scores `passes` on a program. Also returns the session in the resulting state. `progress`
/// is told what is being done.
pub fn score(
    session: &mut Session,
    passes: &[PassId],
    start: Start,
    mut progress: impl FnMut(&str),
) -> Result<(Score, DefaultRun, Session), EngineError> {
    let optional: Vec<String> = OPTIONAL.iter().map(|&name| name.to_owned()).collect();

    progress("the compiler's own pipeline");
    let default = run_default(session, &[])?;
    let mut start_state = start_session(session, start)?;

    progress("the compiler's optimisation passes alone");
    let mut by_default = start_state.fork()?;
    apply_all(&mut by_default, &default_passes(session, &default)?)?;
    let default_operations = operations(&mut by_default)?;

    progress("the given passes");
    let mut result = start_state.fork()?;
    let skipped = apply_all(&mut result, passes)?;
    let order = Ratio {
        initial: operations(&mut start_state)?,
        default: default_operations,
        result: operations(&mut result)?,
    };

    progress("the start through the pipeline without its optional passes");
    let bare = run_default(session, &optional)?;
    progress("the result through the pipeline without its optional passes");
    let replace = run_default(&mut result, &optional)?;
    progress("the result through the untouched pipeline");
    let prefix = run_default(&mut result, &[])?;

    let score = Score {
        start,
        order,
        legal: Ratio {
            initial: bare.middle.operations,
            default: default.middle.operations,
            result: replace.middle.operations,
        },
        kernels: Kernels {
            default: default.end.operations,
            prefix: prefix.end.operations,
            replace: replace.end.operations,
        },
        skipped: skipped.into_iter().map(|error| (error.pass, error.failure.to_string())).collect(),
    };
    Ok((score, default, result))
}

/// A session of its own in the start state.
pub fn start_session(session: &mut Session, start: Start) -> Result<Session, EngineError> {
    let mut own = session.fork()?;
    if start == Start::Normalised {
        let passes = session.engine().passes(NORMALISING.iter().copied())?;
        own.multistep(&passes, Observe::NOTHING, |_| {})?;
        // The normalised state becomes the one to go back to.
        let bytes = own.print(xla_gym_engine::protocol::Form::Binary)?;
        let name = session.source().name.clone();
        own = session.engine().load(&Source { name, bytes: bytes.into() })?;
    }
    Ok(own)
}

/// Applies passes one after the other; those that fail are left out and returned.
pub fn apply_all(session: &mut Session, passes: &[PassId]) -> Result<Vec<PassError>, EngineError> {
    let mut failed = Vec::new();
    let mut rest = passes;
    while !rest.is_empty() {
        let mut done = 0;
        match session.multistep(rest, Observe::NOTHING, |_| done += 1) {
            Ok(()) => break,
            Err(EngineError::Pass(error)) => failed.push(error),
            Err(error) => return Err(error),
        }
        rest = &rest[done + 1..];
    }
    Ok(failed)
}

fn operations(session: &mut Session) -> Result<u64, EngineError> {
    Ok(counts(&session.observe(Observe::COUNTS)?)?.operations)
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn a_ratio_needs_a_default_that_reduces() {
        let value = |initial, default, result| Ratio { initial, default, result }.value();
        assert_eq!(value(100, 50, 25), Some(1.5));
        assert_eq!(value(100, 50, 110), Some(-0.2));
        assert_eq!(value(100, 100, 25), None);
        assert_eq!(value(100, 120, 25), None);
    }
}
