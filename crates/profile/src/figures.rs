//! What is known of what the compiler makes of a program.

use serde::{Deserialize, Serialize};
use xla_gym_engine::protocol::Values;

/// Something of which less is better: a position among the figures of a profile, or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Figure {
    /// Counted or estimated: a position in [`crate::Spec::figures`].
    Counted(u8),
    /// Time of a run.
    RunTime,
    /// Time to compile, the passes of the order included.
    CompileTime,
}

impl Figure {
    /// The figure that searches and environments go by.
    pub const PRIMARY: Figure = Figure::Counted(0);

    /// Whether it has to be measured by the clock.
    pub fn is_time(self) -> bool {
        matches!(self, Figure::RunTime | Figure::CompileTime)
    }
}

/// A value for each figure of a profile, as far as it is known.
///
/// ```
/// use xla_gym_profile::{Figure, Figures};
/// let figures = Figures::counted(&[Some(80.0), None]);
/// assert_eq!(figures.get(Figure::PRIMARY), Some(80.0));
/// assert_eq!(figures.get(Figure::RunTime), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    counted: Values<Option<f64>>,
    /// Nanoseconds of a run, if measured.
    pub run_nanos: Option<f64>,
    /// Nanoseconds to compile, if measured.
    pub compile_nanos: Option<f64>,
}

impl Figures {
    /// Takes what was counted, in the order of the profile's figures. Times are not known.
    pub fn counted(values: &[Option<f64>]) -> Figures {
        Figures { counted: Values::new(values), run_nanos: None, compile_nanos: None }
    }

    /// One of them.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Counted(at) => self.counted.get(usize::from(at)).copied().flatten(),
            Figure::RunTime => self.run_nanos,
            Figure::CompileTime => self.compile_nanos,
        }
    }

    /// The same with one of them changed.
    ///
    /// # Panics
    ///
    /// If the profile has no such figure.
    pub fn with(self, figure: Figure, value: Option<f64>) -> Figures {
        match figure {
            Figure::RunTime => Figures { run_nanos: value, ..self },
            Figure::CompileTime => Figures { compile_nanos: value, ..self },
            Figure::Counted(at) => {
                let mut counted = self.counted.to_vec();
                counted[usize::from(at)] = value;
                Figures { counted: Values::new(&counted), ..self }
            }
        }
    }

    /// The same with other times, in nanoseconds.
    pub fn with_times(self, run_nanos: Option<f64>, compile_nanos: Option<f64>) -> Figures {
        Figures { run_nanos, compile_nanos, ..self }
    }

    /// The primary figure: what orders are to make small.
    pub fn primary(&self) -> f64 {
        self.get(Figure::PRIMARY).unwrap_or(f64::INFINITY)
    }

    /// Whether none of what was counted is more than in `most`. What is not known there is no bound.
    pub fn no_worse(&self, most: &Figures) -> bool {
        most.counted.iter().enumerate().all(|(at, most)| match most {
            Some(most) => self.get(Figure::Counted(at as u8)).is_some_and(|now| now <= *most),
            None => true,
        })
    }
}
