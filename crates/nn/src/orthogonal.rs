//! Random orthogonal matrices.

use rand::Rng;

use crate::{
    matrix::transpose,
    product::{Onto, Operand, Panels, Product, multiply},
    simd::{add_scaled, dot, scale},
};

/// How many vectors are made orthogonal to one another one by one. To all before they are by
/// products of matrices, which are faster.
const BLOCK: usize = 64;

/// Fills a matrix with rows that are orthogonal and of length `gain`; or columns, if they are the
/// fewer. All directions are equally likely.
pub(crate) fn fill(rows: usize, columns: usize, gain: f32, rng: &mut impl Rng, to: &mut [f32]) {
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors = normal(count * length, rng);
    orthonormalise(count, length, &mut vectors);
    scale(&mut vectors, gain);
    if rows <= columns {
        to.copy_from_slice(&vectors);
    } else {
        transpose(count, length, &vectors, to);
    }
}

/// Numbers of the normal distribution (Box and Muller, 1958).
fn normal(count: usize, rng: &mut impl Rng) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(count + 1);
    while numbers.len() < count {
        // Above 0, so that it has a logarithm.
        let uniform = 1.0 - rng.random::<f64>();
        let radius = (-2.0 * uniform.ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * rng.random::<f64>()).sin_cos();
        numbers.extend([(radius * cos) as f32, (radius * sin) as f32]);
    }
    numbers.truncate(count);
    numbers
}

/// Makes vectors orthogonal to one another and of length 1, by Gram and Schmidt's way. Everything is
/// done twice, because the first time leaves what rounding makes of it.
fn orthonormalise(count: usize, length: usize, vectors: &mut [f32]) {
    let mut panels = Panels::default();
    for begin in (0..count).step_by(BLOCK) {
        let (before, now) = vectors.split_at_mut(begin * length);
        let some = BLOCK.min(count - begin);
        let now = &mut now[..some * length];
        let mut parts = vec![0.0; some * begin];
        for _ in 0..2 {
            // How much of each earlier vector is in each; then that much is taken away.
            let product = Product {
                rows: some,
                columns: begin,
                depth: length,
                left: Operand::plain(now, length),
                right: Operand::transposed(before, length),
                onto: Onto::Nothing,
            };
            multiply(product, &mut parts, &mut panels, |_, parts| scale(parts, -1.0));
            let product = Product {
                rows: some,
                columns: length,
                depth: begin,
                left: Operand::plain(&parts, begin),
                right: Operand::plain(before, length),
                onto: Onto::Sum,
            };
            multiply(product, now, &mut panels, |_, _| {});
            for i in 0..some {
                let (before, now) = now.split_at_mut(i * length);
                let now = &mut now[..length];
                for before in before.chunks_exact(length) {
                    add_scaled(now, -dot(before, now), before);
                }
                scale(now, 1.0 / dot(now, now).sqrt());
            }
        }
    }
}
