//! What evaluations and training runs came to.
//!
//! Commands write [`Outcome`]s and [`Progress`] as lines of JSON. [`summary`] turns outcomes into
//! figures with confidence intervals, [`summary_text`] into tables for a terminal, and
//! [`results_page`] both into one web page, figures as files, and numbers to download.
//!
//! The measure is the *ratio*: how much of a program an order removed, beside what XLA's own
//! order removes. 1 is as good as XLA's own, and more is better. Where XLA's own order removes
//! nothing, there is no ratio; such graphs are counted and listed, but enter no mean.
//!
//! What was not found to compute what it should ([`Outputs`]) is written down with the figures of the
//! start, so that it gains nothing, and counted apart. Outcomes that nobody ran count as they are, and
//! are counted apart too.
//!
//! ```
//! use xla_gym_report::results::{Counts3, Kind, Outcome, results_page, summary, summary_text};
//!
//! let outcome = Outcome {
//!     graph: "hlo-v1/gpt2/step".to_owned(),
//!     splits: vec!["unseen/test".to_owned()],
//!     contestant: "ppo".to_owned(),
//!     kind: Kind::Rollout,
//!     order: Counts3 { initial: 120, default: 100, result: 95 },
//!     ..Outcome::default()
//! };
//! assert_eq!(outcome.order.ratio(), Some(1.25));
//! let rows = summary(std::slice::from_ref(&outcome));
//! assert!(summary_text(&rows).contains("1.250"));
//! let page = results_page(&[outcome], &[], "A first look");
//! assert!(page.html.contains("A first look"));
//! ```

mod csv;
mod curves;
mod data;
mod figures;
mod groups;
mod outputs;
mod page;
mod stats;
mod summary;
mod tables;

pub use data::{Claimed, Counts3, Kind, Outcome, Progress};
pub use outputs::Outputs;
pub use page::{Page, PageOptions, results_page, results_page_with};
pub use stats::{FLOOR, Interval};
pub use summary::{Checked, Estimate, Extreme, SummaryRow, summary};
pub use tables::summary_text;
