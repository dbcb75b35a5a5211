//! The inverses of many small symmetric matrices, and their products with vectors.

use half::f16;
use half::slice::HalfFloatSliceExt as _;
use rayon::prelude::*;

use super::side_curvature::greatest;
use crate::numerics::{Kernel, Real as _, Simd};

/// Added to every block, as a share of the mean curvature, so that nearly one-hot rows do not take unbounded steps.
const DAMPING: f64 = 0.1;
/// The most numbers of a vector. Columns of inverses are padded to a multiple of it.
const MOST_LANES: usize = 16;
/// Number of blocks per thread task.
const TASK: usize = 64;

/// The inverses of the damped blocks, and 1 for each of the head weights.
pub(super) struct Blocks {
    d: usize,
    /// Per head, queries and then keys: d columns of [`width_of`] d numbers each, one block after the other. In float16, since
    /// a preconditioner is only an approximation, and reading it takes most of the time of a product.
    inverses: Vec<f16>,
    /// The factor of each block; its largest number is 1.
    scales: Vec<f32>,
}

impl Blocks {
    /// The inverses of `blocks`, which hold n·d times the lower triangle of each block, row by row. Returns `None` if one is
    /// not finite.
    pub fn inverted(blocks: &[&[f32]], n: usize, d: usize) -> Option<Self> {
        let diagonal = |block: &&[f32]| (0..d).map(|a| f64::from(block[entry(a, a)])).sum::<f64>();
        let damping =
            DAMPING * blocks.iter().map(diagonal).sum::<f64>() / (blocks.len() * d) as f64;
        let scale = (n * d) as f64;
        let block = d * width_of(d);
        let mut inverses = vec![f16::ZERO; blocks.len() * block];
        let mut scales = vec![0.0f32; blocks.len()];
        inverses
            .par_chunks_mut(TASK * block)
            .zip(scales.par_chunks_mut(TASK))
            .zip(blocks.par_chunks(TASK))
            .for_each(|((to, scales), blocks)| {
                f64::run(Invert { d, blocks, damping, scale, to, scales });
            });
        let is_finite = scales.iter().all(|scale| scale.is_finite() && *scale > 0.0);
        is_finite.then_some(Self { d, inverses, scales })
    }

    /// v ← B⁻¹v for two vectors at once; the second may be empty.
    pub fn apply(&self, both: [&mut [f64]; 2]) {
        f32::run(Apply { of: self, both });
    }
}

/// The length of a column of the inverse of a block of d × d.
fn width_of(d: usize) -> usize {
    d.next_multiple_of(MOST_LANES)
}

/// The place of an entry of a lower triangle that is stored row by row.
fn entry(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

/// Inverts damped blocks in float64, as many at once as a vector has lanes: B = LLᵀ, then M = L⁻¹, then B⁻¹ = MᵀM. The scale of
/// a block that has no inverse is not finite.
struct Invert<'a> {
    d: usize,
    blocks: &'a [&'a [f32]],
    damping: f64,
    scale: f64,
    to: &'a mut [f16],
    scales: &'a mut [f32],
}

impl Kernel<f64> for Invert<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f64>>(self, simd: S) {
        let Self { d, blocks, damping, scale, to, scales } = self;
        let (lanes, width) = (S::LANES, width_of(d));
        // Entry by entry; each has one number per block.
        let mut all = vec![0.0; entry(d, 0) * lanes];
        let mut single = vec![0.0f32; d * width];
        let places = to.chunks_mut(lanes * d * width).zip(scales.chunks_mut(lanes));
        for (blocks, (to, scales)) in blocks.chunks(lanes).zip(places) {
            for (place, lane) in all.chunks_exact_mut(lanes).enumerate() {
                for (to, block) in lane.iter_mut().zip(blocks) {
                    *to = block[place].into();
                }
                // Lanes without a block invert the last one again.
                lane[blocks.len()..].fill(blocks[blocks.len() - 1][place].into());
            }
            for row in 0..d {
                let lane = &mut all[entry(row, row) * lanes..][..lanes];
                lane.iter_mut().for_each(|v| *v += damping);
            }
            invert(simd, d, &mut all);
            let blocks = to.chunks_exact_mut(d * width).zip(scales);
            for (lane, (to, to_scale)) in blocks.enumerate() {
                let at = |row, column| all[entry(row, column) * lanes + lane];
                // No entry of a positive definite matrix is larger than those of its diagonal. NaN stays.
                let largest = (0..d)
                    .map(|row| at(row, row))
                    .fold(0.0f64, |most, v| if v > most || v.is_nan() { v } else { most });
                let share = 1.0 / largest;
                for row in 0..d {
                    for column in 0..=row {
                        let v = (at(row, column) * share) as f32;
                        single[row * width + column] = v;
                        single[column * width + row] = v;
                    }
                }
                to.convert_from_f32_slice(&single);
                *to_scale = (largest * scale) as f32;
            }
        }
    }
}

