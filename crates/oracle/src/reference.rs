//! A program whose outputs others are compared with.

use std::time::{Duration, Instant};

use xla_gym_arrays::{BLOCK, bytes_of};
use xla_gym_engine::{
    EngineError, Session,
    protocol::{
        Cost, Executor, FailureKind, Finish, Hello, InputSet, MetricRole, Observe, Signature,
    },
};

use crate::{
    Options, ReferenceKind, Report, Verdict,
    compare::{Compared, Precision, Tally},
    inputs::too_large,
    noise::Expected,
    program::{Precise, Ready, is_about_the_program, side_by_side, twice},
    signature::{mismatch, obstacle},
    trials::{Runs, Trial},
};

/// The interpreter is asked by default where it should take no longer than this.
const INTERPRETER_SECONDS: f64 = 2.0;

/// And it runs everything in higher precision where that takes less time than compiling.
const INSTEAD_OF_COMPILING: f64 = 0.1;

/// What it takes longer than this for two runs is compiled after all.
const TOO_LONG: Duration = Duration::from_millis(600);

/// A program that has more to do (operations and bytes of a run, as the compiler estimates them), or
/// takes and gives more bytes, is large.
const LARGE_WORK: f64 = 5e9;
const LARGE_BYTES: u64 = 256 << 20;

/// What a process takes beside what a program needs: the compiler, code, and one array that is looked at.
const BESIDE: u64 = 2 << 30;

/// A program, run on several kinds of inputs, with what it computes and how exactly.
pub struct Reference {
    signature: Signature,
    state: Result<Known, String>,
    kind: ReferenceKind,
}

/// What is known of a program that runs.
struct Known {
    trials: Vec<Trial>,
    /// Passes of the pipeline that the second compilation leaves out.
    without: Finish,
    /// Who runs it in higher precision, if it could be had so.
    promoted: Option<Executor>,
    /// How many decisions there are in the program, and those that only ever fell one way.
    decisions: usize,
    one_sided: Vec<String>,
    /// Where compiled code and interpreter disagree on the program itself.
    disagreement: Option<String>,
    /// On how many trials the interpreter was asked.
    interpreted: u32,
    /// About how long a comparison takes.
    takes: Duration,
    notes: Vec<String>,
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

impl Known {
    fn new(
        session: &mut Session,
        signature: &Signature,
        options: Options,
        without: &Finish,
    ) -> Result<Known, EngineError> {
        let cost = session.observe(Observe::COST)?.cost.and_then(Result::ok);
        let engine = session.engine().clone();
        let hello = engine.hello();
        let expected = match &cost {
            Some(cost) if signature.interpretable => interpreter_seconds(hello, cost),
            _ => f64::INFINITY,
        };
        let executor = match options.reference {
            ReferenceKind::Interpreter => Executor::Interpreter,
            ReferenceKind::Auto if expected <= INSTEAD_OF_COMPILING => Executor::Interpreter,
            _ => Executor::Compiled,
        };
        let large = is_large(signature, hello, cost.as_ref());
        let work = work(hello, cost.as_ref()).unwrap_or(f64::INFINITY);
        // Whoever asks for the interpreter gets it, however long that takes.
        let asked = [ReferenceKind::Both, ReferenceKind::Interpreter].contains(&options.reference);
        if large && !asked {
            return Known::of_large(session, signature, work, options, without);
        }
        let all = Instant::now();
        let (own, second) = (session.scratch()?, session.scratch()?);
        // Where nothing can be widened, it still says which decisions fell.
        let precise = session.scratch()?;
        let (own, (precise, second)) = side_by_side(
            || Ready::new(own, &Finish::default()),
            || {
                let precise = Precise::new(precise, true, executor, without);
                (precise, Ready::quickly(second, without).ok())
            },
        );
        let limit = Duration::MAX;
        let mut runs =
            Runs { signature, work, large: false, limit, own: own?, second, precise: None };
        let begin = Instant::now();
        let tried = precise.and_then(|precise| runs.tried(precise));
        // What the interpreter does not take, or only in the end, can still be compiled.
        let unsuited = match &tried {
            Ok(_) => begin.elapsed() > TOO_LONG && options.reference == ReferenceKind::Auto,
            Err(error) => is_about_the_program(error),
        };
        let (precise, executor) = if unsuited && executor == Executor::Interpreter {
            let compiled = Precise::new(session.scratch()?, true, Executor::Compiled, without);
            (compiled.and_then(|precise| runs.tried(precise)), Executor::Compiled)
        } else {
            (tried, executor)
        };
        let mut notes = Vec::new();
        match precise {
            Ok(precise) => runs.precise = Some(precise),
            Err(error) if is_about_the_program(&error) => {
                notes.push(format!("it cannot be had in higher precision: {error}"));
            }
            Err(error) => return Err(error),
        }
        let promoted = runs.precise.is_some().then_some(executor);
        let decisions = runs.precise.as_ref().map_or(0, |precise| precise.decisions.len());
        let chosen = runs.choose_trials(options)?;
        notes.extend(chosen.notes);
        let mut known = Known {
            trials: chosen.trials,
            without: without.clone(),
            promoted,
            decisions,
            one_sided: chosen.one_sided,
            disagreement: None,
            interpreted: 0,
            // A result runs once where the original ran three times, but is compiled as well.
            takes: all.elapsed().mul_f64(0.6),
            notes,
        };
        let asked = match options.reference {
            ReferenceKind::Auto => expected <= INTERPRETER_SECONDS,
            ReferenceKind::Both => signature.interpretable,
            ReferenceKind::Compiled | ReferenceKind::Interpreter => false,
        };
        match known.promoted {
            Some(Executor::Interpreter) => {
                known.interpreted = known.precise_trials().count() as u32;
            }
            Some(Executor::Compiled) if asked => {
                known.ask_interpreter(session, signature, options.reference)?;
            }
            _ => {}
        }
        Ok(known)
    }

