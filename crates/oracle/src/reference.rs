//! A program whose outputs others are compared with.

use std::thread;

use xla_gym_engine::{
    Compiled, EngineError, Scratch, Session,
    protocol::{Array, CompileOptions, Cost, Executor, FailureKind, InputSet, Observe, Signature},
};

use crate::{
    Options, ReferenceKind, Report, Verdict,
    compare::{Compared, Precision, Tally},
    inputs::{Style, inputs, too_large},
    noise::{Expected, Samples},
    signature::{mismatch, obstacle},
};

/// The interpreter is asked by default where it should take no longer than this.
const INTERPRETER_SECONDS: f64 = 2.0;

/// And it runs everything in higher precision where that takes less time than compiling.
const INSTEAD_OF_COMPILING: f64 = 0.1;

/// How often inputs are moved by a unit in the last place.
const NUDGES: u64 = 2;

/// Programs with fewer elements in all outputs get twice as many trials.
const FEW: i64 = 64;

/// After the trials that were asked for, so many other kinds of inputs are tried where decisions
/// have fallen only one way, or outputs were no numbers.
const MORE: u32 = 6;

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
    without: Vec<String>,
    /// Who runs it in higher precision, if it could be had so.
    promoted: Option<Executor>,
    /// How many decisions there are in the program, and those that only ever fell one way.
    decisions: usize,
    one_sided: Vec<String>,
    /// Where compiled code and interpreter disagree on the program itself.
    disagreement: Option<String>,
    /// On how many trials the interpreter was asked.
    interpreted: u32,
    notes: Vec<String>,
}

struct Trial {
    inputs: InputSet,
    own: Vec<Expected>,
    precise: Option<Vec<Expected>>,
}

/// A program in a worker of its own, ready to run.
struct Ready {
    scratch: Scratch,
    compiled: Compiled,
}

impl Ready {
    fn run(&mut self, inputs: &InputSet) -> Result<Vec<Array>, EngineError> {
        self.scratch.make_inputs(&self.compiled, inputs)?;
        Ok(self.scratch.execute(&self.compiled, 1, true)?.1)
    }
}

/// The program in higher precision.
struct Precise {
    ready: Ready,
    decisions: Vec<String>,
    /// The same with its constants moved by one unit in the last place.
    moved: Option<Compiled>,
}

impl Precise {
    fn new(
        mut scratch: Scratch,
        original: bool,
        executor: Executor,
        without: &[String],
    ) -> Result<Precise, EngineError> {
        let (program, decisions) = scratch.promote(original, None)?;
        let options = CompileOptions { disable: without.to_vec(), executor, quick: true };
        let compiled = scratch.compile_program(program, &options)?;
        let mut moved = None;
        if original {
            let (program, _) = scratch.promote(false, Some(0))?;
            moved = Some(scratch.compile_program(program, &options)?);
        }
        Ok(Precise { ready: Ready { scratch, compiled }, decisions, moved })
    }

    /// Outputs with inputs and constants moved by one unit in the last place.
    fn run_moved(&mut self, inputs: &InputSet, nudge: u64) -> Result<Vec<Array>, EngineError> {
        let compiled = self.moved.unwrap_or(self.ready.compiled);
        let scratch = &mut self.ready.scratch;
        scratch.make_inputs(&compiled, &nudged(&widened(inputs), nudge))?;
        Ok(scratch.execute(&compiled, 1, true)?.1)
    }

    /// Outputs, and for each decision whether it was ever true and ever false.
    fn run(
        &mut self,
        inputs: &InputSet,
        outputs: usize,
    ) -> Result<(Vec<Array>, Vec<[bool; 2]>), EngineError> {
        let mut arrays = self.ready.run(&widened(inputs))?;
        let sides = arrays.split_off(outputs.min(arrays.len()));
        let side = |which: usize, place: usize| {
            sides.get(which).and_then(|array| array.bytes.get(place)).is_some_and(|byte| *byte == 1)
        };
        let decisions = (0..self.decisions.len()).map(|i| [side(0, i), side(1, i)]).collect();
        Ok((arrays, decisions))
    }
}