/// Replaces the lower triangles of matrices by those of their inverses, in place.
#[inline(always)]
fn invert<S: Simd<f64>>(simd: S, d: usize, all: &mut [f64]) {
    let (lanes, zero) = (S::LANES, simd.splat(0.0));
    let at = |row: usize, column: usize| entry(row, column) * lanes;
    let mut roots = vec![0.0; lanes];
    for row in 0..d {
        for column in 0..row {
            let sum = products(simd, all, 0..column, |k| [at(row, k), at(column, k)]);
            // The diagonal has the inverse of the root.
            let rest = simd.sub(simd.load(&all[at(row, column)..]), sum);
            let entry = simd.mul(rest, simd.load(&all[at(column, column)..]));
            simd.store(entry, &mut all[at(row, column)..]);
        }
        let sum = products(simd, all, 0..row, |k| [at(row, k), at(row, k)]);
        simd.store(simd.sub(simd.load(&all[at(row, row)..]), sum), &mut roots);
        let diagonal = all[at(row, row)..].iter_mut().zip(&roots);
        diagonal.for_each(|(to, square)| *to = 1.0 / square.sqrt());
    }
    for row in 0..d {
        for column in 0..row {
            let sum = products(simd, all, column..row, |k| [at(row, k), at(k, column)]);
            let entry = simd.mul(sum, simd.load(&all[at(row, row)..]));
            simd.store(simd.sub(zero, entry), &mut all[at(row, column)..]);
        }
    }
    for row in 0..d {
        for column in 0..=row {
            let sum = products(simd, all, row..d, |k| [at(k, row), at(k, column)]);
            simd.store(sum, &mut all[at(row, column)..]);
        }
    }
}

/// Σₖ aₖbₖ over `terms`, in four independent sums; `places` says where aₖ and bₖ begin.
#[inline(always)]
fn products<S: Simd<f64>>(
    simd: S,
    all: &[f64],
    terms: std::ops::Range<usize>,
    places: impl Fn(usize) -> [usize; 2],
) -> S::V {
    let mut sums = [simd.splat(0.0); 4];
    let mut add = |sum: usize, k: usize| {
        let [a, b] = places(k).map(|place| simd.load(&all[place..]));
        sums[sum] = simd.mul_add(a, b, sums[sum]);
    };
    let fours = terms.len() / 4;
    for four in 0..fours {
        (0..4).for_each(|sum| add(sum, terms.start + 4 * four + sum));
    }
    (terms.start + 4 * fours..terms.end).for_each(|k| add(0, k));
    simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))
}

/// One product of every block with its part of two vectors, in float32. Each block is read once.
struct Apply<'a> {
    of: &'a Blocks,
    both: [&'a mut [f64]; 2],
}

impl Kernel<f32> for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f32>>(mut self, simd: S) {
        let Blocks { d, inverses, scales: of_blocks } = self.of;
        let (d, width) = (*d, width_of(*d));
        let mut vectors = [vec![[0.0f32; 2]; d], vec![[0.0f32; 2]; width]];
        let [from, to] = &mut vectors;
        // The smallest gradients would underflow in float32, so each vector is divided by its largest entry.
        let scales = self.both.each_ref().map(|v| greatest(v));
        let blocks = inverses.chunks_exact(d * width).zip(of_blocks);
        for (block, (inverse, of_block)) in blocks.enumerate() {
            for (side, (v, scale)) in self.both.iter().zip(scales).enumerate() {
                let v = v.get(block * d..(block + 1) * d).unwrap_or_default();
                from.iter_mut().zip(v).for_each(|(to, v)| to[side] = (v * (1.0 / scale)) as f32);
            }
            let mut first = 0;
            while first < width {
                let rows = (inverse, width, first);
                first += match (width - first) / S::LANES {
                    0..4 => rows_of::<1, S>(simd, rows, from, to),
                    _ => rows_of::<4, S>(simd, rows, from, to),
                };
            }
            for (side, (v, scale)) in self.both.iter_mut().zip(scales).enumerate() {
                let v = v.get_mut(block * d..(block + 1) * d).unwrap_or_default();
                let scale = scale * f64::from(*of_block);
                v.iter_mut().zip(&*to).for_each(|(v, to)| *v = f64::from(to[side]) * scale);
            }
        }
    }
}