    /// What can be known of a program of which a run takes seconds and gigabytes: one process at a time,
    /// in its own precision, on as many kinds of inputs as there is time for.
    fn of_large(
        session: &mut Session,
        signature: &Signature,
        work: f64,
        options: Options,
        without: &Finish,
    ) -> Result<Known, EngineError> {
        let begin = Instant::now();
        let own = Ready::new(session.scratch()?, &Finish::default())?;
        let limit = session.engine().config().limits.memory_bytes;
        let needs = own.needs().unwrap_or(0);
        let needs = needs.saturating_add(BESIDE);
        if needs > limit {
            let size = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            let message = format!(
                "a run takes about {:.1} GiB, and the limit is {:.1} (--memory-limit)",
                size(needs),
                size(limit)
            );
            let kind = FailureKind::Refused;
            return Err(EngineError::Refused { doing: "running it".to_owned(), kind, message });
        }
        let compiled = begin.elapsed();
        // What passes leave out rounds differently all over a deep program, more than one nudge shows.
        let second = match needs.saturating_mul(2) <= limit && compiled * 4 < options.limit {
            true => Ready::new(session.scratch()?, without).ok(),
            false => None,
        };
        let limit = options.limit.saturating_sub(begin.elapsed() + compiled);
        let mut runs = Runs { signature, work, large: true, limit, own, second, precise: None };
        let chosen = runs.choose_trials(options)?;
        let running: Duration = chosen.trials.iter().map(|trial| trial.took).sum();
        let mut notes = chosen.notes;
        notes.push(format!(
            "it is large: compared in its own precision alone, on {} of {} kinds of inputs, and where \
             outputs are large by sums over blocks of {BLOCK} elements",
            chosen.trials.len(),
            options.trials
        ));
        Ok(Known {
            trials: chosen.trials,
            without: Finish::default(),
            promoted: None,
            decisions: 0,
            one_sided: Vec::new(),
            disagreement: None,
            interpreted: 0,
            takes: compiled + running,
            notes,
        })
    }

