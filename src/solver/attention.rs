//! The attention of factors, row by row.

use ndarray::Array2;

use super::factors::Factors;
use super::problem::{FitError, Problem};

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
