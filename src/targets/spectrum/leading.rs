//! The leading singular values of a large target, by a randomised decomposition.

use std::num::NonZeroUsize;

use ndarray::{Array2, ArrayView1, ShapeBuilder, s};
use ndarray_linalg::error::LinalgError;
use ndarray_linalg::{QRInto, SVD};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use super::bounds::{Bounds, Known};
use super::exact::above_rounding;
use super::product::{Transpose, fourth_powers, times};
use crate::numerics::blas::on_one_thread;
use crate::numerics::product;
use crate::targets::{Target, TargetError};

/// Vectors carried beyond the k asked for (Halko, Martinsson and Tropp 2011, section 4.2: 5 or 10).
const OVERSAMPLING: usize = 10;
/// The iteration ends once none of the k values rises by more than this share of σ₁.
const STEADY: f64 = 1e-9;
/// Or after this many rounds: values packed closely together do not settle within any budget.
const MOST_ROUNDS: usize = 12;
/// The most entries of a block of vectors, n·(k + oversampling): 1 GiB, of which a few are held.
const MOST_ENTRIES: usize = 1 << 27;

/// The k leading singular values of a target, and what is known of the others.
///
/// Everything here holds up to rounding, whatever the spectrum; only how tight it is depends on
/// the spectrum's decay. What cannot be known from k values is given as bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeadingSpectrum {
    /// σ̂₁ ≥ … ≥ σ̂ₖ, the singular values of QᵀA for a Q of orthonormal columns; none is above the
    /// σⱼ in its place.
    pub singular_values: Vec<f64>,
    /// No σⱼ is above this: the least of √(σ̂ⱼ² + ‖A − QQᵀA‖_F²), √(‖A‖₁·‖A‖_∞) and ‖A‖_F/√j.
    pub at_most: Vec<f64>,
    /// ‖A·v̂ⱼ − σ̂ⱼûⱼ‖₂: so near σ̂ⱼ there is a singular value of A. It need not be the j-th where
    /// values are packed more closely than this.
    pub residuals: Vec<f64>,
    /// Σ_{j>k} σⱼ², what the best approximation of rank k lacks of ‖A‖_F². What the approximation
    /// found lacks, ‖A − Σ_{j≤k} σ̂ⱼûⱼv̂ⱼᵀ‖_F², is exactly the upper bound.
    pub tail_energy: Bounds<f64>,
    /// How many σ exceed n·ε·σ₁, as in [`Spectrum`](super::Spectrum): at least those found, at most
    /// the columns that have an entry.
    pub numerical_rank: Bounds<usize>,
    /// The effective rank, as in [`Spectrum`](super::Spectrum).
    pub effective_rank: Bounds<f64>,
    /// How often the basis was multiplied by AᵀA.
    pub rounds: usize,
}

impl LeadingSpectrum {
    /// The `count` leading singular values of `target`, or all where n is less.
    ///
    /// Subspace iteration from `count` + 10 normal vectors, orthonormalised by QR after each product
    /// (Halko, Martinsson and Tropp 2011, *Finding structure with randomness*, SIAM Review 53(2),
    /// algorithm 4.4), then the SVD of the projection QᵀA (algorithm 5.1), which costs no product of
    /// its own here: with AᵀQ = PR it is that of the small Rᵀ. The rounds q end when the values
    /// stand still, or at 12.
    ///
    /// Time O((nnz + n·k)·k·q), memory O(nnz + n·k). A function of target, count and seed, on any
    /// number of threads.
    ///
    /// # Errors
    /// `TooManySingularValues` where n·count is above 2²⁷ or so; `Decomposition` where LAPACK fails.
    pub fn of(target: &Target, count: NonZeroUsize, seed: u64) -> Result<Self, TargetError> {
        let n = target.n();
        let count = count.get().min(n);
        let width = (count + OVERSAMPLING).min(n);
        if n.saturating_mul(width) > MOST_ENTRIES {
            let most = (MOST_ENTRIES / n).saturating_sub(OVERSAMPLING);
            return Err(TargetError::TooManySingularValues { count, n, most });
        }
        // Where OpenBLAS splits a product depends on its threads, and rounding with it.
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

/// What the iteration ends with.
struct Found {
    /// σ̂ of every vector carried, descending.
    values: Vec<f64>,
    /// ‖A·v̂ − σ̂û‖₂ of the leading k.
    residuals: Vec<f64>,
    rounds: usize,
}

fn normals(n: usize, width: usize, seed: u64) -> Array2<f64> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((n, width), || StandardNormal.sample(&mut generator))
}

/// Subspace iteration from the block of vectors `start`, until its leading `count` values stand
/// still.
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

/// Q and R of a tall block. LAPACK's blocks are columns: of a block of rows it would take the far
/// slower LQ.
fn orthonormal(block: &Array2<f64>) -> Result<(Array2<f64>, Array2<f64>), LinalgError> {
    let mut columns = Array2::zeros(block.raw_dim().f());
    columns.assign(block);
    columns.qr_into()
}
