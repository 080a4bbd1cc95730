//! Everything that a report shows.

use serde::{Deserialize, Serialize};

/// Everything that a report shows. Parts that are empty are left out of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The program's name.
    pub title: String,
    /// The compiler and its version.
    pub engine: String,
    /// What was to be made small, as it is written on the command line. The headline speaks of
    /// the row of `summary` that it names.
    pub objective: String,
    /// How the report was made.
    pub command: String,
    /// The result beside XLA's own, figure by figure.
    pub summary: Vec<SummaryRow>,
    /// What was checked: the claim, whether it holds, and a few words on it.
    pub verdicts: Vec<(String, bool, String)>,
    /// The order, step by step.
    pub order: Timeline,
    /// XLA's own optimisation passes, step by step.
    pub default_order: Timeline,
    /// What each pass of the order brought.
    pub contributions: Vec<Contribution>,
    /// Opcodes at the end of the order, beside XLA's own.
    pub opcodes: Vec<OpcodeRow>,
    /// Opcodes of the final programs, after the whole pipeline.
    pub final_opcodes: Vec<OpcodeRow>,
    /// Measured times, if there are any.
    pub timing: Option<TimingRows>,
    /// Passes of XLA's own pipeline that are left out after the order.
    pub disabled_passes: Vec<String>,
    /// The recipe, to be copied. Empty if there is none.
    pub recipe_json: String,
    /// What else is worth knowing: candidates that were dropped, and why.
    pub notes: Vec<String>,
    /// Results of which none is better than another in everything. May be empty.
    pub front: Vec<FrontPoint>,
    /// What the values of `front` are; the first two become the axes of a chart.
    pub front_axes: Vec<String>,
}

/// One figure, of which less is better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// What it is. A unit, where there is one, is part of the name: `run time, µs`.
    pub name: String,
    /// Its value in the program as it came, where that means anything.
    pub start: Option<f64>,
    /// Its value by XLA's own order.
    pub default: f64,
    /// Its value by the order of the report.
    pub result: f64,
    /// How the two compare; above 1 is better than XLA's own. Absent where it means nothing.
    pub ratio: Option<f64>,
    /// A few words, such as "within noise". The headline repeats them.
    pub note: String,
}

/// Passes one after another, with what each left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Before the first pass.
    pub start: Figures,
    /// The passes.
    pub steps: Vec<StepRow>,
}

impl Timeline {
    /// After the last pass.
    pub fn end(&self) -> Figures {
        self.steps.last().map_or(self.start, |step| step.figures)
    }

    /// Each step with the figures before it, numbered from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, Figures, &StepRow)> {
        let before = std::iter::once(self.start).chain(self.steps.iter().map(|step| step.figures));
        self.steps
            .iter()
            .zip(before)
            .enumerate()
            .map(|(index, (step, before))| (index + 1, before, step))
    }
}

/// One pass of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Its name.
    pub pass: String,
    /// Whether it changed the program.
    pub changed: bool,
    /// The program after it.
    pub figures: Figures,
    /// How long it took, in nanoseconds.
    pub nanos: u64,
}

/// The size and cost of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Instructions that run one by one.
    pub operations: u64,
    /// All instructions.
    pub instructions: u64,
    /// Floating-point operations, by the compiler's cost analysis.
    pub flops: f64,
    /// Bytes read and written, likewise.
    pub bytes: f64,
}

/// What one pass of the order brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Its place in the order, from 1.
    pub position: usize,
    /// Its name.
    pub pass: String,
    /// How many operations its own step removed; negative if it added some.
    pub by_step: i64,
    /// How many more operations the end of the order has without it, if that was tried.
    pub left_out: Option<i64>,
    /// How many more kernels the final program has without it, if that was tried.
    pub left_out_final: Option<i64>,
    /// How long it took.
    pub seconds: f64,
}

/// How often an opcode occurs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpcodeRow {
    /// Its name.
    pub opcode: String,
    /// In the program as it came. If it is 0 in all rows, the column is left out.
    pub start: u64,
    /// By XLA's own order.
    pub default: u64,
    /// By the order of the report.
    pub result: u64,
}

/// Measured times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimingRows {
    /// Label, median, lower quartile and upper quartile, in nanoseconds. Bars whose labels agree
    /// up to the first comma share a scale: `run, XLA's own` and `run, result`.
    pub rows: Vec<(String, f64, f64, f64)>,
    /// What may be concluded from them.
    pub sentences: Vec<String>,
}

/// One of the results of which none is better than another in everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FrontPoint {
    /// What it is.
    pub label: String,
    /// A value for each of [`Explanation::front_axes`].
    pub values: Vec<f64>,
    /// Whether it is the one that the report is about.
    pub chosen: bool,
}
