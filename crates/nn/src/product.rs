//! The product of two matrices.
//!
//! As the fast libraries do it: both matrices are copied into panels in the order in which they
//! will be read, and a small loop keeps a tile of the result in registers. A number of the result
//! is a sum over stretches of [`DEPTH`] products, each summed up from its first to its last by fused
//! operations; where its tile lies, who computes it and how wide a vector is do not enter into it.

// Several arrays are walked at once, and the compiler must see how far.
#![allow(clippy::needless_range_loop)]

use std::cell::RefCell;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// How many products are summed up in registers before they are added to the result. Part of what a
/// result is: another number rounds in other places.
const DEPTH: usize = 256;

/// How many columns of the right matrix are passed over at once; with [`DEPTH`] rows they lie in a
/// core's second cache.
const COLUMNS: usize = 256;

/// How many panels of the left matrix a task takes at most.
const PANELS: usize = 8;

/// How many rows and columns are turned at once.
const SQUARE: usize = 4;

/// Below so many multiplications, other threads would only cost time.
const ALONE: usize = 1 << 18;

/// One of the matrices of a product: numbers, and how far apart neighbours lie. One of the two
/// distances is 1.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    data: &'a [f32],
    row: usize,
    column: usize,
}

impl<'a> Operand<'a> {
    /// A matrix as it lies.
    pub(crate) fn plain(data: &'a [f32], columns: usize) -> Operand<'a> {
        Operand { data, row: columns, column: 1 }
    }

    /// A matrix that lies with its rows and columns exchanged.
    pub(crate) fn transposed(data: &'a [f32], rows: usize) -> Operand<'a> {
        Operand { data, row: 1, column: rows }
    }

    fn exchanged(self) -> Operand<'a> {
        Operand { data: self.data, row: self.column, column: self.row }
    }
}

/// What becomes of what was in the result before.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Onto {
    /// It is overwritten.
    Nothing,
    /// The product is added to it.
    Sum,
}

/// What is to be multiplied.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    /// Rows of the result.
    pub(crate) rows: usize,
    /// Columns of the result.
    pub(crate) columns: usize,
    /// Products in a sum.
    pub(crate) depth: usize,
    pub(crate) left: Operand<'a>,
    pub(crate) right: Operand<'a>,
    pub(crate) onto: Onto,
}

/// Memory for the panels of the right matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels(Vec<f32>);

/// Multiplies. When some rows are complete, `finish` gets the number of the first and the rows, while
/// they are still in a cache.
///
/// # Panics
///
/// If a matrix has too few numbers for the size.
pub(crate) fn multiply(
    product: Product<'_>,
    result: &mut [f32],
    panels: &mut Panels,
    finish: impl Fn(usize, &mut [f32]) + Sync,
) {
    multiply_on(Arch::new(), product, result, panels, finish);
}

/// Multiplies with certain instructions of the processor.
fn multiply_on(
    arch: Arch,
    product: Product<'_>,
    result: &mut [f32],
    panels: &mut Panels,
    finish: impl Fn(usize, &mut [f32]) + Sync,
) {
    let Product { rows, columns, depth, onto, .. } = product;
    assert_eq!(result.len(), rows * columns, "a result of {rows} x {columns}");
    if result.is_empty() {
        return;
    }
    if depth == 0 {
        if onto == Onto::Nothing {
            result.fill(0.0);
        }
        return finish(0, result);
    }
    let tile = arch.dispatch(TileSize);
    let right = pack_right(arch, product, tile.columns, panels);
    let each = if rows * columns * depth < ALONE {
        rows
    } else {
        // Several tasks for each thread, so that none waits long for the last.
        let tasks = 4 * rayon::current_num_threads();
        rows.div_ceil(tile.rows).div_ceil(tasks).clamp(1, PANELS) * tile.rows
    };
    let task = |(i, result): (usize, &mut [f32])| {
        let first = i * each;
        SPACE.with_borrow_mut(|space| arch.dispatch(Task { product, first, right, result, space }));
        finish(first, result);
    };
    if each >= rows {
        task((0, result));
    } else {
        result.par_chunks_mut(each * columns).enumerate().for_each(task);
    }
}

