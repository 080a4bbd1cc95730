//! The network: answers, gradients and tangents for many rows at once.

use rand::Rng;

use crate::{
    matrix::Matrix,
    orthogonal,
    product::{Onto, Operand, Panels, Product, multiply},
    shape::{Activation, Layer, Shape},
    simd,
    tape::Tape,
};

/// Up to so many rows are answered by [`Mlp::forward_few`].
const FEW: usize = 16;

/// A multi-layer perceptron. Its parameters lie in one vector, as [`Shape::layers`] says.
///
/// ```
/// use xla_gym_nn::{Activation, Matrix, Mlp, Shape, Space};
///
/// // One hidden unit, two inputs: weights and a bias for it, then a weight and a bias for the output.
/// let shape = Shape { inputs: 2, hidden: vec![1], outputs: 1, activation: Activation::Relu };
/// let mlp = Mlp::from_parameters(shape, vec![1.0, -1.0, 0.5, 2.0, 0.0]).unwrap();
/// assert_eq!(mlp.infer(&[3.0, 1.0], &mut Space::default()), [5.0]);
/// let rows = Matrix::from_vec(2, 2, vec![3.0, 1.0, 1.0, 3.0]);
/// assert_eq!(mlp.forward(&rows).data(), [5.0, 0.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    shape: Shape,
    parameters: Vec<f32>,
}

impl Mlp {
    /// Weights that are random but orthogonal within each layer, times a gain for the hidden layers
    /// and one for the outputs; biases of 0. That is what Stable-Baselines3 begins PPO with.
    pub fn new(shape: Shape, hidden_gain: f32, output_gain: f32, rng: &mut impl Rng) -> Mlp {
        let mut parameters = vec![0.0; shape.parameters()];
        for (i, layer) in shape.layers().enumerate() {
            let gain = if i < shape.hidden.len() { hidden_gain } else { output_gain };
            let weights = &mut parameters[layer.weights];
            orthogonal::fill(layer.outputs, layer.inputs, gain, rng, weights);
        }
        Mlp { shape, parameters }
    }

    /// With given parameters; none if there are too few or too many.
    pub fn from_parameters(shape: Shape, parameters: Vec<f32>) -> Option<Mlp> {
        (parameters.len() == shape.parameters()).then_some(Mlp { shape, parameters })
    }

    /// What it looks like.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All weights and biases.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// All weights and biases, to be changed.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// The answers to many rows, on all cores. Up to 16 rows are multiplied another way, which rounds
    /// in other places than [`Mlp::forward_keeping`] does.
    ///
    /// # Panics
    ///
    /// If the rows have another length than the network's input.
    pub fn forward(&self, inputs: &Matrix) -> Matrix {
        assert_eq!(inputs.columns(), self.shape.inputs, "inputs of another length");
        if (1..=FEW).contains(&inputs.rows()) {
            return self.forward_few(inputs);
        }
        let mut tape = Tape::default();
        self.forward_keeping(inputs, &mut tape);
        tape.outputs
    }

    /// The answers to many rows, on all cores, with what [`Mlp::backward`] and [`Mlp::tangent`] need.
    ///
    /// # Panics
    ///
    /// If the rows have another length than the network's input.
    pub fn forward_keeping(&self, inputs: &Matrix, tape: &mut Tape) {
        assert_eq!(inputs.columns(), self.shape.inputs, "inputs of another length");
        let rows = inputs.rows();
        let Tape { values, outputs, panels, .. } = tape;
        values.resize_with(self.shape.hidden.len() + 2, Matrix::default);
        values[0].set_transposed(inputs);
        for (i, layer) in self.shape.layers().enumerate() {
            let (before, after) = values.split_at_mut(i + 1);
            let (reads, gives) = (&before[i], &mut after[0]);
            gives.resize(layer.outputs, rows);
            let biases = &self.parameters[layer.biases.clone()];
            let activation = self.activation(i);
            let product = weigh(&layer, &self.parameters, reads, Onto::Nothing);
            multiply(product, gives.data_mut(), panels, |first, done| {
                for (row, &bias) in done.chunks_exact_mut(rows).zip(&biases[first..]) {
                    match activation {
                        Some(activation) => activation.apply(row, bias),
                        None => simd::add(row, bias),
                    }
                }
            });
        }
        outputs.set_transposed(&values[self.shape.hidden.len() + 1]);
    }

