//! A compiler's profile, as far as it is data.

use serde::{Deserialize, Serialize};
use xla_gym_data::Files;
use xla_gym_engine::{
    Engine, EngineError,
    protocol::{Finish, PassId},
};

use crate::figures::{Figure, Figures};

/// What a profile says, apart from its hooks.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The compiler's short name, as its worker gives it: `xla`.
    pub engine: &'static str,
    /// How it is spoken of.
    pub words: Words,
    /// What is counted of a result. The first is the primary one.
    pub figures: Vec<FigureSpec>,
    /// Figures of which none may grow where one of them alone is to be made small.
    pub guarded: Vec<Figure>,
    /// What decides between results that are equal by the objective, the most important first.
    pub tie_break: Vec<Figure>,
    /// Figures whose best are worth a run where time is what counts.
    pub promising: Vec<Figure>,
    /// Bytes that a run needs beside inputs and outputs, which may not grow unsaid.
    pub memory: Option<Figure>,
    /// What is made small if nobody says what.
    pub usual_objective: &'static str,
    /// What searches, which run nothing, take for run time: measures with weights.
    pub run_time_guess: Vec<(Measure, f64)>,
    /// Where results are compared with the compiler's own, in the order in which they are told. The
    /// first is the end of an order, before any pipeline.
    pub stages: Vec<Stage>,
    /// Where orders can begin. The first is the program as it came.
    pub starts: Vec<Start>,
    /// The compiler's own way.
    pub usual: Finish,
    /// What follows passes that take the place of the compiler's own.
    pub instead: Finish,
    /// Passes that tidy up after others; tried at the end of an order.
    pub cleaning: &'static [&'static str],
    /// Passes that inline functions, if there are such.
    pub inlining: Option<Inlining>,
    /// Costs whose weighted sum is an agent's potential (FLOPs, say), if it does not say which.
    pub work: &'static [(&'static str, f64)],
    /// The policy that guides searches if nobody says which.
    pub usual_policy: Option<&'static str>,
    /// Which files hold its programs.
    pub files: Files,
    /// The data sets made for this compiler.
    pub data_sets: &'static [&'static str],
}

/// Passes that inline functions. Copying one that is called more than once cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlining {
    /// Copies functions that are called more than once.
    pub copies: &'static str,
    /// Moves those that are called once.
    pub moves: &'static str,
}

/// How a compiler is spoken of.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its name: `XLA`.
    pub title: &'static str,
    /// What it makes of a program by itself: `XLA's own order`.
    pub baseline: &'static str,
    /// The same in a few letters, for tables: `XLA's own`.
    pub baseline_short: &'static str,
    /// What runs at the end: `XLA's pipeline`.
    pub pipeline: &'static str,
    /// What a program of the user's is called: `graph`.
    pub program: &'static str,
}

/// A figure of a result.
#[derive(Clone, Debug)]
pub struct FigureSpec {
    /// Its name, as in objectives.
    pub name: &'static str,
    /// For tables.
    pub label: &'static str,
    /// What one is counted in, if not itself.
    pub unit: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// What searches, which do not see it, go by: measures of a state, with weights.
    pub guess: Vec<(Measure, f64)>,
}

/// Where a figure comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The primary metric at the end of the order, before any pipeline.
    Order,
    /// A count at a stage of the pipeline.
    Count {
        /// Which stage.
        stage: usize,
        /// Which of the worker's counts.
        count: usize,
    },
    /// The sum of some estimates at a stage of the pipeline.
    Costs {
        /// Which stage.
        stage: usize,
        /// Which of the worker's costs.
        costs: &'static [usize],
    },
    /// The sum of some of what is known only at the end.
    Finals(&'static [usize]),
}

/// A figure of a state, which a search sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Measure {
    /// One of the worker's counts.
    Count(u8),
    /// The sum of some of the worker's costs, a bit for each.
    Costs(u8),
}

impl Measure {
    /// The primary metric.
    pub const PRIMARY: Measure = Measure::Count(0);

    /// The sum of costs.
    pub fn costs(which: &[u8]) -> Measure {
        Measure::Costs(which.iter().fold(0, |bits, cost| bits | 1 << cost))
    }
}

