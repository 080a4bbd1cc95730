//! What the compiler itself would have done, and what a pass order is worth beside it.
//!
//! Three comparisons, because each alone can be gamed:
//!
//! * **order ratio** `(I − R) / (I − D)`: the paper's question. `I` are the operations at the
//!   start, `R` after the given passes, `D` after the *optimisation* passes that XLA's own run
//!   on this program records, in its order and with its repetitions. Legalisation for the CPU,
//!   which only the default would pay for, is left out on both sides.
//! * **legal ratio** `(I′ − R′) / (I′ − D′)`: whether the gain survives. All three are counted
//!   just before layout assignment, where the program is legal for the back end: `D′` by the
//!   untouched pipeline, `I′` and `R′` by the pipeline without its optional passes, on the start
//!   and on the result of the given passes.
//! * **kernels**: operations of the final program, after the whole pipeline.
//!
//! A ratio over a denominator of 0 or less means nothing and is not given.

#![forbid(unsafe_code)]

mod baseline;
mod roles;
mod score;

pub use baseline::{DefaultRun, default_passes, own_option, run_default, run_without_legalisation};
pub use roles::{NORMALISING, OPTIMISATION, OPTIONAL, is_optimisation, optional, reference};
pub use score::{Kernels, Ratio, Score, Start, apply_all, score, start_session};
