//! What is to be made small.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use xla_gym_search::{Goal, Measure};

use crate::error::OptimizeError;

/// Something that can be counted or measured of what the compiler makes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations at the end of the order, whatever the pipeline makes of them later.
    Operations,
    /// Operations just before layout assignment, where the program is legal for the back end.
    Legal,
    /// Operations of the final program.
    Kernels,
    /// Floating-point operations and transcendental functions of the final program, estimated.
    Flops,
    /// Bytes that the final program reads and writes, estimated.
    Bytes,
    /// Bytes that the final program needs beside inputs and outputs: intermediate values and
    /// constants, by the compiler's own buffer assignment.
    Memory,
    /// Time of a run.
    RunTime,
    /// Time to compile, the passes of the order included.
    CompileTime,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 8] = [
        Figure::Operations,
        Figure::Legal,
        Figure::Kernels,
        Figure::Flops,
        Figure::Bytes,
        Figure::Memory,
        Figure::RunTime,
        Figure::CompileTime,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Operations => "operations",
            Figure::Legal => "legal",
            Figure::Kernels => "kernels",
            Figure::Flops => "flops",
            Figure::Bytes => "bytes",
            Figure::Memory => "memory",
            Figure::RunTime => "run-time",
            Figure::CompileTime => "compile-time",
        }
    }

    /// Whether it has to be measured by the clock.
    pub fn is_time(self) -> bool {
        matches!(self, Figure::RunTime | Figure::CompileTime)
    }
}

impl FromStr for Figure {
    type Err = OptimizeError;

    fn from_str(text: &str) -> Result<Figure, OptimizeError> {
        Figure::ALL.into_iter().find(|figure| figure.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Figure::ALL.into_iter().map(Figure::name).collect();
            OptimizeError::Objective(format!(
                "{text:?} is no objective; there are {}",
                names.join(", ")
            ))
        })
    }
}

/// What is to be made small: one figure, a weighted sum (`0.7*kernels+0.3*bytes`), or several at
/// once (`kernels,run-time`), which gives a front of results of which none beats another in all.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Figures with their weights, which add up to 1.
    parts: Vec<(Figure, f64)>,
    /// Whether they are wanted side by side.
    front: bool,
}

impl Objective {
    /// One figure.
    pub fn one(figure: Figure) -> Objective {
        Objective { parts: vec![(figure, 1.0)], front: false }
    }

    /// The figures in it.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        self.parts.iter().map(|(figure, _)| *figure)
    }

    /// Whether a front is wanted.
    pub fn is_front(&self) -> bool {
        self.front
    }

    /// Whether some part has to be measured by the clock.
    pub fn needs_clock(&self) -> bool {
        self.figures().any(Figure::is_time)
    }

    /// Whether only the end of the order counts.
    pub fn is_order_alone(&self) -> bool {
        self.figures().all(|figure| figure == Figure::Operations)
    }

    /// How good figures are beside those of the default: 1 is as good, less is better. For a front
    /// it is the geometric mean, by which one of it is chosen.
    pub fn value(&self, figures: &Figures, default: &Figures) -> f64 {
        let share = |figure: Figure| match (figures.get(figure), default.get(figure)) {
            (Some(now), Some(before)) if before > 0.0 => now / before,
            (Some(now), Some(_)) => 1.0 + now,
            _ => f64::INFINITY,
        };
        if self.front {
            self.parts
                .iter()
                .map(|(figure, weight)| weight * share(*figure).ln())
                .sum::<f64>()
                .exp()
        } else {
            self.parts.iter().map(|(figure, weight)| weight * share(*figure)).sum()
        }
    }

    /// What a search can see of it before the pipeline runs. What makes a program fast is not
    /// seen there; few operations and few bytes are the best guess.
    pub fn goal(&self) -> Goal {
        let mut parts: Vec<(Measure, f64)> = Vec::new();
        for &(figure, weight) in &self.parts {
            let guess: &[(Measure, f64)] = match figure {
                Figure::Operations | Figure::Legal | Figure::Kernels | Figure::CompileTime => {
                    &[(Measure::Operations, 1.0)]
                }
                Figure::Flops => &[(Measure::Flops, 1.0)],
                // The schedule and the reuse of buffers come later; what is read and written is most of it.
                Figure::Bytes | Figure::Memory => &[(Measure::Bytes, 1.0)],
                Figure::RunTime => &[(Measure::Operations, 0.5), (Measure::Bytes, 0.5)],
            };
            for &(measure, share) in guess {
                match parts.iter_mut().find(|(other, _)| *other == measure) {
                    Some((_, sum)) => *sum += weight * share,
                    None => parts.push((measure, weight * share)),
                }
            }
        }
        Goal { parts }
    }
}

