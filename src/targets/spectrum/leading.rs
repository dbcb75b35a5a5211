//! The leading singular values of a large target, by a randomised decomposition.

use std::num::NonZeroUsize;

use ndarray::{Array2, ArrayView1, ShapeBuilder, s};
use ndarray_linalg::error::LinalgError;
use ndarray_linalg::{QRInto, SVD};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use super::above_rounding;
use super::bounds::{Bounds, Known};
use super::product::{Transpose, fourth_powers, times};
use crate::numerics::blas::on_one_thread;
use crate::numerics::product;
use crate::targets::{Target, TargetError};

/// Number of vectors beyond the requested k (Halko, Martinsson and Tropp 2011, section 4.2: 5 or 10).
const OVERSAMPLING: usize = 10;
/// The iteration ends if none of the k values rises by more than this share of σ₁ in one round.
const STEADY: f64 = 1e-9;
/// The iteration also ends after this number of rounds, because closely spaced values do not converge within any budget.
const MOST_ROUNDS: usize = 12;
/// The most entries of a block of vectors, n·(k + oversampling): 1 GiB. A few blocks are in memory at a time.
const MOST_ENTRIES: usize = 1 << 27;

/// The k leading singular values of a target, and bounds on the others.
///
/// Everything here is exact up to rounding for any spectrum. Only the tightness of the bounds depends on how fast the spectrum
/// decays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeadingSpectrum {
    /// σ̂₁ ≥ … ≥ σ̂ₖ, the singular values of QᵀA for a Q with orthonormal columns; σ̂ⱼ ≤ σⱼ.
    pub singular_values: Vec<f64>,
    /// Upper bound on each σⱼ: the minimum of √(σ̂ⱼ² + ‖A − QQᵀA‖_F²), √(‖A‖₁·‖A‖_∞) and ‖A‖_F/√j.
    pub at_most: Vec<f64>,
    /// ‖A·v̂ⱼ − σ̂ⱼûⱼ‖₂: A has a singular value within this distance of σ̂ⱼ. It need not be the j-th if values lie closer
    /// together than this.
    pub residuals: Vec<f64>,
    /// Σ_{j>k} σⱼ², the squared error of the best approximation of rank k. The upper bound is exactly the squared error of the
    /// computed approximation, ‖A − Σ_{j≤k} σ̂ⱼûⱼv̂ⱼᵀ‖_F².
    pub tail_energy: Bounds<f64>,
    /// The number of σ above n·ε·σ₁, as in [`Spectrum`](super::Spectrum): at least the computed ones, at most the number of
    /// columns with an entry.
    pub numerical_rank: Bounds<usize>,
    /// The effective rank, as in [`Spectrum`](super::Spectrum).
    pub effective_rank: Bounds<f64>,
    /// The number of multiplications of the basis by AᵀA.
    pub rounds: usize,
}

impl LeadingSpectrum {
    /// The `count` leading singular values of `target`, or all if n is smaller.
    ///
    /// Subspace iteration from `count` + 10 normal vectors, orthonormalised by QR after each product (Halko, Martinsson and
    /// Tropp 2011, *Finding structure with randomness*, SIAM Review 53(2), algorithm 4.4), followed by the SVD of the
    /// projection QᵀA (algorithm 5.1). That SVD needs no further product: with AᵀQ = PR it is the SVD of the small Rᵀ. The q
    /// rounds end when the values no longer change, or after 12.
    ///
    /// Takes time O((nnz + n·k)·k·q) and memory O(nnz + n·k). The result depends on target, count and seed, not on the number
    /// of threads.
    ///
    /// # Errors
    /// `TooManySingularValues` if n·(count + 10) is above 2²⁷; `Decomposition` if LAPACK fails.
    pub fn of(target: &Target, count: NonZeroUsize, seed: u64) -> Result<Self, TargetError> {
        let n = target.n();
        let count = count.get().min(n);
        let width = (count + OVERSAMPLING).min(n);
        if n.saturating_mul(width) > MOST_ENTRIES {
            let most = (MOST_ENTRIES / n).saturating_sub(OVERSAMPLING);
            return Err(TargetError::TooManySingularValues { count, n, most });
        }
        // OpenBLAS splits a product differently for each number of threads, which changes its rounding; hence one thread.
        let transpose = Transpose::of(target);
        let start = normals(n, width, seed);
        let found = on_one_thread(|| iterate(target, &transpose, count, start))
            .map_err(|error| TargetError::Decomposition(error.to_string()))?;
        let iteration = (target.nonzeros() + n * width).saturating_mul(width * found.rounds);
        let fourth_powers = fourth_powers(target, &transpose, iteration / 4);
        let known = Known::new(target, &transpose, &found.values, count, fourth_powers);
        let (columns, _) = transpose.columns_in_use();
        Ok(Self {
            numerical_rank: Bounds {
                at_least: above_rounding(&found.values, n).min(columns),
                at_most: columns,
            },
            tail_energy: known.tail_energy(),
            effective_rank: known.effective_rank(),
            at_most: known.at_most,
            singular_values: found.values[..count].to_vec(),
            residuals: found.residuals,
            rounds: found.rounds,
        })
    }
}

/// The result of the iteration.
struct Found {
    /// σ̂ of all vectors, including those of the oversampling, descending.
    values: Vec<f64>,
    /// ‖A·v̂ − σ̂û‖₂ of the leading k vectors.
    residuals: Vec<f64>,
    rounds: usize,
}

fn normals(n: usize, width: usize, seed: u64) -> Array2<f64> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((n, width), || StandardNormal.sample(&mut generator))
}

/// Subspace iteration from the block of vectors `start`, until its leading `count` values no longer change.
fn iterate(
    target: &Target,
    transpose: &Transpose,
    count: usize,
    start: Array2<f64>,
) -> Result<Found, LinalgError> {
    let mut vectors = start;
    let mut before = vec![0.0; count];
    let mut rounds = 0;
    loop {
        rounds += 1;
        let (left, _) = orthonormal(&times(target, &vectors))?;
        let (right, triangle) = orthonormal(&transpose.times(&left))?;
        let (u, values, vt) = triangle.t().svd(true, true)?;
        let values = values.to_vec();
        let largest = values.iter().copied().fold(0.0, f64::max);
        let mut asked = before.iter().zip(&values[..count]);
        let steady = asked.all(|(before, now)| now - before <= STEADY * largest);
        let (Some(u), Some(vt), true) = (u, vt, steady || rounds == MOST_ROUNDS) else {
            before = values;
            vectors = right;
            continue;
        };
        let left = product(left.view(), u.slice(s![.., ..count]));
        let right = product(right.view(), vt.slice(s![..count, ..]).reversed_axes());
        let sigma = ArrayView1::from(&values[..count]);
        let missed = times(target, &right) - left * sigma;
        let residuals = missed.columns().into_iter().map(|column| column.dot(&column).sqrt());
        return Ok(Found { residuals: residuals.collect(), values, rounds });
    }
}

/// Q and R of a tall block. The block is copied to column-major order: for row-major blocks LAPACK would compute the far slower
/// LQ.
fn orthonormal(block: &Array2<f64>) -> Result<(Array2<f64>, Array2<f64>), LinalgError> {
    let mut columns = Array2::zeros(block.raw_dim().f());
    columns.assign(block);
    columns.qr_into()
}
