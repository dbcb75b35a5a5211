//! What a target looks like in numbers.

use ndarray_linalg::SVD;
use serde::Serialize;

use super::{Target, TargetError};

/// What the entries of a target A say, each in one number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The number of rows, and of columns.
    pub n: usize,
    /// Entries above 0.
    pub nonzeros: usize,
    /// Entries above 0, as a share of the visible pairs.
    pub density: f64,
    /// (1/n) Σᵢ H(Aᵢ), H(a) = −Σⱼ aⱼ log aⱼ, in nats.
    pub mean_row_entropy_nats: f64,
    /// (1/n) Σᵢⱼ aᵢⱼ |i − j|, in tokens: how far the weight reaches.
    pub mean_lag: f64,
    /// The largest |i − j| with aᵢⱼ > 0: the bandwidth of A.
    pub largest_lag: usize,
    /// tr A, the effective degrees of freedom of A as a linear smoother (Hastie, Tibshirani and
    /// Friedman 2009, *The Elements of Statistical Learning*, equation 7.32): n for the identity,
    /// 1 for uniform rows over all columns.
    pub degrees_of_freedom: f64,
}

impl Statistics {
    /// The statistics of `target`, in one pass over its entries.
    pub fn of(target: &Target) -> Self {
        let n = target.n();
        let (mut lags, mut trace, mut largest_lag) = (0.0, 0.0, 0);
        for row in 0..n {
            let (columns, probabilities) = target.row(row);
            for (&column, &p) in columns.iter().zip(probabilities) {
                let lag = row.abs_diff(column as usize);
                lags += p * lag as f64;
                largest_lag = largest_lag.max(lag);
                if lag == 0 {
                    trace += p;
                }
            }
        }
        Self {
            n,
            nonzeros: target.nonzeros(),
            density: target.nonzeros() as f64 / target.visibility().pairs(n) as f64,
            // Not a bare minus: the entropy of certain rows is 0, never -0.
            mean_row_entropy_nats: 0.0 - target.mean_log_likelihood_of_itself(),
            mean_lag: lags / n as f64,
            largest_lag,
            degrees_of_freedom: trace,
        }
    }
}

/// The singular values of a target, and what they say of its rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// σ₁ ≥ σ₂ ≥ … ≥ σₙ ≥ 0.
    pub singular_values: Vec<f64>,
    /// How many σ exceed n·ε·σ₁, ε being float64's: the rank to rounding (Press et al. 2007,
    /// *Numerical Recipes*, section 2.6).
    pub numerical_rank: usize,
    /// exp(−Σ pₖ log pₖ) with pₖ = σₖ/Σσ (Roy and Vetterli 2007, *The effective rank: a measure of
    /// effective dimensionality*, definition 1): n for the identity, 1 for equal rows.
    pub effective_rank: f64,
}

impl Spectrum {
    /// The largest n whose spectrum is computed; the dense decomposition takes O(n³).
    pub const LARGEST_N: usize = 4096;

    /// The spectrum of `target`, from LAPACK's SVD of the dense matrix.
    ///
    /// # Errors
    /// `SpectrumTooLarge` above [`Spectrum::LARGEST_N`]; `Decomposition` where LAPACK fails.
    pub fn of(target: &Target) -> Result<Self, TargetError> {
        let n = target.n();
        if n > Self::LARGEST_N {
            return Err(TargetError::SpectrumTooLarge { n, most: Self::LARGEST_N });
        }
        let (_, singular_values, _) = target
            .dense()
            .svd(false, false)
            .map_err(|error| TargetError::Decomposition(error.to_string()))?;
        Ok(Self::from_singular_values(singular_values.to_vec()))
    }

    fn from_singular_values(singular_values: Vec<f64>) -> Self {
        let sum: f64 = singular_values.iter().sum();
        let entropy: f64 = singular_values
            .iter()
            .map(|sigma| sigma / sum)
            .filter(|&p| p > 0.0)
            .map(|p| -p * p.ln())
            .sum();
        let largest = singular_values.first().copied().unwrap_or(0.0);
        let rounding = singular_values.len() as f64 * f64::EPSILON * largest;
        let numerical_rank = singular_values.iter().filter(|&&sigma| sigma > rounding).count();
        Self { singular_values, numerical_rank, effective_rank: entropy.exp() }
    }
}
