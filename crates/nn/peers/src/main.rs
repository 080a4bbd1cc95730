//! Our product of matrices beside those of others, on the shapes of one update, by turns.
//!
//!     cargo run --release --manifest-path crates/nn/peers/Cargo.toml
//!
//! Prints billions of operations a second: the median, and in brackets the best. Rows of the table
//! are the products of `Mlp::forward` (weights times values) and `Mlp::backward` (deltas times
//! values, weights times deltas) for a batch of 256. The others get the same matrices in the same
//! layout, and all threads.

#[path = "../../src/product.rs"]
#[allow(dead_code)]
mod product;

use std::time::Instant;

use product::{Onto, Operand, Panels, Product, multiply};

/// A matrix that lies as it is, or with rows and columns exchanged.
#[derive(Clone, Copy, PartialEq)]
enum Lies {
    Plain,
    Turned,
}

use Lies::{Plain, Turned};

fn main() {
    let threads = std::env::args().nth(1).map_or(2, |n| n.parse().expect("a number of threads"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("threads");
    // matrixmultiply has threads of its own, and reads this at its first product.
    // SAFETY: nothing else reads the environment now.
    unsafe { std::env::set_var("MATMUL_NUM_THREADS", threads.min(4).to_string()) };
    println!(
        "{:28}        ours         gemm         faer  matrixmultiply",
        "rows x columns x depth"
    );
    for (name, rows, columns, depth, left, right) in [
        ("forward", 2048, 256, 2048, Plain, Plain),
        ("weights", 2048, 2048, 256, Plain, Turned),
        ("deltas", 2048, 256, 2048, Turned, Plain),
        ("forward", 2048, 256, 300, Plain, Plain),
        ("weights", 2048, 300, 256, Plain, Turned),
        ("forward", 116, 256, 2048, Plain, Plain),
        ("weights", 116, 2048, 256, Plain, Turned),
        ("deltas", 2048, 256, 116, Turned, Plain),
        ("forward", 256, 256, 600, Plain, Plain),
        ("weights", 256, 600, 256, Plain, Turned),
        ("forward", 256, 256, 256, Plain, Plain),
    ] {
        let numbers = |count: usize, factor: usize| -> Vec<f32> {
            (0..count).map(|i| (i * factor % 1000) as f32 / 1000.0 - 0.5).collect()
        };
        let (a, b) = (numbers(rows * depth, 7919), numbers(depth * columns, 104_729));
        let mut results = [const { Vec::new() }; 4];
        let mut panels = Panels::default();
        let mut times = [const { Vec::new() }; 4];
        let [ours, gemm, faer, mm] = &mut results;
        for result in [&mut *ours, &mut *gemm, &mut *faer, &mut *mm] {
            *result = vec![0.0_f32; rows * columns];
        }
        let strides = |lies, rows: usize, columns: usize| match lies {
            Plain => (columns as isize, 1),
            Turned => (1, rows as isize),
        };
        let (a_row, a_column) = strides(left, rows, depth);
        let (b_row, b_column) = strides(right, depth, columns);
        let operand = |lies, data, rows, columns| match lies {
            Plain => Operand::plain(data, columns),
            Turned => Operand::transposed(data, rows),
        };
        for _ in 0..30 {
            let mut time = |i: usize, run: &mut dyn FnMut()| {
                let begin = Instant::now();
                run();
                times[i].push(begin.elapsed().as_secs_f64());
            };
            time(0, &mut || {
                let left = operand(left, &a, rows, depth);
                let right = operand(right, &b, depth, columns);
                let onto = Onto::Nothing;
                let product = Product { rows, columns, depth, left, right, onto };
                multiply(product, ours, &mut panels, |_, _| {});
            });
            // SAFETY: the vectors are as long as sizes and strides say.
            time(1, &mut || unsafe {
                gemm::gemm(
                    rows,
                    columns,
                    depth,
                    gemm.as_mut_ptr(),
                    1,
                    columns as isize,
                    false,
                    a.as_ptr(),
                    a_column,
                    a_row,
                    b.as_ptr(),
                    b_column,
                    b_row,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::Rayon(0),
                );
            });
            // SAFETY: as above.
            time(2, &mut || unsafe {
                let a = faer::MatRef::from_raw_parts(a.as_ptr(), rows, depth, a_row, a_column);
                let b = faer::MatRef::from_raw_parts(b.as_ptr(), depth, columns, b_row, b_column);
                let to = faer.as_mut_ptr();
                let to = faer::MatMut::from_raw_parts_mut(to, rows, columns, columns as isize, 1);
                let replace = faer::Accum::Replace;
                faer::linalg::matmul::matmul(to, replace, a, b, 1.0, faer::Par::rayon(0));
            });
            // SAFETY: as above.
            time(3, &mut || unsafe {
                matrixmultiply::sgemm(
                    rows,
                    depth,
                    columns,
                    1.0,
                    a.as_ptr(),
                    a_row,
                    a_column,
                    b.as_ptr(),
                    b_row,
                    b_column,
                    0.0,
                    mm.as_mut_ptr(),
                    columns as isize,
                    1,
                );
            });
        }
        for other in &results[1..] {
            let far = results[0].iter().zip(other).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            assert!(far < 1e-2, "{name}: results differ by {far}");
        }
        print!("{:28}", format!("{name} {rows} x {columns} x {depth}"));
        for times in &mut times {
            times.sort_by(f64::total_cmp);
            let rate = |time: f64| 2.0 * (rows * columns * depth) as f64 / time / 1e9;
            print!("  {:4.0} ({:4.0})", rate(times[times.len() / 2]), rate(times[0]));
        }
        println!();
    }
}
