//! One fitting problem: a target, a rank, the heads that share it, and the arithmetic of its evaluation.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::Array2;
use serde::Serialize;

use super::error::FitError;
use super::factors::Factors;
use crate::system::check_memory;
use crate::targets::{Layout, Target};

/// The arithmetic of an evaluation. Vectors and sums over rows are float64 in both cases.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = FitError, parse_err_fn = unknown_precision)]
pub enum Precision {
    /// float32 logits and products: half the time and half the memory.
    F32,
    /// float64 throughout.
    #[default]
    F64,
}

/// The largest logit bound that a search without given factors tries. Logits of ±128 give a ratio of e^{256} between two
/// probabilities, far more than a float32 softmax distinguishes, so no larger bound is useful. Trained heads may have larger
/// logits, since a shift of a row's logits costs nothing. A search with given factors goes up to their largest logit.
pub const LARGEST_CAP: f64 = 128.0;

fn unknown_precision(text: &str) -> FitError {
    FitError::Other(format!("unknown precision {text:?}; give f32 or f64"))
}

/// A target to reproduce with H heads of rank d: minimise kl_nats(A ‖ Σₕ πₕ softmax(QₕKₕᵀ/√d)).
#[derive(Clone, Debug)]
pub struct Problem {
    target: Target,
    layout: Layout,
    rank: usize,
    /// Cached L⁰(ε) by the bits of ε, because a search requests it repeatedly.
    floors: Arc<Mutex<HashMap<u64, Option<f64>>>>,
}

impl Problem {
    /// Creates the problem.
    ///
    /// ```
    /// use rank_study::solver::Problem;
    /// use rank_study::targets::{Family, Visibility};
    ///
    /// let target = Family::PreviousToken { k: 1 }.build(8, 0, Visibility::Causal)?;
    /// let problem = Problem::new(target, "local:2+2xglobal".parse()?, 4)?;
    /// assert_eq!((problem.n(), problem.heads(), problem.rank()), (8, 3, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The rank is 0; `TooLarge`.
    pub fn new(target: Target, layout: Layout, rank: usize) -> Result<Self, FitError> {
        if rank == 0 {
            return Err(FitError::Other("rank must be at least 1".to_owned()));
        }
        let problem = Self { target, layout, rank, floors: Arc::default() };
        check_memory(problem.bytes_of_factors()).map_err(|room| {
            FitError::TooLarge(format!(
                "queries and keys of rank {rank} need {room}; lower the rank, the number of heads or n"
            ))
        })?;
        Ok(problem)
    }

    /// Memory of queries and keys in float64, in bytes.
    pub(super) fn bytes_of_factors(&self) -> f64 {
        2.0 * self.heads() as f64 * self.n() as f64 * self.rank as f64 * size_of::<f64>() as f64
    }

    /// The target A.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The heads.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The head dimension d.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The sequence length.
    pub fn n(&self) -> usize {
        self.target.n()
    }

    /// The number of fitted rows: n, unless the target holds a sample of them. Factors still have one query per column; queries
    /// after the first `rows()` are unused.
    pub fn rows(&self) -> usize {
        self.target.rows()
    }

    /// L⁰ at ε = `kl_nats`; computed by `found` once and then cached.
    pub(super) fn floor(&self, kl_nats: f64, found: impl FnOnce() -> Option<f64>) -> Option<f64> {
        let mut floors = self.floors.lock().unwrap_or_else(PoisonError::into_inner);
        *floors.entry(kl_nats.to_bits()).or_insert_with(found)
    }

    /// The number of heads H.
    pub fn heads(&self) -> usize {
        self.layout.heads().len()
    }

    /// The columns to which `row` may attend through head number `head`.
    pub(super) fn seen(&self, head: usize, row: usize) -> Range<usize> {
        self.target.seen(self.layout.heads()[head], row)
    }

    /// The columns to which any of `rows`, at least one, may attend through head number `head`. The first and the last allowed
    /// column never decrease from row to row.
    pub(super) fn seen_by_any(&self, head: usize, rows: &Range<usize>) -> Range<usize> {
        self.seen(head, rows.start).start..self.seen(head, rows.end - 1).end
    }

