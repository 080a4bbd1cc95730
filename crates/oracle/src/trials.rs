//! What a program computes on several kinds of inputs, and how exactly.

use std::time::{Duration, Instant};

use xla_gym_engine::{
    EngineError,
    protocol::{FailureKind, InputSet, Signature},
};

use crate::{
    Options,
    compare::{FACTOR, MANY, MEAN_FACTOR},
    inputs::{Calm, Style, inputs},
    noise::{Expected, Samples},
    program::{Precise, Ready, is_about_the_program, nudged, side_by_side},
};

/// How often inputs are moved by a unit in the last place.
const NUDGES: u64 = 2;

/// Programs with fewer elements in all outputs get twice as many trials: a few numbers say little.
const FEW: i64 = 64;

/// Programs with less to do (operations and bytes of a run) get twice, four and eight times as many, which
/// takes less time than compiling them.
const LITTLE: [f64; 3] = [5e7, 2e6, 5e5];

/// But at most so many, unless more were asked for.
const MOST: u32 = 48;

/// And none are added once all of them have taken so long; five times that while an output has been the
/// same on all of them.
const PATIENCE: Duration = Duration::from_secs(4);

/// This share of an element's noise in the program's own precision is its noise in higher precision at
/// least: what the program itself loses (a small term beside a large one), passes may lose too.
const KEPT: f32 = 1.0 / 16.0;

/// The same where some of it is the rounding of narrow types, of which higher precision knows nothing.
const KEPT_NARROW: f32 = 1.0 / 4096.0;

/// This share of the noise that an output has on most inputs it has on all; in its own precision, and in
/// higher.
const USUAL: f32 = 1.0 / 8.0;
const USUAL_PRECISE: f32 = 1e-6;

/// After the trials that were asked for, so many other kinds of inputs are tried where decisions
/// have fallen only one way, or outputs were no numbers.
const MORE: u32 = 6;

/// One kind of inputs, and what the original makes of them.
pub struct Trial {
    pub inputs: InputSet,
    /// Of the program as the compiler makes it.
    pub own: Vec<Expected>,
    /// Of the program in higher precision.
    pub precise: Option<Vec<Expected>>,
    /// How long a run took, with the making of inputs.
    pub took: Duration,
}

impl Trial {
    /// What the interpreter should give in higher precision. Some operations are never raised (FFT,
    /// say) and rounded differently by it, so that nothing is known better than in the program's own
    /// precision.
    pub fn interpreted(&self) -> Option<Vec<Expected>> {
        let precise = self.precise.as_ref()?;
        Some(precise.iter().zip(&self.own).map(|(precise, own)| precise.no_better(own)).collect())
    }
}

/// The trials that others are compared on.
pub struct Chosen {
    pub trials: Vec<Trial>,
    /// Decisions that only ever fell one way.
    pub one_sided: Vec<String>,
    /// Inputs that were given up, and why.
    pub notes: Vec<String>,
}

/// The programs that a reference is made of.
pub struct Runs<'a> {
    pub signature: &'a Signature,
    /// Operations and bytes of a run, as the compiler estimates them.
    pub work: f64,
    /// Whether a run takes so long that only few can be had.
    pub large: bool,
    /// How long all of them may take.
    pub limit: Duration,
    /// As the compiler makes it.
    pub own: Ready,
    /// Compiled in another way, if it can be.
    pub second: Option<Ready>,
    /// In higher precision, if it can be had so.
    pub precise: Option<Precise>,
}

