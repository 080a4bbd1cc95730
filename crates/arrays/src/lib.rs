//! Arrays as a worker makes them and as the oracle reads them.
//!
//! Invariant: looks at bytes alone. No compiler is asked and no array is held longer than a call.

#![forbid(unsafe_code)]

mod brief;
mod element;
mod fill;

pub use brief::{BLOCK, NUMBERS, SUMS, brief, is_brief};
pub use element::{Element, Format, Kind, Special};
pub use fill::{MOST_INPUT_BYTES, bytes_of, check_size, make_array, make_inputs};