/// Where a result is compared with the compiler's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name: `order`.
    pub name: &'static str,
    /// For headings: `at the best state on the way`.
    pub title: &'static str,
    /// What is counted there, in the plural: `operations`.
    pub things: &'static str,
    /// What else is to be said in a heading. May be empty.
    pub note: &'static str,
    /// What is compared there.
    pub figure: Figure,
    /// How.
    pub comparison: Comparison,
    /// One sentence for people.
    pub explanation: &'static str,
}

/// How a result is compared with the compiler's own; above 1 is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// What the result removes, over what the compiler itself removes.
    Reduction,
    /// What the compiler itself leaves, over what the result leaves.
    Quotient,
}

/// Where an order begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// What leads there.
    pub passes: StartPasses,
    /// As which figure the primary metric counts there: what the compiler itself makes of it is what
    /// orders from there are compared with.
    pub counts_as: Figure,
}

/// What leads to the beginning of orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartPasses {
    /// The same passes on every program; none for the program as it came.
    Fixed(&'static [&'static str]),
    /// What [`Spec::instead`] does to the program before its first stage.
    AsPipeline,
}

/// Whether figures are whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counted.
    Whole,
    /// Estimated or measured.
    Estimate,
}

impl Spec {
    /// A figure by name.
    pub fn figure(&self, name: &str) -> Option<Figure> {
        match name {
            "run-time" => Some(Figure::RunTime),
            "compile-time" => Some(Figure::CompileTime),
            name => {
                let at = self.figures.iter().position(|figure| figure.name == name)?;
                Some(Figure::Counted(at as u8))
            }
        }
    }

    /// The name of a figure.
    pub fn figure_name(&self, figure: Figure) -> &'static str {
        match figure {
            Figure::Counted(at) => self.figures[usize::from(at)].name,
            Figure::RunTime => "run-time",
            Figure::CompileTime => "compile-time",
        }
    }

    /// All figures, times last.
    pub fn all_figures(&self) -> impl Iterator<Item = Figure> {
        self.counted_figures().chain([Figure::RunTime, Figure::CompileTime])
    }

    /// All figures that need no clock.
    pub fn counted_figures(&self) -> impl Iterator<Item = Figure> + use<> {
        (0..self.figures.len()).map(|at| Figure::Counted(at as u8))
    }

    /// A figure for tables.
    pub fn label(&self, figure: Figure) -> &'static str {
        match figure {
            Figure::Counted(at) => self.figures[usize::from(at)].label,
            Figure::RunTime => "run time",
            Figure::CompileTime => "time to compile",
        }
    }

    /// Whether a figure is known at the end of the order, before any pipeline.
    pub fn is_of_order(&self, figure: Figure) -> bool {
        match figure {
            Figure::Counted(at) => self.figures[usize::from(at)].source == Source::Order,
            _ => false,
        }
    }

    /// Whether a figure is a whole number.
    pub fn kind(&self, figure: Figure) -> Kind {
        match figure {
            Figure::Counted(at) => match self.figures[usize::from(at)].source {
                Source::Order | Source::Count { .. } => Kind::Whole,
                Source::Costs { .. } | Source::Finals(_) => Kind::Estimate,
            },
            _ => Kind::Estimate,
        }
    }

    /// What a search goes by for a figure.
    pub fn guess(&self, figure: Figure) -> &[(Measure, f64)] {
        match figure {
            Figure::Counted(at) => &self.figures[usize::from(at)].guess,
            Figure::RunTime => &self.run_time_guess,
            Figure::CompileTime => &[(Measure::PRIMARY, 1.0)],
        }
    }

    /// A start by name.
    pub fn start(&self, name: &str) -> Option<usize> {
        self.starts.iter().position(|start| start.name == name)
    }

    /// The names of all starts.
    pub fn start_names(&self) -> Vec<&'static str> {
        self.starts.iter().map(|start| start.name).collect()
    }

    /// A stage by name.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// The cleaning passes that this engine has.
    pub fn cleaning(&self, engine: &Engine) -> Result<Vec<PassId>, EngineError> {
        engine.passes(self.cleaning.iter().copied())
    }

    /// Figures by name, as far as they are known, times last.
    pub fn named<'a>(
        &'a self,
        figures: &'a Figures,
    ) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        self.all_figures()
            .filter_map(|figure| Some((self.figure_name(figure), figures.get(figure)?)))
    }
}
