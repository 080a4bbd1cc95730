//! What a program computes, and how exactly: found by running it.

use std::time::{Duration, Instant};

use xla_gym_arrays::BLOCK;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Executor, FailureKind, Finish, InputSet, Observe, Signature},
};

use crate::{
    Options, ReferenceKind,
    compare::{Precision, Tally},
    noise::Expected,
    program::{Precise, Ready, is_about_the_program, side_by_side},
    size::{interpreter_seconds, is_large, work},
    trials::{Runs, Trial},
};

/// The interpreter is asked by default where it should take no longer than this.
const INTERPRETER_SECONDS: f64 = 2.0;

/// And it runs everything in higher precision where that takes less time than compiling.
const INSTEAD_OF_COMPILING: f64 = 0.1;

/// What it takes longer than this for two runs is compiled after all.
const TOO_LONG: Duration = Duration::from_millis(600);

/// What a process takes beside what a program needs: the compiler, code, and one array that is looked at.
const BESIDE: u64 = 2 << 30;

/// What is known of a program that runs.
pub struct Known {
    pub trials: Vec<Trial>,
    /// Passes of the pipeline that the second compilation leaves out.
    pub without: Finish,
    /// Who runs it in higher precision, if it could be had so.
    pub promoted: Option<Executor>,
    /// How many decisions there are in the program, and those that only ever fell one way.
    pub decisions: usize,
    pub one_sided: Vec<String>,
    /// Where compiled code and interpreter disagree on the program itself.
    pub disagreement: Option<String>,
    /// On how many trials the interpreter was asked.
    pub interpreted: u32,
    /// About how long a comparison takes.
    pub takes: Duration,
    pub notes: Vec<String>,
}

impl Known {
    /// Runs it on as many kinds of inputs as there is time for.
    pub fn new(
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
    pub fn precise_trials(&self) -> impl Iterator<Item = (&InputSet, Vec<Expected>)> {
        self.trials.iter().filter_map(|trial| Some((&trial.inputs, trial.interpreted()?)))
    }

    /// Runs a result on all inputs, or until something differs; whether it does.
    pub fn compare(
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
    pub fn compare_precise(
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
