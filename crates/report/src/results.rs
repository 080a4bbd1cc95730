//! What evaluations and training runs came to.
//!
//! Commands write [`Outcome`]s and [`Progress`] as lines of JSON. [`summary`] turns outcomes into
//! figures with confidence intervals, [`summary_text`] into tables for a terminal, and
//! [`results_page`] both into one web page, figures as files, and numbers to download.
//!
//! What is counted, at which stages of a program, and what it is compared with says a [`Header`]. The
//! measure is the *ratio* at its first stage: how much of a program an order removed, beside what the
//! baseline removes ([`Ratio`]). 1 is as good as the baseline, and more is better. Where the baseline
//! removes nothing, there is no ratio; such graphs are counted and listed, but enter no mean.
//!
//! What was not found to compute what it should ([`Outputs`]) is written down with the figures of the
//! start, so that it gains nothing, and counted apart. Outcomes that nobody ran count as they are, and
//! are counted apart too.
//!
//! ```
//! use xla_gym_report::Baseline;
//! use xla_gym_report::results::{
//!     Header, Kind, Outcome, Stage, StageInfo, results_page, summary, summary_text,
//! };
//!
//! let size = StageInfo {
//!     name: "size".to_owned(),
//!     things: "instructions".to_owned(),
//!     ..StageInfo::default()
//! };
//! let header = Header { baseline: Baseline::new("-Oz", "-Oz"), stages: vec![size] };
//! let outcome = Outcome {
//!     graph: "cbench/qsort".to_owned(),
//!     splits: vec!["unseen/test".to_owned()],
//!     contestant: "ppo".to_owned(),
//!     kind: Kind::Rollout,
//!     stages: vec![Stage::new("size", 120.0, 100.0, 95.0)],
//!     ..Outcome::default()
//! };
//! let rows = summary(&header, std::slice::from_ref(&outcome));
//! assert!(summary_text(&header, &rows).contains("1.250"));
//! let page = results_page(&header, &[outcome], &[], "A first look");
//! assert!(page.html.contains("A first look"));
//! ```

mod csv;
mod curves;
mod data;
mod figures;
mod groups;
mod header;
mod outputs;
mod page;
mod stats;
mod summary;
mod tables;

pub use data::{Kind, Outcome, Progress, Stage};
pub use header::{Header, Ratio, StageInfo};
pub use outputs::Outputs;
pub use page::{Page, PageOptions, results_page, results_page_with};
pub use stats::{FLOOR, Interval};
pub use summary::{Checked, Estimate, Extreme, StageEstimate, SummaryRow, summary};
pub use tables::summary_text;
