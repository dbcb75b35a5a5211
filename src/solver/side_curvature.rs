//! Preconditioner for the weights of queries and keys that are projected from inputs: the curvature of the augmented
//! Lagrangian in these weights.
//!
//! With a query's block Bᵢ ([`curvature`](super::curvature)), the block of the weights is Σᵢ xᵢxᵢᵀ ⊗ Bᵢ over rows. It is
//! approximated by one Kronecker product A ⊗ B, as in Martens and Grosse (2015, arXiv 1503.05671), with rows weighted by their
//! curvature: A = Σ tr(Bᵢ)·xᵢxᵢᵀ and B = Σ Bᵢ, both scaled. Keys likewise.

use ndarray::{Array2, ArrayViewMut2, Axis, Zip};
use ndarray_linalg::InverseC;

use crate::numerics::blas::on_one_thread;
use crate::numerics::product;

/// Added to the diagonal of each factor, as a share of its mean.
const DAMPING: f64 = 0.1;

/// The inverses of the two factors of queries' weights and of keys'.
pub(super) struct Sides {
    /// Per side (r, r) and (d, d), in float32: a preconditioner is only an approximation.
    inverses: [[Array2<f32>; 2]; 2],
}

/// One side: A and B up to scale, and the mean diagonal of the curvature that their product approximates.
pub(super) struct Side {
    pub of_inputs: Array2<f64>,
    pub of_channels: Array2<f64>,
    pub mean: f64,
}

impl Sides {
    /// Returns `None` if a factor has no inverse.
    pub fn inverted(sides: [Side; 2]) -> Option<Self> {
        let [queries, keys] = sides.map(|side| {
            let rows = inverse(side.of_inputs)?;
            Some([rows, inverse(side.of_channels)?.mapv(|v| v / side.mean as f32)])
        });
        Some(Self { inverses: [queries?, keys?] })
    }

    /// v ← B⁻¹v for two vectors at once: A⁻¹·V·B⁻¹ for both sides. The second vector may be empty.
    pub fn apply(&self, mut both: [&mut [f64]; 2]) {
        let length = both[0].len() / 2;
        // The smallest gradients would underflow in float32, so each vector is divided by its largest entry.
        let scales = both.each_ref().map(|v| greatest(v));
        for (side, [rows, channels]) in self.inverses.iter().enumerate() {
            let (r, d) = (rows.nrows(), channels.nrows());
            let vectors = both.iter_mut().zip(scales).filter(|(v, _)| !v.is_empty());
            let mut vectors: Vec<(ArrayViewMut2<'_, f64>, f64)> = vectors
                .map(|(v, scale)| {
                    let v = &mut v[side * length..(side + 1) * length];
                    let v = ArrayViewMut2::from_shape((r, d), v);
                    (v.expect("a side has r·d weights"), scale)
                })
                .collect();
            // The vectors are placed next to each other, so that A⁻¹ is read once.
            let mut from = Array2::zeros((r, d * vectors.len()));
            for (mut to, (v, scale)) in from.axis_chunks_iter_mut(Axis(1), d).zip(&vectors) {
                Zip::from(&mut to).and(v).for_each(|to, v| *to = (v / scale) as f32);
            }
            let by_rows = product(rows.view(), from.view());
            for (from, (v, scale)) in by_rows.axis_chunks_iter(Axis(1), d).zip(&mut vectors) {
                let all = product(from, channels.view());
                Zip::from(v).and(&all).for_each(|to, &v| *to = f64::from(v) * *scale);
            }
        }
    }
}

/// The largest |entry|, at least the smallest positive normal number.
pub(super) fn greatest(v: &[f64]) -> f64 {
    v.iter().fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()))
}

/// The inverse of a factor scaled to a mean diagonal of 1 and damped.
fn inverse(mut factor: Array2<f64>) -> Option<Array2<f32>> {
    let mean = factor.diag().mean().filter(|mean| mean.is_finite() && *mean > 0.0)?;
    factor /= mean;
    factor.diag_mut().mapv_inplace(|v| v + DAMPING);
    let inverse = on_one_thread(|| factor.invc()).ok()?.mapv(|v| v as f32);
    inverse.iter().all(|v| v.is_finite()).then_some(inverse)
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayView2, arr2};

    use super::*;

    #[test]
    fn applying_it_inverts_both_damped_factors() {
        let side = |mean| Side {
            of_inputs: arr2(&[[4.0, 2.0, 0.0], [2.0, 8.0, 0.0], [0.0, 0.0, 6.0]]),
            of_channels: arr2(&[[1.0, 0.5], [0.5, 3.0]]),
            mean,
        };
        let sides = Sides::inverted([side(2.0), side(0.5)]).unwrap();
        let first = [1.0, -2.0, 0.5, 3.0, 4.0, -1.0];
        // Two vectors at once, and one alone.
        let v: Vec<f64> = first.iter().chain(&first).map(|v| 1e-60 * v).collect();
        let mut twice: Vec<f64> = v.iter().map(|v| 2.0 * v).collect();
        let (mut alone, mut v) = (v.clone(), v);
        sides.apply([&mut v, &mut twice]);
        sides.apply([&mut alone, &mut []]);
        for (v, (alone, twice)) in v.iter().zip(alone.iter().zip(&twice)) {
            assert!((v - alone).abs().max((v - 0.5 * twice).abs()) <= 1e-6 * v.abs(), "{v}");
        }
        // Scaled to a mean diagonal of 1 and damped by a tenth of it.
        let damped = |mut m: Array2<f64>| {
            m /= m.diag().mean().unwrap();
            m.diag_mut().mapv_inplace(|v| v + DAMPING);
            m
        };
        for (mean, v) in [2.0, 0.5].into_iter().zip(v.chunks(6)) {
            let Side { of_inputs, of_channels, .. } = side(mean);
            let found = ArrayView2::from_shape((3, 2), v).unwrap();
            let again = damped(of_inputs).dot(&found).dot(&damped(of_channels)) * mean;
            for (again, v) in again.iter().zip(first) {
                assert!((1e60 * again - v).abs() < 1e-5, "{again} against {v}");
            }
        }
        let singular = Side { of_inputs: Array2::zeros((3, 3)), ..side(1.0) };
        assert!(Sides::inverted([side(1.0), singular]).is_none());
    }
}
