//! Whether two programs compute the same, found out by running both.
//!
//! The oracle knows nothing of passes: it gets two programs, makes seeded inputs, has the real
//! compiler compile and run both, and compares every element of every output. Integers and
//! booleans must be equal; floats may differ by the tolerance of their type ([`Tolerance`]).
//!
//! Inputs are ones that a program would really see: floats within ±1, integers that end as
//! indices within bounds. If those give infinities or NaN (the square root of a negative second
//! moment, say), positive floats are tried, so that a comparison is not one of NaN with NaN.
//!
//! What cannot be compared is said so and never called equal: programs with random state of
//! their own, feeds, several devices, or whose every output is NaN.

#![forbid(unsafe_code)]

mod compare;
mod inputs;

use serde::{Deserialize, Serialize};
use xla_gym_engine::{
    Compiled, EngineError, Scratch, Session,
    protocol::{Array, ArraySpec, Signature},
};

pub use compare::{Difference, Tolerance};
pub use inputs::{Range, make_inputs};

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How many sets of inputs.
    pub trials: u32,
    /// From which seed.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { trials: 3, seed: 0 }
    }
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every output of every trial agrees.
    Equal,
    /// Some output differs; the worst difference of each output that does.
    Different {
        /// At most one for each output.
        differences: Vec<Difference>,
    },
    /// The compiler does not take the second program.
    Rejected {
        /// In its words.
        reason: String,
    },
    /// No comparison is possible.
    NotComparable {
        /// Why.
        reason: String,
    },
}

/// A verdict with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Sets of inputs compared.
    pub trials: u32,
    /// Output elements compared, over all trials.
    pub elements: u64,
    /// Of those, how many were infinite or NaN on both sides.
    pub non_finite: u64,
    /// Largest difference seen, in units of the tolerance: up to 1 is equal.
    pub worst: f64,
}

impl Report {
    /// Whether the programs were found equal.
    pub fn is_equal(&self) -> bool {
        self.verdict == Verdict::Equal
    }

    /// Of a program that cannot even be had.
    pub fn rejected(reason: String) -> Report {
        Report::without_trials(Verdict::Rejected { reason })
    }

    fn without_trials(verdict: Verdict) -> Report {
        Report { verdict, trials: 0, elements: 0, non_finite: 0, worst: 0.0 }
    }
}

/// A program whose outputs others are compared with. Compiled and run once.
pub struct Reference {
    signature: Signature,
    trials: Result<Vec<Trial>, String>,
}

struct Trial {
    inputs: Vec<Array>,
    outputs: Vec<Array>,
}

impl Reference {
    /// Compiles and runs the program in a throw-away worker. A program that cannot be run makes
    /// every later comparison [`Verdict::NotComparable`].
    pub fn new(session: &mut Session, options: Options) -> Result<Reference, EngineError> {
        let signature = match session.signature() {
            Ok(signature) => signature,
            Err(error @ EngineError::Refused { .. }) => {
                let signature = Signature {
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    not_comparable: Vec::new(),
                    custom_calls: Vec::new(),
                    collectives: Vec::new(),
                };
                return Ok(Reference { signature, trials: Err(error.to_string()) });
            }
            Err(error) => return Err(error),
        };
        if let Some(reason) = obstacle(&signature) {
            return Ok(Reference { signature, trials: Err(reason) });
        }
        let mut scratch = session.scratch()?;
        let trials = run_reference(&mut scratch, &signature, options);
        let trials = match trials {
            Ok(trials) => Ok(trials),
            Err(error) if is_about_the_program(&error) => {
                Err(format!("the reference does not run: {error}"))
            }
            Err(error) => return Err(error),
        };
        Ok(Reference { signature, trials })
    }

    /// Inputs on which the program runs, unless it cannot be run, with the reason.
    pub fn inputs(&self) -> Result<&[Array], &str> {
        match &self.trials {
            Ok(trials) => Ok(trials.first().map_or(&[], |trial| &trial.inputs)),
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
        let trials = match &self.trials {
            Ok(trials) => trials,
            Err(reason) => {
                let verdict = Verdict::NotComparable { reason: reason.clone() };
                return Ok(Report::without_trials(verdict));
            }
        };
        let signature = session.signature()?;
        if let Some(reason) = obstacle(&signature) {
            return Ok(Report::without_trials(Verdict::NotComparable { reason }));
        }
        if let Some(reason) = mismatch(&self.signature, &signature) {
            return Ok(Report::without_trials(Verdict::NotComparable { reason }));
        }
        let mut scratch = session.scratch()?;
        let compiled = match scratch.compile(disable) {
            Ok(compiled) => compiled,
            Err(error) if is_about_the_program(&error) => {
                let reason = error.to_string();
                return Ok(Report::rejected(reason));
            }
            Err(error) => return Err(error),
        };
        let mut tally = compare::Tally::new(self.signature.outputs.len());
        for trial in trials {
            let outputs = match run(&mut scratch, &compiled, trial.inputs.clone()) {
                Ok(outputs) => outputs,
                Err(error) if is_about_the_program(&error) => {
                    let reason = error.to_string();
                    return Ok(Report::rejected(reason));
                }
                Err(error) => return Err(error),
            };
            tally.add(&trial.outputs, &outputs);
        }
        Ok(tally.report(trials.len() as u32))
    }
}

/// Compares two programs.
pub fn check(
    first: &mut Session,
    second: &mut Session,
    options: Options,
) -> Result<Report, EngineError> {
    Reference::new(first, options)?.compare(second, &[])
}

fn run_reference(
    scratch: &mut Scratch,
    signature: &Signature,
    options: Options,
) -> Result<Vec<Trial>, EngineError> {
    let compiled = scratch.compile(&[])?;
    (0..options.trials)
        .map(|trial| {
            let mut best: Option<(u64, Trial)> = None;
            for range in [Range::Signed, Range::Positive] {
                let inputs = make_inputs(&signature.inputs, options.seed, trial, range);
                let outputs = run(scratch, &compiled, inputs.clone())?;
                let non_finite = outputs.iter().map(compare::non_finite).sum();
                if best.as_ref().is_none_or(|(fewest, _)| non_finite < *fewest) {
                    best = Some((non_finite, Trial { inputs, outputs }));
                }
                if non_finite == 0 {
                    break;
                }
            }
            best.map(|(_, trial)| trial)
                .ok_or_else(|| EngineError::Internal("no range of inputs was tried".to_owned()))
        })
        .collect()
}

fn run(
    scratch: &mut Scratch,
    compiled: &Compiled,
    inputs: Vec<Array>,
) -> Result<Vec<Array>, EngineError> {
    scratch.set_inputs(compiled, inputs)?;
    Ok(scratch.execute(compiled, 1, true)?.1)
}

fn is_about_the_program(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused { .. } | EngineError::Died { .. })
}

fn obstacle(signature: &Signature) -> Option<String> {
    if !signature.not_comparable.is_empty() {
        return Some(format!(
            "two runs may differ by themselves, because of {}",
            signature.not_comparable.join(", ")
        ));
    }
    if !signature.collectives.is_empty() {
        return Some(format!("it needs several devices, for {}", signature.collectives.join(", ")));
    }
    None
}

fn mismatch(a: &Signature, b: &Signature) -> Option<String> {
    let same = |a: &[ArraySpec], b: &[ArraySpec]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.dtype == b.dtype && a.dims == b.dims)
    };
    if !same(&a.inputs, &b.inputs) {
        return Some("the two programs take different inputs".to_owned());
    }
    if !same(&a.outputs, &b.outputs) {
        return Some("the two programs give outputs of different number, type or size".to_owned());
    }
    None
}
