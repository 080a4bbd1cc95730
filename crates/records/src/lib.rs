//! What is written down of evaluations and training runs, as lines of JSON.
//!
//! An [`Outcome`] is what one contestant came to on one graph, stage by stage ([`Stage`]), and whether
//! what it made of the program was found to compute what it should ([`Outputs`]). A [`Header`] says
//! what is counted at the stages and what it is compared with ([`Baseline`]). The measure is the
//! *ratio* ([`Ratio`]): 1 is as good as the baseline, and more is better. [`Progress`] is one update
//! of a training run.
//!
//! Whoever runs something writes these down; what is made of them for readers is none of this crate's
//! business.
//!
//! ```
//! use xla_gym_records::{Header, Outcome, Stage, StageInfo};
//!
//! let size = StageInfo { name: "size".to_owned(), ..StageInfo::default() };
//! let header = Header { stages: vec![size], ..Header::default() };
//! let outcome =
//!     Outcome { stages: vec![Stage::new("size", 120.0, 100.0, 95.0)], ..Outcome::default() };
//! assert_eq!(header.ratio(&outcome), Some(1.25));
//! ```

#![forbid(unsafe_code)]

mod baseline;
mod header;
mod outcome;
mod outputs;
mod progress;

pub use baseline::Baseline;
pub use header::{Header, Ratio, StageInfo};
pub use outcome::{Kind, Outcome, Stage};
pub use outputs::Outputs;
pub use progress::Progress;
