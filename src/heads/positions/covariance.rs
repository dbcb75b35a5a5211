//! Covariances of a form's parameters: the matrix of its normal equations and the Hessian of its divergence; and conjugate
//! gradients, which solve with it.

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
    /// Solves C·θ = `b`, with b in C's range, by conjugate gradients preconditioned by C's diagonal (Hestenes and Stiefel 1952;
    /// Nocedal and Wright, *Numerical Optimization*, algorithm 5.3). θ has no component in the null space of C. Ends when the
    /// preconditioned residual is `tolerance` times that of θ = 0, or after `most` products. Also returns whether the residual
    /// reached the tolerance.
    pub fn solve(&self, b: &[f64], tolerance: f64, most: usize) -> (Vec<f64>, bool) {
        let mut row_of = vec![0.0; self.rows.widest()];
        // A variable on which nothing depends has a diagonal of 0 and no equation.
        let diagonal = self.diagonal();
        let least = f64::EPSILON * diagonal.iter().copied().fold(0.0, f64::max);
        let inverse: Vec<f64> =
            diagonal.iter().map(|&d| if d > least { 1.0 / d } else { 0.0 }).collect();
        let scaled =
            |r: &[f64]| -> Vec<f64> { r.iter().zip(&inverse).map(|(r, d)| r * d).collect() };
        let mut x = vec![0.0; b.len()];
        let mut residual = b.to_vec();
        let mut z = scaled(&residual);
        let mut direction = z.clone();
        let mut along = dot(&residual, &z);
        let goal = tolerance * tolerance * along;
        let mut image = vec![0.0; b.len()];
        for _ in 0..most {
            if along <= goal {
                return (x, true);
            }
            self.product(&direction, &mut row_of, &mut image);
            let curvature = dot(&direction, &image);
            if curvature <= 0.0 {
                // The rest of the residual is rounding.
                return (x, false);
            }
            let step = along / curvature;
            for ((x, r), (d, a)) in
                x.iter_mut().zip(&mut residual).zip(direction.iter().zip(&image))
            {
                *x += step * d;
                *r -= step * a;
            }
            z = scaled(&residual);
            let before = std::mem::replace(&mut along, dot(&residual, &z));
            for (d, z) in direction.iter_mut().zip(&z) {
                *d = z + along / before * *d;
            }
        }
        (x, along <= goal)
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

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
