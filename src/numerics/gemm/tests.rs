//! Compares products with sums in float64, for every extension of the machine.

use ndarray::{Array2, ArrayView2, Axis, s};

use super::matrix::Matrix;
use super::product::gemm_with;
use super::{gemm, product};
use crate::numerics::tile::{Rows, sums};
use crate::numerics::{Extension, Kernel, Real, Simd};

/// Memory layout of a matrix: by row, by column, or interleaved with another one.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Rows,
    Columns,
    Among,
}

const LIES: [Lie; 3] = [Lie::Rows, Lie::Columns, Lie::Among];

fn filled<T: Real>(rows: usize, columns: usize, lie: Lie, shift: f64) -> Array2<T> {
    let wave = |i: usize, j: usize| T::from_f64((0.7 * i as f64 + 1.3 * j as f64 + shift).sin());
    match lie {
        Lie::Rows => Array2::from_shape_fn((rows, columns), |(i, j)| wave(i, j)),
        Lie::Columns => Array2::from_shape_fn((columns, rows), |(j, i)| wave(i, j)).reversed_axes(),
        Lie::Among => Array2::from_shape_fn((2 * rows, 3 * columns), |(i, j)| {
            wave(i / 2, j / 3) // the others' elements are not to be read
        })
        .slice_move(s![..;2, ..;3]),
    }
}

/// The largest difference from α A B + β C in float64, divided by the allowed rounding error: must be below 1.
fn worst<T: Real>(extension: Extension, [m, depth, n]: [usize; 3], lies: [Lie; 3]) -> f64 {
    let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let (a, b) = (filled::<T>(m, depth, lies[0], 0.0), filled::<T>(depth, n, lies[1], 2.0));
    let before = filled::<T>(m, n, lies[2], 4.0);
    let mut worst: f64 = 0.0;
    for (alpha, beta) in [(1.0, 0.0), (1.0, 1.0), (-0.5, 0.25)] {
        let mut c = before.clone();
        if beta == 0.0 {
            c.fill(T::from_f64(f64::NAN));
        }
        let scales = (T::from_f64(alpha), T::from_f64(beta));
        gemm_with(extension, scales, a.view(), b.view(), c.view_mut());
        for ((i, j), found) in c.indexed_iter() {
            let terms = a.row(i).into_iter().zip(b.column(j));
            let sum: f64 = terms.map(|(a, b)| a.to_f64() * b.to_f64()).sum();
            let exact = alpha * sum + beta * before[(i, j)].to_f64();
            let off = (found.to_f64() - exact).abs() / (epsilon * (depth as f64 + 4.0));
            assert!(off.is_finite(), "{extension:?} {m} × {depth} × {n} {lies:?}: {found:?}");
            worst = worst.max(off);
        }
    }
    worst
}

#[test]
fn products_of_every_shape_and_layout_are_exact_to_rounding() {
    // Miri is an interpreter, so it gets small shapes, each with one layout per matrix.
    const SHAPES: &[[usize; 3]] = match cfg!(miri) {
        true => &[[1, 1, 1], [1, 19, 9], [5, 3, 1], [8, 5, 17], [2, 257, 3]],
        false => &[
            [1, 1, 1],
            [1, 192, 40],
            [5, 3, 1],
            [6, 16, 16],
            [7, 17, 33],
            [12, 256, 32],
            [23, 257, 9],
            [29, 600, 70],
            [265, 30, 20],
            [540, 5, 3],
        ],
    };
    let every = || (0..27).map(|at| [at / 9, at / 3 % 3, at % 3].map(|lie| LIES[lie]));
    for extension in Extension::available() {
        for (at, &shape) in SHAPES.iter().enumerate() {
            let (first, step) = if cfg!(miri) { (5 * at, 27) } else { (0, 1) };
            for lies in every().skip(first).step_by(step) {
                let off =
                    worst::<f32>(extension, shape, lies).max(worst::<f64>(extension, shape, lies));
                assert!(off < 1.0, "{extension:?} {shape:?} {lies:?}: {off}");
            }
        }
    }
}

#[test]
fn parts_of_a_wider_matrix_are_written_and_nothing_beside_them() {
    let (a, b) = (filled::<f32>(20, 8, Lie::Rows, 0.0), filled::<f32>(8, 30, Lie::Rows, 1.0));
    let mut wide = Array2::from_elem((20, 50), 7.0_f32);
    gemm(1.0, a.view(), b.view(), 0.0, wide.slice_mut(s![.., 10..40]));
    let whole = product(a.view(), b.view());
    assert_eq!(wide.slice(s![.., 10..40]), whole);
    assert!(wide.slice(s![.., ..10]).iter().chain(wide.slice(s![.., 40..])).all(|&c| c == 7.0));
}

#[test]
fn an_empty_depth_leaves_the_sums_that_were_there() {
    let (a, b) = (Array2::<f64>::zeros((3, 0)), Array2::<f64>::zeros((0, 4)));
    let mut c = Array2::from_elem((3, 4), 2.0);
    gemm(1.0, a.view(), b.view(), 0.5, c.view_mut());
    assert!(c.iter().all(|&c| c == 1.0), "{c}");
    gemm(1.0, a.view(), b.view(), 0.0, c.view_mut());
    assert!(c.iter().all(|&c| c == 0.0), "{c}");
    gemm(1.0, a.view(), b.slice(s![.., ..0]), 0.0, c.slice_mut(s![.., ..0]));
    assert!(c.sum_axis(Axis(0)).iter().all(|&c| c == 0.0));
}

/// The largest error of a group of twelve rows, as on processors with 32 registers, with vectors of any extension.
struct Twelve<'a>(&'a [f64], &'a [f64]);

impl Kernel<f64> for Twelve<'_> {
    type Output = f64;
    #[inline(always)]
    fn run<S: Simd<f64>>(self, simd: S) -> f64 {
        let (depth, width) = (self.0.len() / 12, 2 * S::LANES);
        let by_row: Vec<f64> =
            (0..12 * depth).map(|at| self.0[at % depth * 12 + at / depth]).collect();
        let lying = ArrayView2::from_shape((12, depth), &by_row).unwrap();
        let lying = Matrix::of(&lying).rows_at(0..12, 0..depth);
        let panel = &self.1[..depth * width];
        let of_rows = sums::<f64, S, 12, 2>(simd, lying, panel);
        let of_packed = sums::<f64, S, 12, 2>(simd, Rows::packed(self.0, 12), panel);
        let mut worst: f64 = 0.0;
        for r in 0..12 {
            for v in 0..2 {
                let mut lanes = [[0.0; 8]; 2];
                simd.store(of_rows[r][v], &mut lanes[0]);
                simd.store(of_packed[r][v], &mut lanes[1]);
                for lane in 0..S::LANES {
                    let column = |k| panel[k * width + v * S::LANES + lane];
                    let exact: f64 = (0..depth).map(|k| self.0[k * 12 + r] * column(k)).sum();
                    for found in lanes.map(|lanes| lanes[lane]) {
                        worst = worst.max((found - exact).abs());
                    }
                }
            }
        }
        worst
    }
}

#[test]
fn groups_of_twelve_rows_are_summed_as_those_of_six() {
    let wave = |i: usize| (0.9 * i as f64).sin();
    let (rows, panel): (Vec<_>, Vec<_>) =
        ((0..12 * 40).map(wave).collect(), (0..40 * 16).map(|i| wave(i + 5)).collect());
    for extension in Extension::available() {
        let off = f64::run_with(extension, Twelve(&rows, &panel));
        assert!(off < 1e-13, "{extension:?}: {off:e}");
    }
}
