//! A program whose outputs others are compared with.

use std::time::Duration;

use xla_gym_engine::{
    EngineError, Session,
    protocol::{Executor, FailureKind, Finish, InputSet, Signature},
};

use crate::{
    Options, ReferenceKind, Report, Verdict,
    compare::{Compared, Precision, Tally},
    inputs::too_large,
    known::Known,
    program::{Precise, Ready, is_about_the_program, side_by_side, twice},
    signature::{mismatch, obstacle},
};

/// A program, run on several kinds of inputs, with what it computes and how exactly.
pub struct Reference {
    signature: Signature,
    state: Result<Known, String>,
    kind: ReferenceKind,
}

impl Reference {
    /// Compiles and runs the program in throw-away workers. `without` are passes of the compiler's
    /// own pipeline that it can do without: the second way to compile it. A program that cannot be
    /// compared at all makes every later comparison [`Verdict::NotComparable`]; one that dies is an
    /// error.
    pub fn new(
        session: &mut Session,
        options: Options,
        without: &Finish,
    ) -> Result<Reference, EngineError> {
        let kind = options.reference;
        let unusable = |signature: Signature, reason: String| {
            Ok(Reference { signature, state: Err(reason), kind })
        };
        let signature = match session.signature() {
            Ok(signature) => signature,
            Err(error @ EngineError::Refused { .. }) => {
                return unusable(Signature::default(), error.to_string());
            }
            Err(error) => return Err(error),
        };
        if let Some(reason) = obstacle(&signature) {
            return unusable(signature, reason);
        }
        if let Some(reason) = too_large(&signature) {
            return Err(EngineError::Refused {
                doing: "running it".to_owned(),
                kind: FailureKind::Refused,
                message: reason,
            });
        }
        match twice(|| Known::new(session, &signature, options, without)) {
            Ok(known) => Ok(Reference { signature, state: Ok(known), kind }),
            Err(error @ EngineError::Refused { .. }) => {
                unusable(signature, format!("the original does not run: {error}"))
            }
            Err(error) => Err(error),
        }
    }

    /// The same, but the interpreter, which has been asked about the program itself, is not asked about
    /// each of those that are compared with it.
    pub fn interpreted_once(self) -> Reference {
        Reference { kind: ReferenceKind::Compiled, ..self }
    }

    /// Inputs on which the program runs, unless it cannot be run, with the reason.
    pub fn inputs(&self) -> Result<&InputSet, &str> {
        if !self.signature.unknown_calls.is_empty() {
            return Err("it calls functions that are not here, so that its times mean nothing");
        }
        match &self.state {
            Ok(known) => {
                known.trials.first().map(|trial| &trial.inputs).ok_or("it ran on no inputs")
            }
            Err(reason) => Err(reason),
        }
    }

    /// Why nothing can be compared with it, if so.
    pub fn obstacle(&self) -> Option<&str> {
        self.state.as_ref().err().map(String::as_str)
    }

    /// About how long a comparison takes.
    pub fn takes(&self) -> Duration {
        self.state.as_ref().map_or(Duration::ZERO, |known| known.takes)
    }

    /// Runs another program on the same inputs and compares. `how` are passes of the
    /// compiler's own pipeline to leave out for it.
    pub fn compare(&self, session: &mut Session, how: &Finish) -> Result<Report, EngineError> {
        self.compare_until(session, how, false)
    }

    /// The same, but it ends with the first set of inputs on which something differs: for those who
    /// only want to know whether.
    pub fn compare_until_different(
        &self,
        session: &mut Session,
        how: &Finish,
    ) -> Result<Report, EngineError> {
        self.compare_until(session, how, true)
    }

    fn compare_until(
        &self,
        session: &mut Session,
        how: &Finish,
        first: bool,
    ) -> Result<Report, EngineError> {
        let known = match &self.state {
            Ok(known) => known,
            Err(reason) => {
                let verdict = Verdict::NotComparable { reason: reason.clone() };
                return Ok(Report::without_trials(verdict));
            }
        };
        let signature = session.signature()?;
        if let Some(reason) = mismatch(&self.signature, &signature) {
            return Ok(Report::without_trials(Verdict::OtherSignature { reason }));
        }
        if let Some(reason) = obstacle(&signature) {
            return Ok(Report::without_trials(Verdict::NotComparable { reason }));
        }
        let report = match twice(|| self.run(known, session, how, first)) {
            Ok(report) => report,
            Err(error) if is_about_the_program(&error) => Report::rejected(error.to_string()),
            Err(error) => return Err(error),
        };
        Ok(report)
    }

