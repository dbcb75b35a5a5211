//! The singular values of a target.

use ndarray::Array2;
use ndarray_linalg::SVD;
use serde::Serialize;

use crate::numerics::blas::on_one_thread;
use crate::targets::{Target, TargetError};

/// The singular values of a target and its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// σ₁ ≥ σ₂ ≥ … ≥ σₙ ≥ 0.
    pub singular_values: Vec<f64>,
    /// The number of σ above n·ε·σ₁, with ε of float64: the numerical rank (Press et al. 2007, *Numerical Recipes*, section
    /// 2.6).
    pub numerical_rank: usize,
    /// exp(−Σ pₖ log pₖ) with pₖ = σₖ/Σσ (Roy and Vetterli 2007, *The effective rank: a measure of
    /// effective dimensionality*, definition 1): n for the identity, 1 for equal rows.
    pub effective_rank: f64,
}

impl Spectrum {
    /// The largest n for which a spectrum is computed; the dense decomposition takes O(n³).
    pub const LARGEST_N: usize = 4096;

    /// The spectrum of `target`, from LAPACK's SVD of the dense matrix.
    ///
    /// # Errors
    /// n is above [`Spectrum::LARGEST_N`], or LAPACK fails.
    pub fn of(target: &Target) -> Result<Self, TargetError> {
        let n = target.n();
        if n > Self::LARGEST_N {
            let most = Self::LARGEST_N;
            return Err(TargetError::Other(format!(
                "singular values are limited to n = {most} (n is {n}); take a smaller matrix"
            )));
        }
        Self::of_matrix(&target.dense())
    }

    /// The spectrum of any square matrix.
    ///
    /// # Errors
    /// LAPACK fails.
    pub fn of_matrix(matrix: &Array2<f64>) -> Result<Self, TargetError> {
        let (_, singular_values, _) =
            on_one_thread(|| matrix.svd(false, false)).map_err(TargetError::decomposition)?;
        let singular_values = singular_values.to_vec();
        Ok(Self {
            numerical_rank: above_rounding(&singular_values, matrix.nrows()),
            effective_rank: effective_rank(&singular_values),
            singular_values,
        })
    }
}

/// The number of descending `singular_values` above n·ε·σ₁.
fn above_rounding(singular_values: &[f64], n: usize) -> usize {
    let largest = singular_values.first().copied().unwrap_or(0.0);
    let rounding = n as f64 * f64::EPSILON * largest;
    singular_values.iter().filter(|&&sigma| sigma > rounding).count()
}

fn effective_rank(singular_values: &[f64]) -> f64 {
    let sum: f64 = singular_values.iter().sum();
    let entropy: f64 = singular_values
        .iter()
        .map(|sigma| sigma / sum)
        .filter(|&p| p > 0.0)
        .map(|p| -p * p.ln())
        .sum();
    entropy.exp()
}
