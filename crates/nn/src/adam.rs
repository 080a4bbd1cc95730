//! The optimizer.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::simd::wide;

/// How many parameters a task takes.
const CHUNK: usize = 1 << 14;

const BETAS: (f64, f64) = (0.9, 0.999);

/// Adam (Kingma and Ba, 2015), as PyTorch computes it, with betas of 0.9 and 0.999.
///
/// ```
/// use xla_gym_nn::Adam;
///
/// // Goes down to where (x - 3)² is least.
/// let (mut adam, mut x) = (Adam::new(1, 0.1, 1e-8), [0.0]);
/// for _ in 0..500 {
///     let gradient = [2.0 * (x[0] - 3.0)];
///     adam.step(&mut x, &gradient);
/// }
/// assert!((x[0] - 3.0).abs() < 1e-3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    learning_rate: f64,
    epsilon: f64,
    steps: u64,
    means: Vec<f32>,
    squares: Vec<f32>,
}

impl Adam {
    /// For so many parameters.
    pub fn new(parameters: usize, learning_rate: f64, epsilon: f64) -> Adam {
        Adam {
            learning_rate,
            epsilon,
            steps: 0,
            means: vec![0.0; parameters],
            squares: vec![0.0; parameters],
        }
    }

    /// How far a step goes.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Changes how far a step goes.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The running means of the gradient and of its squares.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (&self.means, &self.squares)
    }

    /// Goes back to where [`Adam::steps`] and [`Adam::moments`] were read.
    ///
    /// # Panics
    ///
    /// If the moments are those of another number of parameters.
    pub fn restore(&mut self, steps: u64, means: &[f32], squares: &[f32]) {
        self.steps = steps;
        self.means.copy_from_slice(means);
        self.squares.copy_from_slice(squares);
    }

    /// Moves the parameters against a gradient.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        assert_eq!(parameters.len(), self.means.len(), "another number of parameters");
        assert_eq!(gradient.len(), self.means.len(), "a gradient of another length");
        self.steps += 1;
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        // What the means lack because they began at 0.
        let lack = (1.0 - BETAS.0.powi(steps), (1.0 - BETAS.1.powi(steps)).sqrt());
        let far = (self.learning_rate / lack.0) as f32;
        let (root, epsilon) = ((1.0 / lack.1) as f32, self.epsilon as f32);
        let (keep_mean, keep_square) = (BETAS.0 as f32, BETAS.1 as f32);
        let (add_mean, add_square) = ((1.0 - BETAS.0) as f32, (1.0 - BETAS.1) as f32);
        let chunks = parameters
            .par_chunks_mut(CHUNK)
            .zip(gradient.par_chunks(CHUNK))
            .zip(self.means.par_chunks_mut(CHUNK))
            .zip(self.squares.par_chunks_mut(CHUNK));
        chunks.for_each(|(((parameters, gradient), means), squares)| {
            wide(
                #[inline(always)]
                || {
                    let moments = means.iter_mut().zip(squares);
                    for ((p, &g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
                        *m = m.mul_add(keep_mean, g * add_mean);
                        *v = v.mul_add(keep_square, g * g * add_square);
                        *p -= far * *m / v.sqrt().mul_add(root, epsilon);
                    }
                },
            );
        });
    }
}
