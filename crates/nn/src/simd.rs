//! Loops for the widest vectors of the processor they run on.
//!
//! Sums are kept in a fixed number of lanes, of which a vector holds some, and lanes are added up in
//! a fixed order. So the result is the same with vectors of any width.

// Several arrays are walked at once, and the compiler must see how far.
#![allow(clippy::needless_range_loop)]

use pulp::{Arch, Simd, WithSimd};

use crate::shape::Activation;

/// How many rows and columns [`dots`] takes at once.
pub(crate) const SIDE: usize = 4;

/// Runs a plain loop, compiled for this processor. The compiler makes vectors of it, if the closure is
/// `#[inline(always)]`.
#[inline(always)]
pub(crate) fn wide<R>(run: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(run)
}

/// The sum of products, in 64 lanes.
///
/// # Panics
///
/// If the lengths differ.
#[inline]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    Arch::new().dispatch(Dot { a, b })
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl WithSimd for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        match S::F32_LANES {
            16 => self.run::<S, 4>(simd),
            8 => self.run::<S, 8>(simd),
            4 => self.run::<S, 16>(simd),
            1 => self.run::<S, 64>(simd),
            lanes => unreachable!("vectors of {lanes} lanes"),
        }
    }
}

impl Dot<'_> {
    /// With so many vectors of sums.
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) -> f32 {
        let mut sums = [simd.splat_f32s(0.0); VECTORS];
        let (a, a_rest) = self.a.as_chunks::<64>();
        let (b, b_rest) = self.b.as_chunks::<64>();
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (S::as_simd_f32s(a).0, S::as_simd_f32s(b).0);
            for i in 0..VECTORS {
                sums[i] = simd.mul_add_f32s(a[i], b[i], sums[i]);
            }
        }
        let part = |rest: &[f32], i| {
            let rest = rest.get(i * S::F32_LANES..).unwrap_or(&[]);
            simd.partial_load_f32s(&rest[..rest.len().min(S::F32_LANES)])
        };
        if !a_rest.is_empty() {
            for i in 0..VECTORS {
                sums[i] = simd.mul_add_f32s(part(a_rest, i), part(b_rest, i), sums[i]);
            }
        }
        total(simd, sums)
    }
}

/// The sum over all lanes: the upper half is added to the lower, until one is left.
#[inline(always)]
fn total<S: Simd, const VECTORS: usize>(simd: S, mut sums: [S::f32s; VECTORS]) -> f32 {
    let mut half = VECTORS / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] = simd.add_f32s(sums[i], sums[i + half]);
        }
        half /= 2;
    }
    let mut lanes = [0.0; 16];
    simd.partial_store_f32s(&mut lanes[..S::F32_LANES], sums[0]);
    // Where a vector has fewer than 16 lanes, the first of these steps add nothing but 0.
    for half in [8, 4, 2, 1] {
        for l in 0..half {
            lanes[l] += lanes[l + half];
        }
    }
    lanes[0]
}

/// The sums of products of each of some vectors with each of others, in 16 lanes each. Each number is
/// read for several sums at once.
///
/// # Panics
///
/// If the lengths differ.
#[inline]
pub(crate) fn dots(a: [&[f32]; SIDE], b: [&[f32]; SIDE]) -> [[f32; SIDE]; SIDE] {
    assert!(a.iter().chain(&b).all(|x| x.len() == a[0].len()));
    Arch::new().dispatch(Dots { a, b })
}

struct Dots<'a> {
    a: [&'a [f32]; SIDE],
    b: [&'a [f32]; SIDE],
}

impl WithSimd for Dots<'_> {
    type Output = [[f32; SIDE]; SIDE];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        match S::F32_LANES {
            16 => self.run::<S, 1>(simd),
            8 => self.run::<S, 2>(simd),
            4 => self.run::<S, 4>(simd),
            1 => self.run::<S, 16>(simd),
            lanes => unreachable!("vectors of {lanes} lanes"),
        }
    }
}

impl Dots<'_> {
    /// With so many vectors for each sum.
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) -> [[f32; SIDE]; SIDE] {
        let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; SIDE]; SIDE];
        let length = self.a[0].len();
        let [[a0, a1, a2, a3], [b0, b1, b2, b3]] =
            [self.a, self.b].map(|x| x.map(|x| x[..length].as_chunks::<16>().0));
        let a_lanes = a0.iter().zip(a1).zip(a2.iter().zip(a3));
        let b_lanes = b0.iter().zip(b1).zip(b2.iter().zip(b3));
        for (((a0, a1), (a2, a3)), ((b0, b1), (b2, b3))) in a_lanes.zip(b_lanes) {
            add_square(simd, &mut sums, [a0, a1, a2, a3], [b0, b1, b2, b3]);
        }
        if !length.is_multiple_of(16) {
            let rest = |x: &[f32]| -> [f32; 16] {
                let rest = &x[length / 16 * 16..length];
                std::array::from_fn(|l| rest.get(l).copied().unwrap_or(0.0))
            };
            let (a, b) = (self.a.map(rest), self.b.map(rest));
            add_square(simd, &mut sums, a.each_ref(), b.each_ref());
        }
        sums.map(|sums| sums.map(|sums| total(simd, sums)))
    }
}