/// Writes N vectors of rows of a block's product with two vectors, from row `first` on, and returns their number.
#[inline(always)]
fn rows_of<const N: usize, S: Simd<f32>>(
    simd: S,
    (inverse, width, first): (&[f16], usize, usize),
    from: &[[f32; 2]],
    to: &mut [[f32; 2]],
) -> usize {
    let mut sums = [[simd.splat(0.0); N]; 2];
    for (column, v) in inverse.chunks_exact(width).zip(from) {
        let (v, rows) = (v.map(|v| simd.splat(v)), &column[first..][..N * S::LANES]);
        for part in 0..N {
            let rows = simd.load_half(&rows[part * S::LANES..]);
            for (sums, v) in sums.iter_mut().zip(v) {
                sums[part] = simd.mul_add(rows, v, sums[part]);
            }
        }
    }
    let mut lanes = [0.0f32; MOST_LANES];
    for (side, sums) in sums.into_iter().enumerate() {
        for (part, sum) in sums.into_iter().enumerate() {
            simd.store(sum, &mut lanes);
            let to = &mut to[first + part * S::LANES..][..S::LANES];
            to.iter_mut().zip(lanes).for_each(|(to, lane)| to[side] = lane);
        }
    }
    N * S::LANES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More blocks than a vector has lanes, and more rows than a vector has.
    #[test]
    fn both_vectors_are_multiplied_by_every_inverse() {
        let (count, d) = (11, 21);
        // GGᵀ + 1 for a G of one column: its inverse is 1 − GGᵀ/(1 + GᵀG).
        let g = |block: usize, row: usize| ((3 * row + 5 * block) as f64).sin();
        let triangle = |block: usize| -> Vec<f32> {
            let entries = (0..d).flat_map(|row| (0..=row).map(move |column| (row, column)));
            entries
                .map(|(row, column)| g(block, row) * g(block, column) + f64::from(row == column))
                .map(|v| v as f32)
                .collect()
        };
        let triangles: Vec<Vec<f32>> = (0..count).map(triangle).collect();
        let blocks: Vec<&[f32]> = triangles.iter().map(Vec::as_slice).collect();
        let traces: f64 = (0..count).flat_map(|b| (0..d).map(move |r| g(b, r).powi(2) + 1.0)).sum();
        let damped = 1.0 + DAMPING * traces / (count * d) as f64;
        let preconditioner = Blocks::inverted(&blocks, 1, d).unwrap();
        // The last entry belongs to no block.
        let v: Vec<f64> = (0..count * d + 1).map(|i| (0.7 * i as f64).cos()).collect();
        let (mut first, mut second) = (v.clone(), v.iter().map(|v| -2.0 * v).collect::<Vec<_>>());
        preconditioner.apply([&mut first, &mut second]);
        assert_eq!((first[count * d], second[count * d]), (v[count * d], -2.0 * v[count * d]));
        let mut alone = v.clone();
        preconditioner.apply([&mut alone, &mut []]);
        assert!(alone.iter().zip(&first).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()));
        for block in 0..count {
            let along: f64 = (0..d).map(|r| g(block, r) * v[block * d + r]).sum();
            let squares: f64 = (0..d).map(|r| g(block, r).powi(2)).sum();
            for row in 0..d {
                let i = block * d + row;
                let expected =
                    (v[i] - g(block, row) * along / (damped + squares)) / damped * d as f64;
                assert!((first[i] - expected).abs() < 1e-3 * d as f64);
                assert!((second[i] + 2.0 * expected).abs() < 2e-3 * d as f64);
            }
        }
    }

    #[test]
    fn blocks_that_are_not_finite_have_no_inverse() {
        assert!(Blocks::inverted(&[&[4.0, f32::NAN, 3.0]], 1, 2).is_none());
        assert!(Blocks::inverted(&[&[0.0, 0.0, 0.0]], 1, 2).is_none());
    }
}