thread_local! {
    /// Memory for the panels of the left matrix that a task needs.
    static SPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Copies the right matrix into panels as wide as a tile. Those of the first [`DEPTH`] rows come
/// first.
fn pack_right<'p>(
    arch: Arch,
    product: Product<'_>,
    width: usize,
    panels: &'p mut Panels,
) -> &'p [f32] {
    /// Numbers in a cache line. Panels begin at one, so that no vector lies across two.
    const LINE: usize = 16;
    let padded = product.columns.next_multiple_of(width);
    let needed = padded * product.depth;
    if panels.0.len() < needed + LINE {
        panels.0.resize(needed + LINE, 0.0);
    }
    let skip = panels.0.as_ptr().align_offset(4 * LINE).min(LINE);
    let packed = &mut panels.0[skip..skip + needed];
    let right = product.right.exchanged();
    let stretch = |(i, packed): (usize, &mut [f32])| {
        let begin = i * DEPTH;
        let depth = packed.len() / padded;
        let panel = |(j, panel): (usize, &mut [f32])| {
            let first = j * width;
            let count = width.min(product.columns - first);
            arch.dispatch(PackRight { from: right, first, count, begin, panel });
        };
        if padded * depth < ALONE / 8 {
            packed.chunks_mut(width * depth).enumerate().for_each(panel);
        } else {
            packed.par_chunks_mut(width * depth).enumerate().for_each(panel);
        }
    };
    if needed < ALONE / 8 {
        packed.chunks_mut(padded * DEPTH).enumerate().for_each(stretch);
    } else {
        packed.par_chunks_mut(padded * DEPTH).enumerate().for_each(stretch);
    }
    packed
}

/// Copies some columns of the right matrix, which is given with rows and columns exchanged.
struct PackRight<'a> {
    from: Operand<'a>,
    first: usize,
    count: usize,
    begin: usize,
    panel: &'a mut [f32],
}

impl WithSimd for PackRight<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let PackRight { from, first, count, begin, panel } = self;
        match S::F32_LANES {
            1 => pack::<2>(from, first, count, begin, panel),
            4 => pack::<8>(from, first, count, begin, panel),
            8 => pack::<16>(from, first, count, begin, panel),
            16 => pack::<32>(from, first, count, begin, panel),
            lanes => unreachable!("vectors of {lanes} lanes"),
        }
    }
}

/// Copies `count` rows of a matrix, from column `begin` on, into a panel: first one number of each
/// row, then the next of each. A panel is `WIDTH` wide; what is missing is filled with 0.
#[inline(always)]
fn pack<const WIDTH: usize>(
    from: Operand<'_>,
    first: usize,
    count: usize,
    begin: usize,
    panel: &mut [f32],
) {
    let (panel, _) = panel.as_chunks_mut::<WIDTH>();
    let origin = first * from.row + begin * from.column;
    if from.row == 1 {
        for (k, to) in panel.iter_mut().enumerate() {
            let from = &from.data[origin + k * from.column..][..count];
            match from.first_chunk::<WIDTH>() {
                Some(from) => *to = *from,
                None => *to = std::array::from_fn(|i| from.get(i).copied().unwrap_or(0.0)),
            }
        }
        return;
    }
    // By squares, which are turned in registers.
    let depth = panel.len();
    let row = |i: usize| &from.data[origin + i * from.row..][..depth];
    let mut i = 0;
    while i + SQUARE <= count {
        let rows: [_; SQUARE] = std::array::from_fn(|o| row(i + o).as_chunks::<SQUARE>());
        let (squares, rest) = panel.as_chunks_mut::<SQUARE>();
        let sides = rows[0].0.iter().zip(rows[1].0).zip(rows[2].0.iter().zip(rows[3].0));
        for (to, ((a, b), (c, d))) in squares.iter_mut().zip(sides) {
            for (k, to) in to.iter_mut().enumerate() {
                to[i..i + SQUARE].copy_from_slice(&[a[k], b[k], c[k], d[k]]);
            }
        }
        for (k, to) in rest.iter_mut().enumerate() {
            (0..SQUARE).for_each(|o| to[i + o] = rows[o].1[k]);
        }
        i += SQUARE;
    }
    for i in i..WIDTH {
        if i < count {
            panel.iter_mut().zip(row(i)).for_each(|(to, number)| to[i] = *number);
        } else {
            panel.iter_mut().for_each(|to| to[i] = 0.0);
        }
    }
}