    /// Inputs on which higher precision is compared (not ties), with what the interpreter should give.
    fn precise_trials(&self) -> impl Iterator<Item = (&InputSet, Vec<Expected>)> {
        self.trials.iter().filter_map(|trial| Some((&trial.inputs, trial.interpreted()?)))
    }

    /// Runs a result on all inputs, or until something differs; whether it does.
    fn compare(
        &self,
        program: &mut Ready,
        tally: &mut Tally,
        first: bool,
    ) -> Result<bool, EngineError> {
        for trial in &self.trials {
            tally.add(&trial.own, &program.run(&trial.inputs)?);
            if first && tally.differences().next().is_some() {
                break;
            }
        }
        Ok(tally.differences().next().is_some())
    }

    /// The same in higher precision.
    fn compare_precise(
        &self,
        program: &mut Precise,
        outputs: usize,
        tally: &mut Tally,
        first: bool,
    ) -> Result<bool, EngineError> {
        for trial in &self.trials {
            let Some(expected) = &trial.precise else { continue };
            tally.add(expected, &program.run(&trial.inputs, outputs)?.0);
            if first && tally.differences().next().is_some() {
                break;
            }
        }
        Ok(tally.differences().next().is_some())
    }

    /// Whether compiled code and interpreter agree on the program itself.
    fn ask_interpreter(
        &mut self,
        session: &mut Session,
        signature: &Signature,
        kind: ReferenceKind,
    ) -> Result<(), EngineError> {
        let scratch = session.scratch()?;
        let outputs = signature.outputs.len();
        let mut precise =
            match Precise::new(scratch, false, Executor::Interpreter, &Finish::default()) {
                Ok(precise) => precise,
                Err(error) if is_about_the_program(&error) => {
                    self.notes.push(format!("the interpreter does not take it: {error}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
        let count = if kind == ReferenceKind::Auto { 1 } else { self.trials.len() };
        let mut agreed = 0;
        let (mut found, mut disagreement) = (Ok(()), None);
        for (inputs, expected) in self.precise_trials().take(count) {
            let arrays = match precise.run(inputs, outputs) {
                Ok((arrays, _)) => arrays,
                Err(error) if is_about_the_program(&error) => {
                    found = Err(format!("the interpreter does not run it: {error}"));
                    break;
                }
                Err(error) => return Err(error),
            };
            let mut tally = Tally::new(outputs, Precision::Higher);
            tally.add(&expected, &arrays);
            agreed += 1;
            if let Some(difference) = tally.differences().next() {
                disagreement = Some(format!(
                    "compiled code and interpreter disagree on the original: output {} has {:e} and \
                     {:e} at element {}",
                    difference.output, difference.expected, difference.got, difference.element
                ));
                break;
            }
        }
        self.disagreement = disagreement;
        self.interpreted = agreed;
        self.notes.extend(found.err());
        Ok(())
    }
}

/// Whether a program has so much to do that only few runs of it can be had.
pub fn is_large(signature: &Signature, hello: &Hello, cost: Option<&Cost>) -> bool {
    work(hello, cost).is_some_and(|work| work > LARGE_WORK) || io_bytes(signature) > LARGE_BYTES
}

/// Operations and bytes of a run.
fn work(hello: &Hello, cost: Option<&Cost>) -> Option<f64> {
    let of = |cost, role| hello.cost_of(cost, role);
    cost.map(|cost| of(cost, MetricRole::Arithmetic) + of(cost, MetricRole::Traffic))
        .filter(|work| work.is_finite())
}

/// Bytes of all inputs and outputs.
pub fn io_bytes(signature: &Signature) -> u64 {
    let specs = signature.inputs.iter().chain(&signature.outputs);
    let bytes = specs.map(|spec| bytes_of(&spec.dtype, &spec.dims).unwrap_or(u64::MAX));
    bytes.fold(0, u64::saturating_add)
}

/// About how long the interpreter takes: it visits every element one by one.
pub fn interpreter_seconds(hello: &Hello, cost: &Cost) -> f64 {
    let of = |role| hello.cost_of(cost, role);
    of(MetricRole::Traffic) / 4e7 + of(MetricRole::Transcendental) / 2e7
}
