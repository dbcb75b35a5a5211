//! Statistics of a target matrix.

use serde::Serialize;

use super::Target;

/// Summary statistics of the entries of a target A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The number of rows; it equals the number of columns.
    pub n: usize,
    /// Number of entries above 0.
    pub nonzeros: usize,
    /// Number of entries above 0, as a share of the allowed pairs.
    pub density: f64,
    /// (1/n) Σᵢ H(Aᵢ), H(a) = −Σⱼ aⱼ log aⱼ, in nats.
    pub mean_row_entropy_nats: f64,
    /// (1/n) Σᵢⱼ aᵢⱼ |i − j|, in tokens: the mean relative distance.
    pub mean_lag: f64,
    /// The largest |i − j| with aᵢⱼ > 0: the bandwidth of A.
    pub largest_lag: usize,
    /// tr A, the effective degrees of freedom of A as a linear smoother (Hastie, Tibshirani and
    /// Friedman 2009, *The Elements of Statistical Learning*, equation 7.32): n for the identity,
    /// 1 for uniform rows over all columns.
    pub degrees_of_freedom: f64,
    /// ‖A‖_F = √Σᵢⱼ aᵢⱼ² = √Σⱼ σⱼ².
    pub frobenius_norm: f64,
}

impl Statistics {
    /// Computes the statistics of `target` in one pass over its entries.
    pub fn of(target: &Target) -> Self {
        let n = target.n();
        let (mut lags, mut trace, mut energy, mut largest_lag) = (0.0, 0.0, 0.0, 0);
        for row in 0..n {
            let (columns, probabilities) = target.row(row);
            for (&column, &p) in columns.iter().zip(probabilities) {
                let lag = row.abs_diff(column as usize);
                lags += p * lag as f64;
                energy += p * p;
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
            // Subtracted from 0.0, not negated: a target of one-hot rows then has entropy 0, not −0.
            mean_row_entropy_nats: 0.0 - target.mean_log_likelihood_of_itself(),
            mean_lag: lags / n as f64,
            largest_lag,
            degrees_of_freedom: trace,
            frobenius_norm: f64::sqrt(energy),
        }
    }
}
