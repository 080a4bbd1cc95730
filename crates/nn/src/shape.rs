//! What a network looks like, and where its parameters lie.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What a hidden unit makes of its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The sum, or 0 if it is negative.
    Relu,
}

/// How many units there are.
///
/// ```
/// use xla_gym_nn::{Activation, Shape};
///
/// let shape = Shape { inputs: 4, hidden: vec![3], outputs: 2, activation: Activation::Tanh };
/// let last = shape.layers().last().unwrap();
/// assert_eq!((shape.parameters(), last.weights, last.biases), (23, 15..21, 21..23));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Numbers in an observation.
    pub inputs: usize,
    /// Units of each hidden layer. May be empty.
    pub hidden: Vec<usize>,
    /// Numbers in an answer. They have no activation.
    pub outputs: usize,
    /// That of the hidden units.
    pub activation: Activation,
}

/// One layer, and where its parameters lie among those of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Numbers it reads.
    pub inputs: usize,
    /// Numbers it gives.
    pub outputs: usize,
    /// One row of `inputs` weights for each output.
    pub weights: Range<usize>,
    /// One for each output.
    pub biases: Range<usize>,
}

impl Shape {
    /// How many parameters the network has: for each layer its weights, then its biases.
    pub fn parameters(&self) -> usize {
        self.layers().map(|layer| layer.weights.len() + layer.biases.len()).sum()
    }

    /// The layers, first to last. The last gives the outputs.
    pub fn layers(&self) -> impl Iterator<Item = Layer> + '_ {
        let widths = self.hidden.iter().copied().chain([self.outputs]);
        widths.scan((self.inputs, 0), |(inputs, begin), outputs| {
            let biases = *begin + *inputs * outputs;
            let layer = Layer {
                inputs: *inputs,
                outputs,
                weights: *begin..biases,
                biases: biases..biases + outputs,
            };
            (*inputs, *begin) = (outputs, biases + outputs);
            Some(layer)
        })
    }
}
