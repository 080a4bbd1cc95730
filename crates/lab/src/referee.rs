//! Whether two programs compute the same, by a way of its own.
//!
//! It judges what the oracle calls equal, so it shares neither tolerances nor seeds with it, and a
//! third of its inputs are of kinds that the oracle does not try. Both
//! programs run with all floating point in the widest type, where rounding is 1e-16, and numbers
//! must agree to one part in a million. A program that is wrong differs by more, or not at all.

use anyhow::Result;
use xla_gym_arrays::Kind;
use xla_gym_engine::{
    Compiled, EngineError, Scratch, Session,
    protocol::{Array, CompileOptions, Fill, Finish, InputSet, Signature},
};
use xla_gym_oracle::{Calm, Style, inputs};

/// Sets of inputs: each style so often.
const ROUNDS: u32 = 3;

/// How many styles there are, and three more sets of inputs in which they are mixed.
const KINDS: u32 = Style::ALL.len() as u32 + 3;

/// A seed of which the oracle does not know.
const SEED: u64 = 0x0071_e5e5;

/// A larger difference, relative to the element, is one.
pub const APART: f64 = 1e-6;

/// Differences below this share of the usual size within an output are rounding.
const ROUNDING: f64 = 1e-11;

/// What the original computes.
pub struct Referee {
    signature: Signature,
    runs: Vec<Run>,
}

/// On one set of inputs.
struct Run {
    inputs: InputSet,
    outputs: Vec<Array>,
    /// How far the original as compiled is from that, at most, in each output.
    rounding: Vec<f64>,
    /// Whether the inputs are beyond what the oracle tries.
    beyond: bool,
}

/// The largest difference that was seen.
pub struct Apart {
    /// Relative to the element.
    pub relative: f64,
    /// In units of the largest error that the original makes by rounding in the same output.
    pub roundings: f64,
    /// Where the first of these is.
    pub place: String,
}

struct Precise {
    scratch: Scratch,
    compiled: Compiled,
}

impl Precise {
    fn new(session: &mut Session, signature: &Signature) -> Result<Precise, EngineError> {
        let mut scratch = session.scratch()?;
        let options = CompileOptions { quick: true, ..CompileOptions::default() };
        let compiled = match signature.can_be_promoted {
            true => {
                let (program, _) = scratch.promote(false, None)?;
                scratch.compile_program(program, &options)?
            }
            false => scratch.compile(&Finish::default())?,
        };
        Ok(Precise { scratch, compiled })
    }

    fn run(&mut self, inputs: &InputSet) -> Result<Vec<Array>, EngineError> {
        self.scratch.make_inputs(&self.compiled, inputs)?;
        Ok(self.scratch.execute(&self.compiled, 1, true)?.1)
    }
}

