//! Everything that a report shows.

use serde::{Deserialize, Serialize};

use crate::{Baseline, Metric};

/// Everything that a report shows. Parts that are empty are left out of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The program's name.
    pub title: String,
    /// The compiler and its version.
    pub engine: String,
    /// What the compiler is called in sentences. May be empty.
    pub compiler: String,
    /// What the result is compared with.
    pub baseline: Baseline,
    /// What was to be made small, as it is written on the command line. The headline speaks of
    /// the row of `summary` that it names.
    pub objective: String,
    /// How the report was made.
    pub command: String,
    /// The result beside the baseline, figure by figure.
    pub summary: Vec<SummaryRow>,
    /// What was checked: the claim, whether it holds, and a few words on it.
    pub verdicts: Vec<(String, bool, String)>,
    /// The order, step by step.
    pub order: Timeline,
    /// The baseline's passes, step by step.
    pub default_order: Timeline,
    /// What each pass of the order brought.
    pub contributions: Vec<Contribution>,
    /// What [`Contribution::left_out_final`] counts. Empty if it is nowhere tried.
    pub final_figure: String,
    /// Opcodes, stage by stage, beside the baseline's.
    pub opcodes: Vec<OpcodeTable>,
    /// Measured times, if there are any.
    pub timing: Option<TimingRows>,
    /// Passes of the compiler's own pipeline that are left out after the order.
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
    /// Its value by the baseline.
    pub default: f64,
    /// Its value by the order of the report.
    pub result: f64,
    /// How the two compare; above 1 is better than the baseline. Absent where it means nothing.
    pub ratio: Option<f64>,
    /// A few words, such as "within noise". The headline repeats them.
    pub note: String,
}

/// Passes one after another, with what each left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What is known of the program after each step. The first is the primary one: charts show it,
    /// and contributions are changes of it.
    pub metrics: Vec<Metric>,
    /// Before the first pass: a value for each metric, where it is known.
    pub start: Vec<Option<f64>>,
    /// The passes.
    pub steps: Vec<StepRow>,
}

impl Timeline {
    /// The primary metric; one without a name if there is none.
    pub fn primary(&self) -> Metric {
        self.metrics.first().cloned().unwrap_or_default()
    }

    /// The primary metric before the first pass.
    pub fn start(&self) -> Option<f64> {
        figure(&self.start, 0)
    }

    /// The primary metric after the last pass.
    pub fn end(&self) -> Option<f64> {
        self.steps.last().map_or(self.start(), StepRow::primary)
    }

    /// Each step with the primary metric before it, numbered from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, Option<f64>, &StepRow)> {
        let before = std::iter::once(self.start()).chain(self.steps.iter().map(StepRow::primary));
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
    /// The program after it: a value for each metric, where it is known.
    pub figures: Vec<Option<f64>>,
    /// How long it took, in nanoseconds.
    pub nanos: u64,
}

impl StepRow {
    /// The primary metric after it.
    pub fn primary(&self) -> Option<f64> {
        figure(&self.figures, 0)
    }
}

/// One of the figures, if it is there and a number.
pub(crate) fn figure(figures: &[Option<f64>], metric: usize) -> Option<f64> {
    figures.get(metric).copied().flatten().filter(|value| value.is_finite())
}

/// What one pass of the order brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Its place in the order, from 1.
    pub position: usize,
    /// Its name.
    pub pass: String,
    /// How much of the primary metric its own step removed; negative if it added some.
    pub by_step: f64,
    /// How much more of it the end of the order has without the pass, if that was tried.
    pub left_out: Option<f64>,
    /// How much more of [`Explanation::final_figure`] the final program has without it, if that was
    /// tried.
    pub left_out_final: Option<f64>,
    /// How long it took.
    pub seconds: f64,
}

/// How often opcodes occur at one stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpcodeTable {
    /// Where, as it reads after "Opcodes": `at the end of the order`.
    pub stage: String,
    /// The opcodes.
    pub rows: Vec<OpcodeRow>,
}

/// How often an opcode occurs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpcodeRow {
    /// Its name.
    pub opcode: String,
    /// In the program as it came. If it is 0 in all rows, the column is left out.
    pub start: u64,
    /// By the baseline.
    pub default: u64,
    /// By the order of the report.
    pub result: u64,
}

/// Measured times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimingRows {
    /// Label, median, lower quartile and upper quartile, in nanoseconds. Bars whose labels agree
    /// up to the first comma share a scale: `run, -Oz` and `run, result`.
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