    /// Checks that factors have this problem's heads, n and rank.
    ///
    /// # Errors
    /// `OtherFactors`.
    pub fn check_factors(&self, factors: &Factors) -> Result<(), FitError> {
        let (found, wanted) = (factors.queries().dim(), (self.heads(), self.n(), self.rank));
        if found == wanted { Ok(()) } else { Err(FitError::OtherFactors { found, wanted }) }
    }

    /// Whether each entry of the target is allowed for some head; if not, kl_nats is infinite.
    pub fn covers_target(&self) -> bool {
        (0..self.rows()).all(|row| {
            self.target.row(row).0.iter().all(|&column| {
                self.layout
                    .heads()
                    .iter()
                    .any(|&kind| self.target.seen(kind, row).contains(&(column as usize)))
            })
        })
    }
}

/// Checks a logit bound.
///
/// # Errors
/// `Cap`.
pub fn check_cap(cap: f64) -> Result<(), FitError> {
    if cap.is_finite() && cap > 0.0 { Ok(()) } else { Err(FitError::Cap(cap)) }
}

/// Checks a tolerance.
///
/// # Errors
/// It is not a finite number above 0.
pub fn check_tolerance(tolerance: f64) -> Result<(), FitError> {
    match tolerance.is_finite() && tolerance > 0.0 {
        true => Ok(()),
        false => {
            Err(FitError::Other(format!("tolerance {tolerance} must be a finite number above 0")))
        }
    }
}

impl Problem {
    /// P = Σₕ πₕ softmax(QₕKₕᵀ/√d), n × n, with 0 where no head may attend; for figures and certificates.
    ///
    /// # Errors
    /// `OtherFactors` if the factors do not fit the problem.
    pub fn attention(&self, factors: &Factors) -> Result<Array2<f64>, FitError> {
        self.check_factors(factors)?;
        let mut attention = Array2::zeros((self.n(), self.n()));
        for (head, &kind) in self.layout().heads().iter().enumerate() {
            let logits = factors.logits(head);
            for row in 0..self.rows() {
                let seen = self.target().seen(kind, row);
                let z = &logits.row(self.target().position(row));
                let most = seen.clone().map(|j| z[j]).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = seen.clone().map(|j| (z[j] - most).exp()).sum();
                for j in seen {
                    attention[[self.target().position(row), j]] +=
                        factors.weights()[head] * (z[j] - most).exp() / sum;
                }
            }
        }
        Ok(attention)
    }

    /// KL(Aᵢ ‖ Pᵢ) = Σⱼ aᵢⱼ ln(aᵢⱼ/pᵢⱼ) of each row, in nats; kl_nats is their mean.
    pub fn kl_by_row(&self, attention: &Array2<f64>) -> Vec<f64> {
        let of_row = |row: usize| {
            let (columns, probabilities) = self.target().row(row);
            let position = self.target().position(row);
            let terms = columns.iter().zip(probabilities);
            terms.map(|(&j, a)| a * (a / attention[[position, j as usize]]).ln()).sum()
        };
        (0..self.rows()).map(of_row).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::solver::{Measured, Problem};
    use crate::targets::{Family, Visibility};

    /// The mean over the rows of this attention equals the reported kl_nats.
    #[test]
    fn the_mean_over_rows_is_kl_nats() {
        let band = Family::DirichletBand { window: 6, alpha: 1.0 };
        for visibility in [Visibility::Causal, Visibility::Bidirectional] {
            let target = band.build(20, 3, visibility).unwrap();
            let problem = Problem::new(target, "local:8+global".parse().unwrap(), 4).unwrap();
            let factors = crate::solver::start::random(&problem, 5.0, 1).unwrap();
            let attention = problem.attention(&factors).unwrap();
            for row in attention.rows() {
                assert!((row.sum() - 1.0).abs() < 1e-12);
            }
            let rows = problem.kl_by_row(&attention);
            let mean = rows.iter().sum::<f64>() / rows.len() as f64;
            let measured = Measured::of(&problem, &factors).unwrap().kl_nats;
            assert!((mean - measured).abs() < 1e-12, "{mean} and {measured}");
        }
    }
}