impl FromStr for Objective {
    type Err = OptimizeError;

    fn from_str(text: &str) -> Result<Objective, OptimizeError> {
        let front = text.contains(',');
        if front && text.contains(['+', '*']) {
            return Err(OptimizeError::Objective(format!(
                "{text:?} mixes a weighted sum (with + and *) and a front (with commas); use one"
            )));
        }
        let mut parts: Vec<(Figure, f64)> = Vec::new();
        for part in text.split([',', '+']) {
            let (weight, name) = match part.split_once('*') {
                None => (1.0, part),
                Some((weight, name)) => {
                    let weight = weight.trim().parse::<f64>().ok();
                    let weight = weight.filter(|weight| weight.is_finite() && *weight > 0.0);
                    let weight = weight.ok_or_else(|| {
                        OptimizeError::Objective(format!(
                            "the weight in {part:?} is no positive number"
                        ))
                    })?;
                    (weight, name)
                }
            };
            let figure: Figure = name.trim().parse()?;
            if parts.iter().any(|(other, _)| *other == figure) {
                return Err(OptimizeError::Objective(format!("{figure} is named twice")));
            }
            parts.push((figure, weight));
        }
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut parts {
            *weight /= total;
        }
        Ok(Objective { parts, front })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = self.parts.len() == 1 || self.front;
        for (index, (figure, weight)) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(if self.front { "," } else { "+" })?;
            }
            if !one {
                write!(f, "{weight}*")?;
            }
            write!(f, "{figure}")?;
        }
        Ok(())
    }
}

/// What is known of what the compiler makes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Operations at the end of the order.
    pub operations: u64,
    /// Operations just before layout assignment.
    pub legal: u64,
    /// Operations of the final program.
    pub kernels: u64,
    /// Its floating-point operations and transcendental functions, if XLA has an estimate.
    pub flops: Option<f64>,
    /// Its bytes, likewise.
    pub bytes: Option<f64>,
    /// What it needs beside inputs and outputs, in bytes, if XLA says.
    pub memory: Option<f64>,
    /// Nanoseconds of a run, if measured.
    pub run_nanos: Option<f64>,
    /// Nanoseconds to compile, if measured.
    pub compile_nanos: Option<f64>,
}

impl Figures {
    /// One of them.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Operations => Some(self.operations as f64),
            Figure::Legal => Some(self.legal as f64),
            Figure::Kernels => Some(self.kernels as f64),
            Figure::Flops => self.flops,
            Figure::Bytes => self.bytes,
            Figure::Memory => self.memory,
            Figure::RunTime => self.run_nanos,
            Figure::CompileTime => self.compile_nanos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Figures = Figures {
        operations: 100,
        legal: 120,
        kernels: 50,
        flops: Some(1000.0),
        bytes: Some(400.0),
        memory: Some(80.0),
        run_nanos: None,
        compile_nanos: None,
    };

    #[test]
    fn objectives_are_read_and_written() {
        for text in ["legal", "run-time", "0.75*kernels+0.25*bytes", "kernels,run-time"] {
            assert_eq!(text.parse::<Objective>().unwrap().to_string(), text);
        }
        let weights: Objective = "3*kernels+bytes".parse().unwrap();
        assert_eq!(weights.to_string(), "0.75*kernels+0.25*bytes");
    }

    #[test]
    fn what_is_no_objective_is_refused_with_what_there_is() {
        for (text, says) in [
            ("speed", "run-time"),
            ("", "kernels"),
            ("kernels+kernels", "twice"),
            ("0*kernels", "positive"),
            ("nan*kernels", "positive"),
            ("kernels,2*bytes", "use one"),
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_shares_of_the_default() {
        let better = Figures { kernels: 25, bytes: Some(800.0), ..DEFAULT };
        let value = |text: &str| text.parse::<Objective>().unwrap().value(&better, &DEFAULT);
        assert_eq!(value("kernels"), 0.5);
        assert_eq!(value("bytes"), 2.0);
        assert_eq!(value("kernels+bytes"), 1.25);
        assert!((value("kernels,bytes") - 1.0).abs() < 1e-12);
        assert_eq!(value("run-time"), f64::INFINITY, "not measured is never better");
    }
}
