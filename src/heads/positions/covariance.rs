//! Covariances of a form's parameters: the matrix of its normal equations and the Hessian of its divergence.

use super::conjugate_gradients::{Solved, solve};
use super::form::Form;
use super::rows::SeenRows;

/// C = Σ_i scale_i Σ_j m_ij (x_ij − x̄_i)(x_ij − x̄_i)ᵀ with x_ij = ∂ẑ_ij/∂θ, masses m that sum to one in each row, and x̄_i
/// their mean. It is never stored: a product visits each allowed pair twice.
pub(super) struct Covariance<'a> {
    pub rows: &'a SeenRows,
    pub form: Form,
    /// m_ij, row by row.
    pub masses: &'a [f64],
    /// scale_i.
    pub scales: &'a [f64],
}

impl Covariance<'_> {
    /// Solves C·θ = `b`; see [`solve`] for the arguments.
    pub fn solve(&self, b: &[f64], tolerance: f64, most: usize) -> Solved {
        let mut row_of = vec![0.0; self.rows.widest()];
        let product = |v: &[f64], into: &mut [f64]| self.product(v, &mut row_of, into);
        solve(product, b, &self.diagonal(), tolerance, most)
    }

    fn product(&self, v: &[f64], row_of: &mut [f64], into: &mut [f64]) {
        let Self { rows, form, masses, scales } = *self;
        into.fill(0.0);
        for (row, &scale) in rows.each().zip(scales) {
            let masses = &masses[row.pairs()];
            let z = &mut row_of[..masses.len()];
            form.logits(v, rows.tokens, &row, z);
            let mean: f64 = masses.iter().zip(&*z).map(|(m, z)| m * z).sum();
            for (z, m) in z.iter_mut().zip(masses) {
                *z = scale * m * (*z - mean);
            }
            form.gather(z, rows.tokens, &row, into);
        }
    }

    fn diagonal(&self) -> Vec<f64> {
        let Self { rows, form, masses, scales } = *self;
        let mut diagonal = vec![0.0; form.parameters(rows.tokens)];
        for (row, &scale) in rows.each().zip(scales) {
            let masses = &masses[row.pairs()];
            form.gather_variances(masses, scale, rows.tokens, &row, &mut diagonal);
        }
        diagonal
    }
}
