//! What a pass order gained, and which pass brought it.
//!
//! An [`Explanation`] is plain data that whoever ran the compiler fills in. It becomes a web page
//! in one file ([`Explanation::html`]: no script, no font, no network) or tables for a terminal
//! ([`Explanation::text`]). It knows no compiler: what is counted ([`Metric`]), and what a result is
//! compared with ([`Baseline`]), are part of the data. This crate runs nothing and judges nothing beyond comparing figures;
//! of every figure, less is better.
//!
//! [`results`] does the same for many programs: what evaluations and training runs came to, as
//! tables, figures and numbers to download.

#![forbid(unsafe_code)]

mod axis;
mod baseline;
mod chart;
mod explanation;
mod headline;
mod html;
mod markup;
mod metric;
mod numbers;
pub mod results;
mod style;
mod text;

pub use baseline::Baseline;
pub use explanation::{
    Contribution, Explanation, FrontPoint, OpcodeRow, OpcodeTable, StepRow, SummaryRow, Timeline,
    TimingRows,
};
pub use metric::Metric;