/// The same values, held as the promoted program takes them.
fn widened(inputs: &InputSet) -> InputSet {
    let mut inputs = inputs.clone();
    for input in &mut inputs.inputs {
        input.held_as = match input.dtype.as_str() {
            "f16" | "bf16" | "f32" => Some("f64".to_owned()),
            "c64" => Some("c128".to_owned()),
            _ => None,
        };
    }
    inputs
}

fn nudged(inputs: &InputSet, nudge: u64) -> InputSet {
    InputSet { nudge: Some(nudge), ..inputs.clone() }
}

impl Reference {
    /// Compiles and runs the program in throw-away workers. `without` are passes of the compiler's
    /// own pipeline that it can do without: the second way to compile it. A program that cannot be
    /// compared at all makes every later comparison [`Verdict::NotComparable`]; one that dies is an
    /// error.
    pub fn new(
        session: &mut Session,
        options: Options,
        without: &[String],
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
        match Known::new(session, &signature, options, without) {
            Ok(known) => Ok(Reference { signature, state: Ok(known), kind }),
            Err(error @ EngineError::Refused { .. }) => {
                unusable(signature, format!("the original does not run: {error}"))
            }
            Err(error) => Err(error),
        }
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

    /// Runs another program on the same inputs and compares. `disable` are passes of the
    /// compiler's own pipeline to leave out for it.
    pub fn compare(
        &self,
        session: &mut Session,
        disable: &[String],
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
        let report = match self.run(known, session, disable) {
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
        disable: &[String],
    ) -> Result<Report, EngineError> {
        let outputs = self.signature.outputs.len();
        let (own, precise) = prepare(
            session.scratch()?,
            match known.promoted {
                Some(_) => Some(session.scratch()?),
                None => None,
            },
            disable,
            |scratch| {
                let executor = known.promoted.unwrap_or_default();
                Precise::new(scratch, false, executor, &known.without)
            },
        );
        let mut own = own?;
        let mut tally = Tally::new(outputs, Precision::Own);
        let mut higher = Tally::new(outputs, Precision::Higher);
        let mut notes = known.notes.clone();
        let mut precise = match precise.transpose() {
            Ok(precise) => precise,
            Err(error) if is_about_the_program(&error) => {
                notes.push(format!("the result cannot be had in higher precision: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        // What the interpreter does not take can still be compiled.
        if let (Some(tried), Some(Executor::Interpreter)) = (&mut precise, known.promoted)
            && let Some(trial) = known.trials.first()
            && let Err(error) = tried.run(&trial.inputs, outputs)
        {
            if !is_about_the_program(&error) {
                return Err(error);
            }
            let scratch = session.scratch()?;
            precise = match Precise::new(scratch, false, Executor::Compiled, &known.without) {
                Ok(compiled) => Some(compiled),
                Err(error) if is_about_the_program(&error) => {
                    notes.push(format!("the result cannot be had in higher precision: {error}"));
                    None
                }
                Err(error) => return Err(error),
            };
        }
        for trial in &known.trials {
            tally.add(&trial.own, &own.run(&trial.inputs)?);
            if let (Some(precise), Some(expected)) = (&mut precise, &trial.precise) {
                higher.add(expected, &precise.run(&trial.inputs, outputs)?.0);
            }
        }
        if self.kind == ReferenceKind::Both && known.promoted.is_some() {
            self.ask_interpreter(known, session, &mut higher)?;
        }
        let compared = precise.is_some();
        Ok(self.report(known, tally, compared.then_some(higher), notes))
    }

    /// Has the interpreter run the result too.
    fn ask_interpreter(
        &self,
        known: &Known,
        session: &mut Session,
        tally: &mut Tally,
    ) -> Result<(), EngineError> {
        let scratch = session.scratch()?;
        let mut precise = match Precise::new(scratch, false, Executor::Interpreter, &[]) {
            Ok(precise) => precise,
            Err(error) if is_about_the_program(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        for trial in known.trials.iter().take(known.interpreted as usize) {
            let outputs = self.signature.outputs.len();
            match (precise.run(&trial.inputs, outputs), &trial.precise) {
                (Ok((arrays, _)), Some(expected)) => tally.add(expected, &arrays),
                (Err(error), _) if !is_about_the_program(&error) => return Err(error),
                _ => break,
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

/// Compiles a program as it is and in higher precision, on two cores.
fn prepare<T: Send>(
    mut own: Scratch,
    precise: Option<Scratch>,
    disable: &[String],
    promote: impl FnOnce(Scratch) -> Result<T, EngineError> + Send,
) -> (Result<Ready, EngineError>, Option<Result<T, EngineError>>) {
    thread::scope(|scope| {
        let precise = precise.map(|scratch| scope.spawn(|| promote(scratch)));
        let own = own.compile(disable).map(|compiled| Ready { scratch: own, compiled });
        let lost = || EngineError::Internal("a thread of the oracle panicked".to_owned());
        (own, precise.map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))))
    })
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
        without: &[String],
    ) -> Result<Known, EngineError> {
        let expected = match session.observe(Observe::COST)?.cost {
            Some(Ok(cost)) if signature.interpretable => interpreter_seconds(&cost),
            _ => f64::INFINITY,
        };
        let executor = match options.reference {
            ReferenceKind::Interpreter => Executor::Interpreter,
            ReferenceKind::Auto if expected <= INSTEAD_OF_COMPILING => Executor::Interpreter,
            _ => Executor::Compiled,
        };
        // Where nothing can be widened, it still says which decisions fell.
        let precise = Some(session.scratch()?);
        let mut second = session.scratch()?;
        let (own, precise) = prepare(session.scratch()?, precise, &[], |scratch| {
            Precise::new(scratch, true, executor, without)
        });
        let mut runs = Runs {
            signature,
            own: own?,
            second: second
                .compile(without)
                .ok()
                .map(|compiled| Ready { scratch: second, compiled }),
            precise: None,
            notes: Vec::new(),
        };
        let precise = precise.transpose().and_then(|precise| runs.tried(precise));
        // What the interpreter does not take can still be compiled.
        let (precise, executor) = match precise {
            Err(error) if is_about_the_program(&error) && executor == Executor::Interpreter => {
                let scratch = session.scratch()?;
                let compiled = Precise::new(scratch, true, Executor::Compiled, without);
                (compiled.and_then(|precise| runs.tried(Some(precise))), Executor::Compiled)
            }
            precise => (precise, executor),
        };
        match precise {
            Ok(precise) => runs.precise = precise,
            Err(error) if is_about_the_program(&error) => {
                runs.notes.push(format!("it cannot be had in higher precision: {error}"));
            }
            Err(error) => return Err(error),
        }
        let mut known = Known {
            trials: Vec::new(),
            without: without.to_vec(),
            promoted: runs.precise.is_some().then_some(executor),
            decisions: runs.precise.as_ref().map_or(0, |precise| precise.decisions.len()),
            one_sided: Vec::new(),
            disagreement: None,
            interpreted: 0,
            notes: Vec::new(),
        };
        runs.choose_trials(&mut known, options)?;
        let asked = match options.reference {
            ReferenceKind::Auto => expected <= INTERPRETER_SECONDS,
            ReferenceKind::Both => signature.interpretable,
            ReferenceKind::Compiled | ReferenceKind::Interpreter => false,
        };
        match known.promoted {
            Some(Executor::Interpreter) => known.interpreted = known.trials.len() as u32,
            Some(Executor::Compiled) if asked => {
                known.ask_interpreter(session, signature, options.reference)?;
            }
            _ => {}
        }
        known.notes.append(&mut runs.notes);
        Ok(known)
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
        let mut precise = match Precise::new(scratch, false, Executor::Interpreter, &[]) {
            Ok(precise) => precise,
            Err(error) if is_about_the_program(&error) => {
                self.notes.push(format!("the interpreter does not take it: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let count = if kind == ReferenceKind::Auto { 1 } else { self.trials.len() };
        for trial in self.trials.iter().take(count) {
            let (Some(expected), arrays) = (&trial.precise, precise.run(&trial.inputs, outputs))
            else {
                return Ok(());
            };
            let arrays = match arrays {
                Ok((arrays, _)) => arrays,
                Err(error) if is_about_the_program(&error) => {
                    self.notes.push(format!("the interpreter does not run it: {error}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let mut tally = Tally::new(outputs, Precision::Higher);
            tally.add(expected, &arrays);
            self.interpreted += 1;
            if let Some(difference) = tally.differences().next() {
                self.disagreement = Some(format!(
                    "compiled code and interpreter disagree on the original: output {} has {:e} and \
                     {:e} at element {}",
                    difference.output, difference.expected, difference.got, difference.element
                ));
                return Ok(());
            }
        }
        Ok(())
    }
}

/// About how long the interpreter takes: it visits every element one by one.
fn interpreter_seconds(cost: &Cost) -> f64 {
    cost.bytes_accessed / 4e7 + cost.transcendentals / 2e7
}

/// The programs that a reference is made of.
struct Runs<'a> {
    signature: &'a Signature,
    own: Ready,
    second: Option<Ready>,
    precise: Option<Precise>,
    notes: Vec<String>,
}

impl Runs<'_> {
    /// The program in higher precision, if it runs on ordinary inputs.
    fn tried(&self, precise: Option<Precise>) -> Result<Option<Precise>, EngineError> {
        let Some(mut precise) = precise else { return Ok(None) };
        if !self.is_random() {
            let inputs = inputs(self.signature, 0, 0, Style::Typical, false);
            precise.run(&inputs, self.signature.outputs.len())?;
        }
        Ok(Some(precise))
    }

    fn output_elements(&self) -> i64 {
        self.signature.outputs.iter().map(|spec| spec.dims.iter().product::<i64>()).sum()
    }

    fn is_random(&self) -> bool {
        !self.signature.random.is_empty()
    }

    /// Runs the trials that were asked for, then more kinds of inputs where something was not seen.
    fn choose_trials(&mut self, known: &mut Known, options: Options) -> Result<(), EngineError> {
        let mut sides = vec![[false; 2]; known.decisions];
        let mut numbers = vec![false; self.signature.outputs.len()];
        let mut failure = None;
        // Only the first run begins with a known random state.
        let (trials, more) = match options.trials {
            _ if self.is_random() => (1, 0),
            // A few numbers say little each.
            trials if self.output_elements() < FEW => (trials.max(2 * options.trials), MORE),
            trials => (trials, MORE),
        };
        for trial in 0..trials + more {
            let wanted = trial < trials;
            let complete = sides.iter().all(|side| side[0] && side[1]);
            if !wanted && complete && numbers.iter().all(|number| *number) {
                break;
            }
            let found = match self.trial(options.seed, trial) {
                Ok(found) => found,
                // Unusual inputs may be too much for a program: a loop that turns for ever, say.
                Err(error) if is_about_the_program(&error) => {
                    if trial == 0 {
                        return Err(error);
                    }
                    failure.get_or_insert(format!("one kind of inputs was given up: {error}"));
                    break;
                }
                Err(error) => return Err(error),
            };
            let mut news = false;
            for (side, seen) in sides.iter_mut().zip(&found.sides) {
                for (side, seen) in side.iter_mut().zip(seen) {
                    news |= *seen && !*side;
                    *side |= *seen;
                }
            }
            for (number, expected) in numbers.iter_mut().zip(&found.trial.own) {
                let tells = expected.tells();
                news |= tells && !*number;
                *number |= tells;
            }
            if wanted || news {
                known.trials.push(found.trial);
            }
        }
        self.notes.extend(failure);
        if let Some(precise) = &self.precise {
            let open =
                precise.decisions.iter().zip(&sides).filter(|(_, side)| !(side[0] && side[1]));
            known.one_sided = open.map(|(name, _)| name.clone()).collect();
        }
        Ok(())
    }

    /// One kind of inputs; calmer ones where some output is no number at all.
    fn trial(&mut self, seed: u64, trial: u32) -> Result<Found, EngineError> {
        let style = Style::of_trial(trial);
        // A nudge would break ties, but without one nobody knows how much narrow constants matter. And
        // a hidden random state gives other numbers every time.
        let ties = style.has_ties() && !self.signature.narrow_floats;
        let nudges = if ties || self.is_random() { 0 } else { NUDGES };
        let found = self.run(&inputs(self.signature, seed, trial, style, false), nudges)?;
        let missing = found.missing();
        if missing == 0 || self.is_random() {
            return Ok(found);
        }
        let calm = self.run(&inputs(self.signature, seed, trial, style, true), nudges)?;
        Ok(if calm.missing() < missing { calm } else { found })
    }

    /// Runs everything on one set of inputs.
    fn run(&mut self, inputs: &InputSet, nudges: u64) -> Result<Found, EngineError> {
        let outputs = self.signature.outputs.len();
        let own = self.own.run(inputs)?;
        let mut others = Vec::new();
        let mut moved = Vec::new();
        for nudge in 1..=nudges {
            moved.push(self.own.run(&nudged(inputs, nudge))?);
        }
        if let Some(second) = &mut self.second {
            match second.run(inputs) {
                Ok(arrays) => others.push(arrays),
                Err(error) if is_about_the_program(&error) => self.second = None,
                Err(error) => return Err(error),
            }
        }
        let mut sides = Vec::new();
        let mut precise = None;
        if let Some(program) = &mut self.precise {
            let (center, seen) = program.run(inputs, outputs)?;
            sides = seen;
            let mut moved = Vec::new();
            for nudge in 1..=nudges {
                moved.push(program.run_moved(inputs, nudge)?);
            }
            precise = Some((center, moved));
        }
        let spec = |output: usize| self.signature.outputs[output].dtype.as_str();
        let expected = (0..outputs.min(own.len()))
            .map(|output| {
                let samples = Samples {
                    own: &own[output],
                    others: others.iter().filter_map(|arrays| arrays.get(output)).collect(),
                    nudged: moved.iter().filter_map(|arrays| arrays.get(output)).collect(),
                    precise: precise.as_ref().and_then(|(center, _)| center.get(output)),
                    rounding: spec(output),
                };
                Expected::of(&samples)
            })
            .collect();
        let higher = precise.as_ref().map(|(center, moved)| {
            (0..outputs.min(center.len()))
                .map(|output| {
                    let samples = Samples {
                        own: &center[output],
                        others: Vec::new(),
                        nudged: moved.iter().filter_map(|arrays| arrays.get(output)).collect(),
                        precise: None,
                        // Passes compute with constants, and round them.
                        rounding: "f32",
                    };
                    Expected::of(&samples)
                })
                .collect()
        });
        let trial = Trial { inputs: inputs.clone(), own: expected, precise: higher };
        Ok(Found { trial, sides })
    }
}

/// A trial, with the decisions that fell in it.
struct Found {
    trial: Trial,
    sides: Vec<[bool; 2]>,
}

impl Found {
    /// Outputs in which nothing is a number.
    fn missing(&self) -> usize {
        let empty = |expected: &&Expected| !expected.is_empty() && expected.finite() == 0;
        self.trial.own.iter().filter(empty).count()
    }
}

fn is_about_the_program(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused { .. } | EngineError::Died { .. })
}