impl Runs<'_> {
    /// Whether the program in higher precision runs on ordinary inputs.
    pub fn tried(&self, mut precise: Precise) -> Result<Precise, EngineError> {
        if !self.is_random() {
            let inputs = inputs(self.signature, 0, 0, Calm::NOT);
            precise.run(&inputs, self.signature.outputs.len())?;
            precise.run_moved(&inputs, Some(1))?;
        }
        Ok(precise)
    }

    /// How many times as many trials it gets as were asked for.
    fn times(&self) -> u32 {
        let little = LITTLE.iter().filter(|limit| self.work < **limit).count();
        let few = usize::from(self.output_elements() < FEW);
        1 << (little + few)
    }

    fn output_elements(&self) -> i64 {
        self.signature.outputs.iter().map(|spec| spec.dims.iter().product::<i64>()).sum()
    }

    fn is_random(&self) -> bool {
        !self.signature.random.is_empty()
    }

    /// Runs the trials that were asked for, then more kinds of inputs where something was not seen.
    pub fn choose_trials(&mut self, options: Options) -> Result<Chosen, EngineError> {
        let decisions =
            self.precise.as_ref().map_or(&[][..], |precise| &precise.decisions).to_vec();
        let mut chosen = Chosen { trials: Vec::new(), one_sided: Vec::new(), notes: Vec::new() };
        let mut sides = vec![[false; 2]; decisions.len()];
        // Values of each output, and whether they say something.
        let mut values = vec![Vec::new(); self.signature.outputs.len()];
        let mut telling = vec![false; self.signature.outputs.len()];
        let mut failure = None;
        // Only the first run begins with a known random state.
        let (trials, more) = match options.trials {
            _ if self.is_random() => (1, 0),
            trials => (trials.max((trials * self.times()).min(MOST)), MORE * self.times().min(4)),
        };
        let begin = Instant::now();
        for trial in 0..trials + more {
            // Estimates of work do not know how often loops turn.
            let patience = if telling.iter().all(|tells| *tells) { 1 } else { 5 };
            let next = begin.elapsed() * (trial + 1) / trial.max(1);
            if self.large && trial > 0 && next > options.patience {
                break;
            }
            if trial >= options.trials && begin.elapsed() > patience * PATIENCE {
                break;
            }
            let wanted = trial < trials;
            let complete = sides.iter().all(|side| side[0] && side[1]);
            if !wanted && complete && telling.iter().all(|tells| *tells) {
                break;
            }
            // Numbers of any size make a deep and wide program overflow; weights as they are drawn do not.
            let kind = match trial {
                0 | 1 if self.large => 1 - trial,
                trial => trial,
            };
            let (found, given_up) = match self.trial(options.seed, kind) {
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
            for (found, wanted) in [(Some(found), wanted), (given_up, false)] {
                let Some(found) = found else { continue };
                let mut news = false;
                for (side, seen) in sides.iter_mut().zip(&found.sides) {
                    for (side, seen) in side.iter_mut().zip(seen) {
                        news |= *seen && !*side;
                        *side |= *seen;
                    }
                }
                let outputs = telling.iter_mut().zip(&mut values);
                for ((tells, seen), expected) in outputs.zip(&found.trial.own) {
                    let before = seen.len();
                    expected.collect(seen);
                    news |= !*tells && seen.len() > before;
                    *tells = expected.tells(seen);
                }
                if wanted || news {
                    let mut trial = found.trial;
                    // Where inputs are whole numbers, results are often exact by luck; on others of
                    // that size it is seen how exact they are.
                    if let Some(first) = chosen.trials.first()
                        && found.has_ties
                    {
                        let pairs = trial.own.iter_mut().zip(&first.own);
                        pairs.for_each(|(ties, first)| ties.raise(first.usual()));
                    }
                    chosen.trials.push(trial);
                }
            }
        }
        raise_to_usual(&mut chosen.trials);
        if self.precise.is_some() {
            let outputs = chosen.trials.iter_mut().flat_map(|trial| &mut trial.own);
            // Of many elements, the mean still tells.
            let factor = |own: &Expected| if own.len() < MANY { FACTOR } else { MEAN_FACTOR };
            outputs.for_each(|own| own.give_up_if_hopeless(factor(own)));
        }
        chosen.notes.extend(failure);
        let open = decisions.into_iter().zip(&sides).filter(|(_, side)| !(side[0] && side[1]));
        chosen.one_sided = open.map(|(name, _)| name).collect();
        Ok(chosen)
    }

    /// One kind of inputs; calmer ones where much of an output is no number, and then also the first.
    fn trial(&mut self, seed: u64, trial: u32) -> Result<(Found, Option<Found>), EngineError> {
        // A nudge would break ties, but without one nobody knows how much narrow constants matter, or
        // which decisions rounding turns in higher precision: there ties are not compared. And a hidden
        // random state gives other numbers every time.
        let ties =
            Style::of_trial(trial).is_some_and(Style::has_ties) && !self.signature.narrow_floats;
        let nudges = match () {
            () if ties || self.is_random() => 0,
            () if self.large => 1,
            () => NUDGES,
        };
        let (signature, large) = (self.signature, self.large);
        let mut run = |inputs: &InputSet| -> Result<Found, EngineError> {
            let mut found = self.run(inputs, nudges)?;
            if ties {
                found.has_ties = true;
                found.trial.precise = None;
            }
            Ok(found)
        };
        let [calm, calmer_ones @ ..] = match large {
            true => Calm::LARGE,
            false => [Calm::NOT, Calm::INTEGERS, Calm::FLOATS, Calm::BOTH],
        };
        let first = run(&inputs(signature, seed, trial, calm))?;
        let mut calmer = None::<Found>;
        if !signature.random.is_empty() {
            return Ok((first, None));
        }
        let mut tried = vec![first.trial.inputs.clone()];
        for calm in calmer_ones {
            let best = calmer.as_ref().unwrap_or(&first).missing();
            let inputs = inputs(signature, seed, trial, calm);
            if best == 0 {
                break;
            }
            if tried.contains(&inputs) {
                continue;
            }
            let found = run(&inputs)?;
            if found.missing() < best {
                calmer = Some(found);
            }
            tried.push(inputs);
        }
        Ok(match calmer {
            Some(calmer) => (calmer, Some(first)),
            None => (first, None),
        })
    }

    /// Runs everything on one set of inputs.
    fn run(&mut self, inputs: &InputSet, nudges: u64) -> Result<Found, EngineError> {
        let outputs = self.signature.outputs.len();
        let (large, limit) = (self.large, self.limit);
        let (own, second, precise) = (&mut self.own, &mut self.second, &mut self.precise);
        let (compiled, precise) = side_by_side(
            || -> Result<_, EngineError> {
                let begin = Instant::now();
                let center = own.run(inputs)?;
                let took = begin.elapsed();
                // Once more with inputs moved, and once for the result.
                if large && took * 3 > limit {
                    return Err(too_long(took, limit));
                }
                let moved: Result<Vec<_>, _> =
                    (1..=nudges).map(|nudge| own.run(&nudged(inputs, nudge))).collect();
                let other = second.as_mut().map(|second| second.run(inputs)).transpose();
                Ok((center, moved?, other, took))
            },
            || -> Result<_, EngineError> {
                let Some(program) = precise else { return Ok(None) };
                let (center, sides) = program.run(inputs, outputs)?;
                // Inputs are the same for all programs, but passes round constants.
                let constants = match nudges {
                    0 => None,
                    _ => Some(program.run_moved(inputs, None)?),
                };
                let moved: Result<Vec<_>, _> =
                    (1..=nudges).map(|nudge| program.run_moved(inputs, Some(nudge))).collect();
                Ok(Some((center, constants, moved?, sides)))
            },
        );
        let (own, moved, other, took) = compiled?;
        let other = match other {
            Ok(arrays) => arrays,
            Err(error) if is_about_the_program(&error) => {
                self.second = None;
                None
            }
            Err(error) => return Err(error),
        };
        let precise = precise?;
        let spec = |output: usize| self.signature.outputs[output].dtype.as_str();
        let expected: Vec<Expected> = (0..outputs.min(own.len()))
            .map(|output| {
                let samples = Samples {
                    own: &own[output],
                    others: other.iter().filter_map(|arrays| arrays.get(output)).collect(),
                    nudged: moved.iter().filter_map(|arrays| arrays.get(output)).collect(),
                    precise: precise.as_ref().and_then(|(center, ..)| center.get(output)),
                    constants: false,
                    rounding: spec(output),
                };
                Expected::of(&samples)
            })
            .collect();
        let higher = precise.as_ref().map(|(center, constants, moved, _)| {
            (0..outputs.min(center.len()))
                .map(|output| {
                    let samples = Samples {
                        own: &center[output],
                        others: constants.iter().filter_map(|arrays| arrays.get(output)).collect(),
                        nudged: moved.iter().filter_map(|arrays| arrays.get(output)).collect(),
                        precise: None,
                        constants: constants.is_some(),
                        // Passes compute with constants, and round them.
                        rounding: "f32",
                    };
                    let mut higher = Expected::of(&samples);
                    if let Some(own) = expected.get(output) {
                        let narrow = self.signature.narrow_floats;
                        higher.learn_from(own, if narrow { KEPT_NARROW } else { KEPT });
                    }
                    higher
                })
                .collect()
        });
        let trial = Trial { inputs: inputs.clone(), own: expected, precise: higher, took };
        let sides = precise.map_or(Vec::new(), |(.., sides)| sides);
        Ok(Found { trial, sides, has_ties: false })
    }
}