    fn run(
        &self,
        known: &Known,
        session: &mut Session,
        how: &Finish,
        first: bool,
    ) -> Result<Report, EngineError> {
        let outputs = self.signature.outputs.len();
        let mut notes = known.notes.clone();
        let mut tally = Tally::new(outputs, Precision::Own);
        let mut higher = Tally::new(outputs, Precision::Higher);
        let precise = if first {
            // What takes less time to compile, or none, comes first.
            let mut precise = self.precise(known, session, &mut notes)?;
            if let Some(precise) = &mut precise
                && known.compare_precise(precise, outputs, &mut higher, true)?
            {
                return Ok(self.report(known, tally, Some(higher), notes));
            }
            let mut own = Ready::new(session.scratch()?, how)?;
            known.compare(&mut own, &mut tally, true)?;
            precise
        } else {
            let scratch = session.scratch()?;
            let (own, precise) = side_by_side(
                || Ready::new(scratch, how),
                || self.precise(known, session, &mut notes),
            );
            let (mut own, mut precise) = (own?, precise?);
            let (found, also) = side_by_side(
                || known.compare(&mut own, &mut tally, false),
                || match &mut precise {
                    Some(precise) => known.compare_precise(precise, outputs, &mut higher, false),
                    None => Ok(false),
                },
            );
            found?;
            also?;
            precise
        };
        if precise.is_none() {
            return Ok(self.report(known, tally, None, notes));
        }
        if first && tally.differences().next().is_some() {
            return Ok(self.report(known, tally, Some(higher), notes));
        }
        if self.kind == ReferenceKind::Both {
            self.ask_interpreter(known, session, &mut higher)?;
        }
        Ok(self.report(known, tally, Some(higher), notes))
    }

    /// The result in higher precision, if the original could be had so and it can.
    fn precise(
        &self,
        known: &Known,
        session: &mut Session,
        notes: &mut Vec<String>,
    ) -> Result<Option<Precise>, EngineError> {
        let (Some(executor), Some(trial)) = (known.promoted, known.trials.first()) else {
            return Ok(None);
        };
        let mut make = |executor| {
            let mut made = Precise::new(session.scratch()?, false, executor, &known.without)?;
            if executor == Executor::Interpreter {
                made.run(&trial.inputs, self.signature.outputs.len())?;
            }
            Ok(made)
        };
        let made = match make(executor) {
            // What the interpreter does not take can still be compiled.
            Err(error) if is_about_the_program(&error) && executor == Executor::Interpreter => {
                make(Executor::Compiled)
            }
            made => made,
        };
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if is_about_the_program(&error) => {
                notes.push(format!("the result cannot be had in higher precision: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Has the interpreter run the result too.
    fn ask_interpreter(
        &self,
        known: &Known,
        session: &mut Session,
        tally: &mut Tally,
    ) -> Result<(), EngineError> {
        let scratch = session.scratch()?;
        let mut precise =
            match Precise::new(scratch, false, Executor::Interpreter, &Finish::default()) {
                Ok(precise) => precise,
                Err(error) if is_about_the_program(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
        for (inputs, expected) in known.precise_trials().take(known.interpreted as usize) {
            match precise.run(inputs, self.signature.outputs.len()) {
                Ok((arrays, _)) => tally.add(&expected, &arrays),
                Err(error) if is_about_the_program(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn report(
        &self,
        known: &Known,
        own: Tally,
        higher: Option<Tally>,
        notes: Vec<String>,
    ) -> Report {
        let mut differences: Vec<_> = own.differences().cloned().collect();
        let mut worst = own.largest;
        let mut unknown = own.without_numbers();
        if let Some(higher) = &higher {
            for difference in higher.differences() {
                if !differences.iter().any(|other| other.output == difference.output) {
                    differences.push(difference.clone());
                }
            }
            worst = worst.max(higher.largest);
            // What is no number in one precision may be one in the other.
            let also = higher.without_numbers();
            unknown.retain(|output| also.contains(output));
        }
        differences.sort_by_key(|difference| difference.output);
        let verdict = if !differences.is_empty() && !self.signature.random.is_empty() {
            Verdict::NotComparable {
                reason: format!(
                    "outputs differ, but may do so by themselves, because of {}",
                    self.signature.random.join(", ")
                ),
            }
        } else if !differences.is_empty() {
            Verdict::Different { differences }
        } else if let Some(reason) = &known.disagreement {
            Verdict::NotComparable { reason: reason.clone() }
        } else if !unknown.is_empty() {
            Verdict::NotComparable { reason: no_numbers(&unknown) }
        } else {
            Verdict::Equal
        };
        let compared: Compared = own.compared;
        Report {
            verdict,
            trials: known.trials.len() as u32,
            elements: compared.elements,
            non_finite: compared.elements - compared.finite,
            worst,
            compared,
            accuracy: own.accuracy.filter(|_| known.promoted.is_some()),
            higher_precision: higher.is_some(),
            interpreted: known.interpreted,
            decisions: known.decisions,
            one_sided: known.one_sided.clone(),
            unknown_calls: self.signature.unknown_calls.clone(),
            notes,
        }
    }
}

fn no_numbers(outputs: &[usize]) -> String {
    let list: Vec<String> = outputs.iter().take(5).map(usize::to_string).collect();
    format!(
        "output {}{} infinite or NaN everywhere, on all inputs that were tried",
        list.join(", "),
        if outputs.len() == 1 { " is" } else { " are" }
    )
}