    /// The gradient of `sum(outputs * gradient_of_outputs)` with respect to the parameters, at the
    /// inputs on the tape. Overwrites `gradient`.
    ///
    /// # Panics
    ///
    /// If the tape is that of another network or the lengths differ.
    pub fn backward(&self, tape: &mut Tape, gradient_of_outputs: &Matrix, gradient: &mut [f32]) {
        self.check(tape);
        let rows = tape.outputs.rows();
        let Tape { values, deltas: [delta, next], panels, .. } = tape;
        assert_eq!(gradient.len(), self.parameters.len(), "a gradient of another length");
        assert_eq!(
            (gradient_of_outputs.rows(), gradient_of_outputs.columns()),
            (rows, self.shape.outputs),
            "a gradient of outputs of another size"
        );
        delta.set_transposed(gradient_of_outputs);
        let layers: Vec<Layer> = self.shape.layers().collect();
        for (i, layer) in layers.iter().enumerate().rev() {
            let reads = &values[i];
            for (to, row) in gradient[layer.biases.clone()].iter_mut().zip(0..) {
                *to = simd::sum(delta.row(row));
            }
            let product = Product {
                rows: layer.outputs,
                columns: layer.inputs,
                depth: rows,
                left: Operand::plain(delta.data(), rows),
                right: Operand::transposed(reads.data(), rows),
                onto: Onto::Nothing,
            };
            multiply(product, &mut gradient[layer.weights.clone()], panels, |_, _| {});
            if i == 0 {
                return;
            }
            next.resize(layer.inputs, rows);
            let activation = self.shape.activation;
            let product = Product {
                rows: layer.inputs,
                columns: rows,
                depth: layer.outputs,
                left: Operand::transposed(&self.parameters[layer.weights.clone()], layer.inputs),
                right: Operand::plain(delta.data(), rows),
                onto: Onto::Nothing,
            };
            multiply(product, next.data_mut(), panels, |first, done| {
                let values = &reads.data()[first * rows..][..done.len()];
                activation.pull(done, values);
            });
            std::mem::swap(delta, next);
        }
    }

    /// How the outputs on the tape move when the parameters move in a direction: the Jacobian times
    /// a vector.
    ///
    /// # Panics
    ///
    /// If the tape is that of another network or the lengths differ.
    pub fn tangent(&self, tape: &Tape, direction: &[f32]) -> Matrix {
        self.check(tape);
        assert_eq!(direction.len(), self.parameters.len(), "a direction of another length");
        let rows = tape.outputs.rows();
        let mut panels = Panels::default();
        let mut moves = Matrix::default();
        for (i, layer) in self.shape.layers().enumerate() {
            let mut gives = Matrix::zeros(layer.outputs, rows);
            if i > 0 {
                let product = weigh(&layer, &self.parameters, &moves, Onto::Nothing);
                multiply(product, gives.data_mut(), &mut panels, |_, _| {});
            }
            let biases = &direction[layer.biases.clone()];
            let (activation, reads) = (self.activation(i), &tape.values[i]);
            let values = tape.values[i + 1].data();
            let product = weigh(&layer, direction, reads, Onto::Sum);
            multiply(product, gives.data_mut(), &mut panels, |first, done| {
                for (row, &bias) in done.chunks_exact_mut(rows).zip(&biases[first..]) {
                    simd::add(row, bias);
                }
                if let Some(activation) = activation {
                    activation.pull(done, &values[first * rows..][..done.len()]);
                }
            });
            moves = gives;
        }
        let mut outputs = Matrix::default();
        outputs.set_transposed(&moves);
        outputs
    }

    /// The activation of a layer; the last has none.
    fn activation(&self, layer: usize) -> Option<Activation> {
        (layer < self.shape.hidden.len()).then_some(self.shape.activation)
    }

    /// That a tape has the values of this network.
    fn check(&self, tape: &Tape) {
        let widths = [self.shape.inputs].into_iter().chain(self.shape.layers().map(|l| l.outputs));
        assert!(widths.eq(tape.values.iter().map(Matrix::rows)), "the tape of another network");
    }
}

/// A layer's weights, out of some parameters, times what it reads.
fn weigh<'a>(layer: &Layer, parameters: &'a [f32], reads: &'a Matrix, onto: Onto) -> Product<'a> {
    Product {
        rows: layer.outputs,
        columns: reads.columns(),
        depth: layer.inputs,
        left: Operand::plain(&parameters[layer.weights.clone()], layer.inputs),
        right: Operand::plain(reads.data(), reads.columns()),
        onto,
    }
}