fn too_long(took: Duration, limit: Duration) -> EngineError {
    let message = format!(
        "a run takes {:.0} s, and three of them do not fit into the {:.0} s that are left (--seconds)",
        took.as_secs_f64(),
        limit.as_secs_f64()
    );
    let kind = FailureKind::Refused;
    EngineError::Refused { doing: "running it in time".to_owned(), kind, message }
}

/// A gradient that is zero by what it is a gradient of cancels to the last bit on some inputs and leaves
/// rounding on others: nowhere is an output more exact than some share of what is usual for it.
fn raise_to_usual(trials: &mut [Trial]) {
    let outputs = trials.first().map_or(0, |trial| trial.own.len());
    for output in 0..outputs {
        let own = |trial: &Trial| trial.own.get(output).map(Expected::usual);
        let precise = |trial: &Trial| trial.precise.as_ref()?.get(output).map(Expected::usual);
        let usual = USUAL * middle(trials.iter().filter_map(own));
        let usual_precise = USUAL_PRECISE * middle(trials.iter().filter_map(precise));
        for trial in &mut *trials {
            if let Some(own) = trial.own.get_mut(output) {
                own.raise(usual);
            }
            if let Some(precise) = trial.precise.as_mut().and_then(|all| all.get_mut(output)) {
                precise.raise(usual_precise);
            }
        }
    }
}

/// The middle one of those that are not zero.
fn middle(numbers: impl Iterator<Item = f32>) -> f32 {
    let mut numbers: Vec<f32> = numbers.filter(|number| *number > 0.0).collect();
    numbers.sort_by(f32::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// A trial, with the decisions that fell in it.
struct Found {
    trial: Trial,
    sides: Vec<[bool; 2]>,
    /// Whether nothing was moved, so as not to break ties.
    has_ties: bool,
}

impl Found {
    /// Outputs in which less than half are numbers.
    fn missing(&self) -> usize {
        let empty = |expected: &&Expected| expected.finite() < expected.len().div_ceil(2);
        self.trial.own.iter().filter(empty).count()
    }
}
