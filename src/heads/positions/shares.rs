//! R² of forms: the share of a head's logits that functions of positions explain.

use super::covariance::Covariance;
use super::form::Form;
use super::rows::SeenRows;

/// The relative residual to which the normal equations are solved. The error of the share is of the order of its square.
const RESIDUAL: f64 = 1e-9;
/// The most products with their matrix.
const PRODUCTS: usize = 5000;

/// The least-squares fit of a form.
#[derive(Clone, Debug)]
pub(in super::super) struct Share {
    /// R² within rows; `None` if z is constant in every row.
    pub of_variance: Option<f64>,
    /// θ.
    pub theta: Vec<f64>,
    /// Whether the normal equations were solved.
    pub converged: bool,
}

impl SeenRows {
    /// Least-squares fit of z_ij = a_i + ẑ_ij(θ), with a free a_i in each row of each passage, one θ for all, and equal weight
    /// on every allowed pair. R² = 1 − Σ(z̃ − ẑ)²/Σz̃², both minus their row means. The normal equations are solved by
    /// conjugate gradients from θ = 0. If they do not converge, R² is that of the final θ, a lower bound on the best.
    pub fn share_of(&self, form: Form) -> Share {
        let centred = self.centred_logits();
        let tokens = self.tokens;
        let mut moments = vec![0.0; form.parameters(tokens)];
        let (mut masses, mut scales) = (Vec::with_capacity(centred.len()), Vec::new());
        for row in self.each() {
            let count = row.columns.len();
            form.gather(&centred[row.pairs()], tokens, &row, &mut moments);
            masses.extend(std::iter::repeat_n(1.0 / count as f64, count));
            scales.push(count as f64);
        }
        let normal = Covariance { rows: self, form, masses: &masses, scales: &scales };
        let solved = normal.solve(&moments, RESIDUAL, PRODUCTS);
        let mut of_row = vec![0.0; self.widest()];
        let mut left = 0.0;
        for row in self.each() {
            let z = &mut of_row[..row.columns.len()];
            form.logits(&solved.x, tokens, &row, z);
            let mean = mean(z);
            left += centred[row.pairs()]
                .iter()
                .zip(&*z)
                .map(|(c, z)| (c - z + mean).powi(2))
                .sum::<f64>();
        }
        let of_variance = share(left, squares(&centred));
        Share { of_variance, theta: solved.x, converged: solved.converged }
    }

    /// R² of z_ij = a_i + b_j, with b_j free in each passage: one score per key, added alike to every query. `passages` holds
    /// the rows of one passage each. Also returns whether all normal equations were solved. `None` if z is constant in every
    /// row.
    pub fn share_of_key_scores(passages: &[Self]) -> (Option<f64>, bool) {
        let (mut left, mut all, mut converged) = (0.0, 0.0, true);
        for passage in passages {
            let share = passage.share_of(Form::Position);
            let variation = squares(&passage.centred_logits());
            left += share.of_variance.map_or(0.0, |share| (1.0 - share) * variation);
            all += variation;
            converged &= share.converged;
        }
        (share(left, all), converged)
    }

    /// R² of z_ij = a_i + c_i j: a line with a slope of its own for each row.
    pub fn share_of_lines(&self) -> Option<f64> {
        let centred = self.centred_logits();
        let mut told = 0.0;
        for row in self.each() {
            let middle = 0.5 * (row.columns.len() as f64 - 1.0);
            let along = |at: usize| at as f64 - middle;
            let of_row = &centred[row.pairs()];
            let covariance: f64 = of_row.iter().enumerate().map(|(at, z)| along(at) * z).sum();
            let variance: f64 = (0..of_row.len()).map(|at| along(at).powi(2)).sum();
            if variance > 0.0 {
                told += covariance * covariance / variance;
            }
        }
        let all = squares(&centred);
        share(all - told, all)
    }

    /// z̃: the logits minus the mean of their row.
    fn centred_logits(&self) -> Vec<f64> {
        let mut centred = Vec::with_capacity(self.pairs());
        for row in self.each() {
            let mean = mean(row.logits);
            centred.extend(row.logits.iter().map(|z| z - mean));
        }
        centred
    }
}

fn share(left: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| (1.0 - left / all).clamp(0.0, 1.0))
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