#[inline(always)]
fn add_square<S: Simd, const VECTORS: usize>(
    simd: S,
    sums: &mut [[[S::f32s; VECTORS]; SIDE]; SIDE],
    a: [&[f32; 16]; SIDE],
    b: [&[f32; 16]; SIDE],
) {
    for k in 0..VECTORS {
        for i in 0..SIDE {
            for j in 0..SIDE {
                let (a, b) = (S::as_simd_f32s(a[i]).0[k], S::as_simd_f32s(b[j]).0[k]);
                sums[i][j][k] = simd.mul_add_f32s(a, b, sums[i][j][k]);
            }
        }
    }
}

/// The sum of some numbers, in 16 lanes.
pub(crate) fn sum(numbers: &[f32]) -> f32 {
    wide(
        #[inline(always)]
        || {
            let mut sums = [0.0; 16];
            for numbers in numbers.chunks(16) {
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
            }
            sums.iter().sum()
        },
    )
}

/// Multiplies all by a number.
pub(crate) fn scale(numbers: &mut [f32], factor: f32) {
    wide(
        #[inline(always)]
        || numbers.iter_mut().for_each(|x| *x *= factor),
    );
}

/// Adds a number to all.
pub(crate) fn add(numbers: &mut [f32], number: f32) {
    wide(
        #[inline(always)]
        || numbers.iter_mut().for_each(|x| *x += number),
    );
}

/// Adds a multiple of other numbers.
pub(crate) fn add_scaled(numbers: &mut [f32], factor: f32, others: &[f32]) {
    wide(
        #[inline(always)]
        || numbers.iter_mut().zip(others).for_each(|(x, y)| *x = factor.mul_add(*y, *x)),
    );
}

/// The hyperbolic tangent, by a quotient of polynomials. At most 6 units in the last place off.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // From there on the quotient is 1.
    const END: f32 = 7.998_811_7;
    // Below, the tangent is its argument.
    const TINY: f32 = 0.000_4;
    let x = x.clamp(-END, END);
    let square = x * x;
    let mut over = -2.760_768_5e-16_f32;
    for term in [2.000_188e-13, -8.604_672e-11, 5.122_297e-8, 1.485_722_4e-5, 6.372_619_3e-4] {
        over = over.mul_add(square, term);
    }
    over = x * over.mul_add(square, 4.893_524_6e-3);
    let mut under = 1.198_258_4e-6_f32;
    for term in [1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3] {
        under = under.mul_add(square, term);
    }
    if x.abs() < TINY { x } else { over / under }
}

impl Activation {
    /// Applies it to sums, each with a bias added.
    pub(crate) fn apply(self, numbers: &mut [f32], bias: f32) {
        wide(
            #[inline(always)]
            || match self {
                Activation::Tanh => numbers.iter_mut().for_each(|x| *x = tanh(*x + bias)),
                // What is not a number stays so, and is noticed.
                Activation::Relu => numbers.iter_mut().for_each(|x| {
                    let sum = *x + bias;
                    *x = if sum < 0.0 { 0.0 } else { sum };
                }),
            },
        );
    }

    /// Multiplies by its derivative, which follows from what it gave.
    pub(crate) fn pull(self, gradient: &mut [f32], values: &[f32]) {
        let pairs = gradient.iter_mut().zip(values);
        wide(
            #[inline(always)]
            || match self {
                Activation::Tanh => pairs.for_each(|(g, y)| *g *= (-*y).mul_add(*y, 1.0)),
                Activation::Relu => pairs.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 }),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_close() {
        let mut worst = 0.0_f64;
        let mut bits = 0x3000_0000_u32;
        while bits < 0x4200_0000 {
            let x = f32::from_bits(bits);
            let exact = f64::from(x).tanh();
            let unit = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
            worst = worst.max((f64::from(tanh(x)) - exact).abs() / unit);
            assert_eq!(tanh(-x), -tanh(x));
            assert!(tanh(x) <= 1.0, "{x}");
            bits += 97;
        }
        assert!(worst < 5.5, "off by {worst} units in the last place");
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!((tanh(0.0), tanh(f32::INFINITY)), (0.0, 1.0));
    }

    #[test]
    fn sums_are_the_same_with_all_instructions() {
        for length in [0, 1, 15, 16, 63, 64, 150, 513, 2048] {
            let vectors: [Vec<f32>; 8] = std::array::from_fn(|i| {
                (0..length).map(|k| ((k * 7919 + i * 31) % 1000) as f32 / 1000.0 - 0.5).collect()
            });
            let [a0, a1, a2, a3, b0, b1, b2, b3] = vectors.each_ref().map(Vec::as_slice);
            let (a, b) = ([a0, a1, a2, a3], [b0, b1, b2, b3]);
            let square = dots(a, b);
            assert_eq!(square, Dots { a, b }.with_simd(pulp::Scalar::new()));
            for i in 0..SIDE {
                for j in 0..SIDE {
                    let one = dot(a[i], b[j]);
                    assert_eq!(one, Dot { a: a[i], b: b[j] }.with_simd(pulp::Scalar::new()));
                    let products = a[i].iter().zip(b[j]);
                    let exact: f64 = products.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                    for got in [one, square[i][j]] {
                        assert!((f64::from(got) - exact).abs() < 1e-4, "{got} not {exact}");
                    }
                }
            }
            let exact: f64 = a0.iter().map(|x| f64::from(*x)).sum();
            assert!((f64::from(sum(a0)) - exact).abs() < 1e-4);
        }
    }
}
