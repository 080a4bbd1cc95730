//! What a forward pass leaves behind for its gradient.

use crate::{matrix::Matrix, product::Panels};

/// What a forward pass leaves behind for its gradient. Its memory is used again by the next.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// What each layer reads, one column for each row of the inputs: so that the weights, which are
    /// larger than all else, are read in the order in which they lie.
    pub(crate) values: Vec<Matrix>,
    pub(crate) outputs: Matrix,
    /// The gradient of what a layer gives, and of what the layer before gives.
    pub(crate) deltas: [Matrix; 2],
    pub(crate) panels: Panels,
}

impl Tape {
    /// What the network answered, a row for each row of its inputs.
    pub fn outputs(&self) -> &Matrix {
        &self.outputs
    }
}
