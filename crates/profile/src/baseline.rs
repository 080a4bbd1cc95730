//! What the compiler itself makes of a program, and what its pipeline makes of ours.

use std::time::Duration;

use xla_gym_engine::{
    EngineError, PassError, Session,
    protocol::{Cost, Counts, Fingerprint, Finish, Observe, PassId, PipelineOptions, PipelinePass},
};
use xla_gym_oracle::{Options, Reference};

use crate::{
    figures::{Figure, Figures},
    profile::Profile,
    spec::{Source, Spec},
};

/// What is looked at on the way through a pipeline.
const LOOK: Observe = Observe::COUNTS.and(Observe::COST).and(Observe::FINGERPRINT);

/// A program that went through one of the compiler's pipelines.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Every pass that ran, in order.
    pub passes: Vec<PipelinePass>,
    /// How many of them ran before each stage.
    pub passes_before: Vec<usize>,
    /// What was counted at each stage.
    pub counts: Vec<Counts>,
    /// What was estimated at each stage.
    pub costs: Vec<Option<Cost>>,
    /// What is known only at the end.
    pub finals: Option<Cost>,
    /// The program at the end.
    pub fingerprint: Option<Fingerprint>,
    /// Time of the pipeline, without code generation.
    pub time: Duration,
}

/// Sends a copy of a program through a pipeline.
pub fn finish(session: &mut Session, how: &Finish) -> Result<Finished, EngineError> {
    let options =
        PipelineOptions { finish: how.clone(), stages: true, ..PipelineOptions::default() };
    let report = session.scratch()?.pipeline(&options, LOOK)?;
    let missing = |what| EngineError::Internal(format!("the worker gave no {what}"));
    let mut finished = Finished {
        fingerprint: report.end().and_then(|end| end.observation.fingerprint),
        passes: report.passes,
        passes_before: Vec::new(),
        counts: Vec::new(),
        costs: Vec::new(),
        finals: report.finals,
        time: Duration::from_nanos(report.nanos),
    };
    for stage in report.stages {
        let stage = stage.ok_or_else(|| missing("state on the way through its pipeline"))?;
        let seen = stage.observation;
        finished.passes_before.push(stage.passes as usize);
        finished.counts.push(seen.counts.ok_or_else(|| missing("counts"))?);
        finished.costs.push(seen.cost.and_then(Result::ok));
    }
    Ok(finished)
}

impl Finished {
    /// The figures of a program with so much of the primary metric that went through it.
    pub fn figures(&self, spec: &Spec, primary: u64) -> Figures {
        let value = |source: &Source| match source {
            Source::Order => Some(primary as f64),
            Source::Count { stage, count } => {
                self.counts.get(*stage)?.get(*count).map(|count| *count as f64)
            }
            Source::Costs { stage, costs } => {
                let all = self.costs.get(*stage)?.as_ref()?;
                costs.iter().map(|cost| all.get(*cost)).sum()
            }
            Source::Finals(finals) => {
                let all = self.finals.as_ref()?;
                finals.iter().map(|place| all.get(*place)).sum()
            }
        };
        let values: Vec<Option<f64>> =
            spec.figures.iter().map(|figure| value(&figure.source)).collect();
        Figures::counted(&values)
    }

    /// The passes that ran before the first stage.
    pub fn before_first_stage(&self) -> &[PipelinePass] {
        &self.passes[..self.passes_before.first().copied().unwrap_or(self.passes.len())]
    }

    /// Those of them that changed the program, as passes of the table, if it has them.
    pub fn preparation(&self, profile: &dyn Profile, session: &Session) -> Vec<PassId> {
        let changed = self.before_first_stage().iter().filter(|pass| pass.changed);
        let engine = session.engine();
        changed.filter_map(|pass| engine.pass(&profile.as_in_pipeline(&pass.pass)).ok()).collect()
    }

    /// The compiler's own optimisation passes among those before the first stage.
    pub fn own_order(
        &self,
        profile: &dyn Profile,
        session: &Session,
    ) -> Result<Vec<PassId>, EngineError> {
        let names = profile.own_order(self.before_first_stage());
        session.engine().passes(names.iter().map(String::as_str))
    }
}

/// What the compiler itself makes of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// The program as it came, sent through [`Spec::instead`] alone.
    pub initial: Figures,
    /// By the compiler's own way.
    pub default: Figures,
}

impl Baseline {
    /// Runs both pipelines on the program as emitted. The primary metric at the end of an order is that
    /// of `start` for one, and that after the compiler's own passes, from there, for the other.
    pub fn measure(
        profile: &dyn Profile,
        emitted: &mut Session,
        start: &mut Session,
    ) -> Result<Baseline, EngineError> {
        let spec = profile.spec();
        let default = finish(emitted, &spec.usual)?;
        let bare = finish(emitted, &spec.instead)?;
        let initial = primary(start)?;
        let own_order = default.own_order(profile, emitted)?;
        let mut after = start.fork()?;
        apply_all(&mut after, &own_order)?;
        Ok(Baseline {
            initial: bare.figures(spec, initial),
            default: default.figures(spec, primary(&mut after)?),
        })
    }

    /// How much of a figure the compiler itself removes. Where it removes nothing, all of it: something to
    /// divide by that does not make one program count for more than the others.
    pub fn reduction(&self, figure: Figure) -> f64 {
        let value = |figures: &Figures| figures.get(figure).unwrap_or(0.0);
        let (initial, default) = (value(&self.initial), value(&self.default));
        let removed = if initial > default { initial - default } else { initial };
        removed.max(1.0)
    }
}

/// What a program computes, for others to be compared with: compiled as usual, and once more without the
/// passes that the pipeline can do without.
pub fn reference(
    profile: &dyn Profile,
    session: &mut Session,
    options: Options,
) -> Result<Reference, EngineError> {
    Reference::new(session, options, &profile.spec().instead)
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

fn primary(session: &mut Session) -> Result<u64, EngineError> {
    let seen = session.observe(Observe::COUNTS)?;
    let missing = || EngineError::Internal("the worker gave no counts".to_owned());
    Ok(seen.counts.ok_or_else(missing)?.primary())
}