/// How large a tile is: as large as the registers allow.
struct TileSize;

struct Tile {
    rows: usize,
    columns: usize,
}

impl WithSimd for TileSize {
    type Output = Tile;

    fn with_simd<S: Simd>(self, _: S) -> Tile {
        Tile { rows: if S::REGISTER_COUNT >= 32 { 12 } else { 6 }, columns: 2 * S::F32_LANES }
    }
}

/// Some rows of a product.
struct Task<'a> {
    product: Product<'a>,
    /// The first row.
    first: usize,
    /// The right matrix in panels.
    right: &'a [f32],
    /// The rows.
    result: &'a mut [f32],
    space: &'a mut Vec<f32>,
}

impl WithSimd for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 { self.run::<S, 12>(simd) } else { self.run::<S, 6>(simd) }
    }
}

impl Task<'_> {
    #[inline(always)]
    fn run<S: Simd, const HEIGHT: usize>(self, simd: S) {
        let Product { columns, depth, left: from, onto, .. } = self.product;
        let rows = self.result.len() / columns;
        let width = 2 * S::F32_LANES;
        let padded = columns.next_multiple_of(width);
        let most = COLUMNS / width;
        let needed = rows.next_multiple_of(HEIGHT) * depth.min(DEPTH);
        if self.space.len() < needed {
            self.space.resize(needed, 0.0);
        }
        for begin in (0..depth).step_by(DEPTH) {
            let depth = DEPTH.min(depth - begin);
            let add = onto == Onto::Sum || begin > 0;
            let left = &mut self.space[..rows.next_multiple_of(HEIGHT) * depth];
            for (i, panel) in left.chunks_exact_mut(HEIGHT * depth).enumerate() {
                let count = HEIGHT.min(rows - i * HEIGHT);
                pack::<HEIGHT>(from, self.first + i * HEIGHT, count, begin, panel);
            }
            let right = &self.right[begin * padded..][..depth * padded];
            for (j, right) in right.chunks(most * width * depth).enumerate() {
                for (i, left) in left.chunks_exact(HEIGHT * depth).enumerate() {
                    let count = HEIGHT.min(rows - i * HEIGHT);
                    let result = &mut self.result[i * HEIGHT * columns..][..count * columns];
                    for (o, right) in right.chunks_exact(width * depth).enumerate() {
                        let column = (j * most + o) * width;
                        let sums = tile::<S, HEIGHT>(simd, left, right);
                        store(simd, sums, result, columns, column, add);
                    }
                }
            }
        }
    }
}

/// A tile of the product of two panels.
#[inline(always)]
fn tile<S: Simd, const HEIGHT: usize>(
    simd: S,
    left: &[f32],
    right: &[f32],
) -> [[S::f32s; 2]; HEIGHT] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; HEIGHT];
    let (left, _) = left.as_chunks::<HEIGHT>();
    let (right, _) = S::as_simd_f32s(right).0.as_chunks::<2>();
    for (left, right) in left.iter().zip(right) {
        for i in 0..HEIGHT {
            let number = simd.splat_f32s(left[i]);
            sums[i][0] = simd.mul_add_f32s(number, right[0], sums[i][0]);
            sums[i][1] = simd.mul_add_f32s(number, right[1], sums[i][1]);
        }
    }
    sums
}

