//! A pass order beside the compiler's own.

use serde::Serialize;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Observe, PassId},
};

use crate::{
    baseline::{Finished, apply_all, finish},
    figures::Figures,
    profile::Profile,
    ratio::Ratio,
    spec::{Comparison, StartPasses},
};

/// A pass order beside the compiler's own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Where it started.
    pub start: &'static str,
    /// One after the other, as the profile has them.
    pub stages: Vec<StageScore>,
    /// Passes of the given order that did not take place, with the reason.
    pub skipped: Vec<(String, String)>,
    /// What the compiler does by itself.
    #[serde(skip)]
    pub default: Finished,
}

/// What an order is worth at one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageScore {
    /// Which.
    pub stage: &'static str,
    /// Without any passes, by the compiler itself, and by the given passes in its place.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// By the given passes before the compiler's own, where that is another way.
    pub before: Option<u64>,
    /// How the result compares; above 1 is better.
    pub value: Option<f64>,
}

/// Scores `passes` on a program. Also returns the session in the resulting state. `progress`
/// is told what is being done.
pub fn score(
    profile: &dyn Profile,
    session: &mut Session,
    passes: &[PassId],
    start: usize,
    mut progress: impl FnMut(&str),
) -> Result<(Score, Session), EngineError> {
    let spec = profile.spec();
    progress("the compiler's own pipeline");
    let default = finish(session, &spec.usual)?;
    let mut start_state = start_session(profile, session, start)?;

    progress("the compiler's optimization passes alone");
    let mut by_default = start_state.fork()?;
    apply_all(&mut by_default, &default.own_order(profile, session)?)?;

    progress("the given passes");
    let mut result = start_state.fork()?;
    let skipped = apply_all(&mut result, passes)?;

    progress("the start through what follows the passes");
    let bare = finish(session, &spec.instead)?;
    progress("the result through what follows the passes");
    let replaced = finish(&mut result, &spec.instead)?;
    progress("the result through the untouched pipeline");
    let before = finish(&mut result, &spec.usual)?;

    let (initial, by_default, after) =
        (primary(&mut start_state)?, primary(&mut by_default)?, primary(&mut result)?);
    let all = [
        bare.figures(spec, initial),
        default.figures(spec, by_default),
        replaced.figures(spec, after),
        before.figures(spec, after),
    ];
    let stages = spec.stages.iter().map(|stage| {
        let value = |figures: &Figures| figures.get(stage.figure).unwrap_or(0.0) as u64;
        let [initial, default, result, before] = all.each_ref().map(value);
        let ratio = Ratio { initial, default, result };
        StageScore {
            stage: stage.name,
            ratio,
            before: (!spec.is_of_order(stage.figure)).then_some(before),
            value: ratio.compared(stage.comparison),
        }
    });
    let score = Score {
        start: spec.starts[start].name,
        stages: stages.collect(),
        skipped: skipped.into_iter().map(|error| (error.pass, error.failure.to_string())).collect(),
        default,
    };
    Ok((score, result))
}

impl Ratio {
    /// How the result compares with the default; above 1 is better.
    pub fn compared(&self, how: Comparison) -> Option<f64> {
        match how {
            Comparison::Reduction => self.value(),
            Comparison::Quotient => Some(self.default as f64 / self.result.max(1) as f64),
        }
    }
}

/// A session of its own where orders begin: the position of a start in the profile.
pub fn start_session(
    profile: &dyn Profile,
    session: &mut Session,
    start: usize,
) -> Result<Session, EngineError> {
    let spec = profile.spec();
    let passes = match &spec.starts[start].passes {
        StartPasses::Fixed(names) => session.engine().passes(names.iter().copied())?,
        StartPasses::AsPipeline => finish(session, &spec.instead)?.preparation(profile, session),
    };
    let mut own = session.fork()?;
    own.multistep(&passes, Observe::NOTHING, |_| {})?;
    Ok(own)
}

fn primary(session: &mut Session) -> Result<u64, EngineError> {
    let seen = session.observe(Observe::COUNTS)?;
    let missing = || EngineError::Internal("the worker gave no counts".to_owned());
    Ok(seen.counts.ok_or_else(missing)?.primary())
}