impl Referee {
    /// Runs the original.
    pub fn new(session: &mut Session) -> Result<Referee, EngineError> {
        let signature = session.signature()?;
        let mut precise = Precise::new(session, &signature)?;
        let mut scratch = session.scratch()?;
        let mut own = Precise { compiled: scratch.compile(&Finish::default())?, scratch };
        let mut runs = Vec::new();
        for trial in 0..ROUNDS * KINDS {
            let (round, style) = (trial / KINDS, trial % KINDS);
            let calm = if round == 2 { Calm::FLOATS } else { Calm::NOT };
            let mut inputs = inputs(&signature, SEED + u64::from(round), style, calm);
            if round == 1 {
                go_beyond(&mut inputs, &signature);
            }
            let narrow = inputs.clone();
            if signature.can_be_promoted {
                for input in &mut inputs.inputs {
                    input.held_as = match input.dtype.as_str() {
                        "f16" | "bf16" | "f32" => Some("f64".to_owned()),
                        "c64" => Some("c128".to_owned()),
                        _ => None,
                    };
                }
            }
            match precise.run(&inputs) {
                Ok(outputs) => {
                    let rounding = match own.run(&narrow) {
                        Ok(rounded) => outputs.iter().zip(&rounded).map(largest_error).collect(),
                        Err(_) => vec![0.0; outputs.len()],
                    };
                    runs.push(Run { inputs, outputs, rounding, beyond: round == 1 });
                }
                // Some inputs may be too much for a program; its worker is then gone.
                Err(EngineError::Refused { .. } | EngineError::Died { .. }) => {
                    precise = Precise::new(session, &signature)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Referee { signature, runs })
    }

    /// The largest difference of any element.
    pub fn difference(&self, session: &mut Session) -> Result<Apart, EngineError> {
        let mut precise = Precise::new(session, &self.signature)?;
        let mut worst = Apart { relative: 0.0, roundings: 0.0, place: String::new() };
        for run in &self.runs {
            let outputs = precise.run(&run.inputs)?;
            let pairs = run.outputs.iter().zip(&outputs).zip(&run.rounding);
            for (number, ((a, b), rounding)) in pairs.enumerate() {
                let Some((apart, element, x, y)) = largest_difference(a, b) else { continue };
                let roundings = match rounding {
                    _ if apart == f64::MAX => f64::MAX,
                    rounding => (largest_error((a, b)) / rounding).min(f64::MAX),
                };
                worst.roundings = worst.roundings.max(roundings);
                if apart > worst.relative {
                    let beyond = if run.beyond { ", beyond bounds" } else { "" };
                    worst.relative = apart;
                    worst.place = format!("output {number} [{element}]: {x:e} {y:e}{beyond}");
                }
            }
        }
        Ok(worst)
    }
}

/// The largest difference between numbers.
fn largest_error((a, b): (&Array, &Array)) -> f64 {
    let values = |array: &Array| xla_gym_arrays::Element::of(&array.dtype).values(&array.bytes);
    let pairs = values(a).into_iter().zip(values(b));
    pairs.map(|(a, b)| (a - b).abs()).filter(|error| error.is_finite()).fold(0.0, f64::max)
}

/// What programs define and the oracle does not ask for: indices below zero and beyond the end,
/// larger whole numbers, and integers of any size.
fn go_beyond(inputs: &mut InputSet, signature: &Signature) {
    for (place, (input, spec)) in inputs.inputs.iter_mut().zip(&signature.inputs).enumerate() {
        let scalar = spec.dims.iter().product::<i64>() == 1;
        let kind = xla_gym_arrays::Element::of(&spec.dtype).kind;
        match (spec.role.index_bound, kind) {
            (Some(bound), _) => {
                let bound = i64::try_from(bound).unwrap_or(1 << 30).clamp(1, 1 << 30);
                input.fill = Fill::Integers { low: -bound, high: bound + bound / 2 };
            }
            (None, Kind::Integer { .. }) if !spec.role.loop_bound && !scalar && place % 2 == 0 => {
                input.fill = Fill::Extremes;
            }
            (None, Kind::Float(_)) if !spec.role.positive && place % 2 == 1 => {
                input.fill = Fill::Integers { low: -9, high: 9 };
            }
            _ => {}
        }
    }
}

/// Relative difference, element, and both values; nothing if they are the same.
fn largest_difference(a: &Array, b: &Array) -> Option<(f64, usize, f64, f64)> {
    if a.bytes == b.bytes {
        return None;
    }
    let element = xla_gym_arrays::Element::of(&a.dtype);
    let (x, y) = (element.values(&a.bytes), element.values(&b.bytes));
    if element.float().is_none() {
        let place = x.iter().zip(&y).position(|(x, y)| x != y).unwrap_or_default();
        return Some((f64::MAX, place, x[place], y[place]));
    }
    let finite = || x.iter().filter(|value| value.is_finite());
    let usual = (finite().map(|v| v * v).sum::<f64>() / finite().count().max(1) as f64).sqrt();
    let mut worst = None::<(f64, usize, f64, f64)>;
    for (place, (x, y)) in x.iter().zip(&y).enumerate() {
        let apart = if x == y || x.is_nan() && y.is_nan() {
            continue;
        } else if !x.is_finite() || !y.is_finite() {
            f64::MAX
        } else if (x - y).abs() <= ROUNDING * usual {
            continue;
        } else {
            (x - y).abs() / x.abs().max(y.abs())
        };
        if worst.is_none_or(|(most, ..)| apart > most) {
            worst = Some((apart, place, *x, *y));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_missing_numbers_are_seen_and_rounding_is_not() {
        let array = |values: &[f64]| Array {
            dtype: "f64".to_owned(),
            dims: vec![values.len() as i64],
            bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            block: 0,
        };
        let largest = |a: &[f64], b: &[f64]| {
            largest_difference(&array(a), &array(b)).map_or(0.0, |found| found.0)
        };
        assert_eq!(largest(&[1.0, f64::NAN], &[1.0, f64::NAN]), 0.0);
        assert_eq!(largest(&[1.0, 0.0], &[1.0, 1e-15]), 0.0);
        assert!(largest(&[1.0, 1e-5], &[1.0, 1.1e-5]) > 0.05);
        assert_eq!(largest(&[1.0], &[f64::NAN]), f64::MAX);
    }
}
