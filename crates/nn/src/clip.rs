//! The length of a gradient.

use rayon::prelude::*;

use crate::simd::{dot, scale};

/// How many numbers a task takes. Part of what a norm is: another number rounds in other places.
const CHUNK: usize = 1 << 15;

/// The Euclidean length of a gradient.
pub fn norm(gradient: &[f32]) -> f32 {
    squares(gradient).sqrt() as f32
}

/// Scales a gradient down to a length if it is longer; returns the length it had.
///
/// ```
/// let mut gradient = [3.0, 4.0];
/// assert_eq!(xla_gym_nn::clip_norm(&mut gradient, 1.0), 5.0);
/// assert!((xla_gym_nn::norm(&gradient) - 1.0).abs() < 1e-6);
/// ```
pub fn clip_norm(gradient: &mut [f32], most: f32) -> f32 {
    clip_norms(&mut [gradient], most)
}

/// Scales several gradients down so that together they are no longer than `most`; returns the length
/// they had together.
pub fn clip_norms(gradients: &mut [&mut [f32]], most: f32) -> f32 {
    let length = gradients.iter().map(|gradient| squares(gradient)).sum::<f64>().sqrt() as f32;
    if length > most {
        let by = most / length;
        for gradient in gradients {
            gradient.par_chunks_mut(CHUNK).for_each(|chunk| scale(chunk, by));
        }
    }
    length
}

/// The sum of squares: of each chunk by itself, then of the chunks in their order.
fn squares(gradient: &[f32]) -> f64 {
    let chunks: Vec<f32> = gradient.par_chunks(CHUNK).map(|chunk| dot(chunk, chunk)).collect();
    chunks.into_iter().map(f64::from).sum()
}
