//! The answer to one observation, on one thread; and to a few, on all cores.

use rayon::prelude::*;

use crate::{
    matrix::Matrix,
    mlp::Mlp,
    simd::{SIDE, dot, dots},
};

/// How many multiplications a task has at least, divided by [`SIDE`].
const TASK: usize = 1 << 18;

/// Memory for [`Mlp::infer`]. A thread that infers has one of its own.
#[derive(Clone, Debug, Default)]
pub struct Space {
    reads: Vec<f32>,
    gives: Vec<f32>,
}

impl Mlp {
    /// The answer to one observation, on the calling thread. After the first call with a space it
    /// takes no memory. Equal to [`Mlp::forward`] up to rounding.
    ///
    /// # Panics
    ///
    /// If the observation has another length than the network's input.
    pub fn infer<'s>(&self, input: &[f32], space: &'s mut Space) -> &'s [f32] {
        assert_eq!(input.len(), self.shape().inputs, "an input of another length");
        let Space { reads, gives } = space;
        let widest = self.shape().layers().map(|layer| layer.inputs.max(layer.outputs)).max();
        for numbers in [&mut *reads, &mut *gives] {
            numbers.clear();
            numbers.reserve(widest.unwrap_or(0));
        }
        reads.extend_from_slice(input);
        let hidden = self.shape().hidden.len();
        for (i, layer) in self.shape().layers().enumerate() {
            let weights = &self.parameters()[layer.weights];
            let biases = &self.parameters()[layer.biases];
            gives.resize(layer.outputs, 0.0);
            for (i, (to, bias)) in gives.iter_mut().zip(biases).enumerate() {
                *to = dot(&weights[i * layer.inputs..][..layer.inputs], reads) + bias;
            }
            if i < hidden {
                self.shape().activation.apply(gives, 0.0);
            }
            std::mem::swap(reads, gives);
        }
        reads
    }

    /// The answers to a few rows. Weights are read once for all rows, and not copied into panels
    /// first, which would take longer than to multiply by them.
    pub(crate) fn forward_few(&self, inputs: &Matrix) -> Matrix {
        let rows = inputs.rows();
        let hidden = self.shape().hidden.len();
        let (mut reads, mut turned) = (inputs.clone(), Matrix::default());
        for (i, layer) in self.shape().layers().enumerate() {
            let weights = &self.parameters()[layer.weights];
            let biases = &self.parameters()[layer.biases];
            let hidden_layer = i < hidden;
            turned.resize(layer.outputs, rows);
            let units = |(i, to): (usize, &mut [f32])| {
                // Where there are fewer, the last is taken again.
                let count = to.len() / rows;
                let weights = std::array::from_fn(|o| {
                    &weights[(i * SIDE + o.min(count - 1)) * layer.inputs..][..layer.inputs]
                });
                for first in (0..rows).step_by(SIDE) {
                    let some = std::array::from_fn(|o| reads.row((first + o).min(rows - 1)));
                    let sums = dots(weights, some);
                    for (o, to) in to.chunks_exact_mut(rows).enumerate() {
                        let bias = biases[i * SIDE + o];
                        to[first..].iter_mut().zip(sums[o]).for_each(|(to, sum)| *to = sum + bias);
                    }
                }
                if hidden_layer {
                    self.shape().activation.apply(to, 0.0);
                }
            };
            let all = turned.data_mut().par_chunks_mut(rows * SIDE);
            all.enumerate().with_min_len(TASK.div_ceil(layer.inputs * rows)).for_each(units);
            reads.set_transposed(&turned);
        }
        reads
    }
}