/// Writes the rows of a tile into the result, whose rows are `columns` long; the tile begins at
/// `column`.
#[inline(always)]
fn store<S: Simd, const HEIGHT: usize>(
    simd: S,
    sums: [[S::f32s; 2]; HEIGHT],
    result: &mut [f32],
    columns: usize,
    column: usize,
    add: bool,
) {
    let put = |to: &mut S::f32s, sum| *to = if add { simd.add_f32s(*to, sum) } else { sum };
    let width = (2 * S::F32_LANES).min(columns - column);
    if width == 2 * S::F32_LANES && result.len() == HEIGHT * columns {
        // A whole tile goes from the registers to its place.
        for i in 0..HEIGHT {
            let to = &mut result[i * columns + column..][..2 * S::F32_LANES];
            let [first, second] = S::as_mut_simd_f32s(to).0 else { unreachable!() };
            put(first, sums[i][0]);
            put(second, sums[i][1]);
        }
        return;
    }
    for (row, sums) in result.chunks_exact_mut(columns).zip(sums) {
        for (to, sum) in row[column..][..width].chunks_mut(S::F32_LANES).zip(sums) {
            let mut all = simd.partial_load_f32s(to);
            put(&mut all, sum);
            simd.partial_store_f32s(to, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that this processor has.
    fn arches() -> Vec<Arch> {
        let mut arches = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        arches.extend(pulp::x86::V3::try_new().map(Arch::V3));
        arches
    }

    fn numbers(count: usize, factor: usize) -> Vec<f32> {
        (0..count).map(|i| (i * factor % 1000) as f32 / 1000.0 - 0.5).collect()
    }

    #[track_caller]
    fn check(rows: usize, columns: usize, depth: usize) {
        let (a, b) = (numbers(rows * depth, 7919), numbers(depth * columns, 104_729));
        let before = numbers(rows * columns, 31);
        for (a_turned, b_turned, onto) in [
            (false, false, Onto::Nothing),
            (false, true, Onto::Sum),
            (true, false, Onto::Nothing),
            (true, true, Onto::Sum),
        ] {
            let operand = |turned, data, rows, columns| match turned {
                true => Operand::transposed(data, rows),
                false => Operand::plain(data, columns),
            };
            let left = operand(a_turned, &a, rows, depth);
            let right = operand(b_turned, &b, depth, columns);
            let product = Product { rows, columns, depth, left, right, onto };
            let mut seen = Vec::new();
            for arch in arches() {
                let mut result = before.clone();
                // What is left in the panels of a product before must not matter.
                let mut panels = Panels(vec![f32::NAN; 100_000]);
                SPACE.with_borrow_mut(|space| space.fill(f32::NAN));
                let double = |_: usize, rows: &mut [f32]| rows.iter_mut().for_each(|x| *x *= 2.0);
                multiply_on(arch, product, &mut result, &mut panels, double);
                seen.push(result);
            }
            for other in &seen[1..] {
                assert!(seen[0] == *other, "{rows} x {columns} x {depth}: bits differ");
            }
            for (i, got) in seen[0].iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let number = |x: &Operand<'_>, i, j| f64::from(x.data[i * x.row + j * x.column]);
                let sum: f64 =
                    (0..depth).map(|k| number(&left, row, k) * number(&right, k, column)).sum();
                let begin = if onto == Onto::Sum { f64::from(before[i]) } else { 0.0 };
                let expected = 2.0 * (begin + sum);
                assert!((f64::from(*got) - expected).abs() < 1e-4, "{got} instead of {expected}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition_on_all_instructions() {
        for (rows, columns, depth) in [
            (1, 1, 1),
            (1, 7, 3),
            (5, 33, 9),
            (12, 32, 256),
            (13, 31, 257),
            (25, 70, 300),
            (60, 19, 513),
            (100, 300, 40),
            (3, 5, 0),
            (0, 4, 4),
            (4, 0, 4),
        ] {
            check(rows, columns, depth);
        }
    }
}
