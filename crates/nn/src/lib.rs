//! Multi-layer perceptrons for agents: fast on a CPU, and the same to the last bit everywhere.
//!
//! An [`Mlp`] keeps all its parameters in one vector. [`Mlp::infer`] is for one observation,
//! [`Mlp::forward`] for many; [`Mlp::forward_keeping`] and [`Mlp::backward`] give the gradient,
//! [`Adam`] follows it. The gradient is written by hand, there is no graph.
//!
//! ```
//! use rand::SeedableRng;
//! use xla_gym_nn::{Activation, Adam, Matrix, Mlp, Shape, Tape};
//!
//! // Learns that two inputs are to be added.
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
//! let shape = Shape { inputs: 2, hidden: vec![16], outputs: 1, activation: Activation::Tanh };
//! let mut mlp = Mlp::new(shape, 1.0, 1.0, &mut rng);
//! let mut adam = Adam::new(mlp.parameters().len(), 0.02, 1e-8);
//! let inputs = Matrix::from_vec(4, 2, vec![0.1, 0.2, -0.3, 0.4, 0.5, -0.1, -0.2, -0.4]);
//! let (mut tape, mut gradient) = (Tape::default(), vec![0.0; mlp.parameters().len()]);
//! for _ in 0..300 {
//!     mlp.forward_keeping(&inputs, &mut tape);
//!     let mut error = tape.outputs().clone();
//!     for i in 0..4 {
//!         error.row_mut(i)[0] -= inputs.row(i)[0] + inputs.row(i)[1];
//!     }
//!     mlp.backward(&mut tape, &error, &mut gradient);
//!     adam.step(mlp.parameters_mut(), &gradient);
//! }
//! let sums = mlp.forward(&inputs);
//! assert!((sums.row(0)[0] - 0.3).abs() < 0.02);
//! ```
//!
//! Invariants: every sum is taken in an order that depends on the shapes alone, by fused operations
//! that round once; so results do not depend on the number of threads nor on how wide the
//! processor's vectors are, and a training run that is resumed goes on as if it had not stopped.
//! There is no `unsafe` here.

#![forbid(unsafe_code)]

mod adam;
mod clip;
mod infer;
mod matrix;
mod mlp;
mod orthogonal;
mod product;
mod shape;
mod simd;
mod tape;

pub use adam::Adam;
pub use clip::{clip_norm, clip_norms, norm};
pub use infer::Space;
pub use matrix::Matrix;
pub use mlp::Mlp;
pub use shape::{Activation, Layer, Shape};
pub use tape::Tape;
