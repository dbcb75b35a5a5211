//! The parametrisation of logits X·C·Xᵀ of given inputs by any matrix C.

use std::borrow::Cow;

use ndarray::{ArrayView2, ArrayViewMut2};

use super::inputs::Inputs;
use super::varied::Varied;
use crate::numerics::{gemm, product};
use crate::solver::factors::Factors;

/// W_q·W_kᵀ as any matrix C. Keys are the coordinates of the inputs, the rank is their dimension, and a point is C row by row;
/// logits are linear in it.
pub(in crate::solver) struct AnyMatrix {
    pub inputs: Inputs,
}

impl AnyMatrix {
    /// The point of factors of any rank and scale that this parametrisation can produce, or otherwise the point of the nearest
    /// ones. Returns `None` if LAPACK fails.
    pub fn matrix_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        let weights = |side| self.inputs.nearest_weights(side, &self.inputs.rows_of(side, factors));
        // The logits of a point are divided by the root of the inputs' dimension, those of factors by the root of their rank.
        let scale = (self.inputs.dimension() as f64 / factors.rank() as f64).sqrt();
        let c = product(weights(0)?.view(), weights(1)?.t()) * scale;
        Some(c.iter().copied().collect())
    }
}

impl Varied for AnyMatrix {
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]> {
        let (n, d, made_of) = (self.inputs.n(), self.inputs.dimension(), self.inputs.of_side(0));
        let mut factors = vec![0.0; 2 * n * d];
        let (queries, keys) = factors.split_at_mut(n * d);
        let c = ArrayView2::from_shape((d, d), x).expect("a point is a matrix");
        let queries = ArrayViewMut2::from_shape(made_of.dim(), &mut queries[..made_of.len()]);
        gemm(1.0, made_of.view(), c, 0.0, queries.expect("as many numbers"));
        keys.copy_from_slice(self.inputs.of_side(1).as_slice().expect("rows lie together"));
        Cow::Owned(factors)
    }

    fn pull_back(&self, _: &[f64], of_factors: &[f64], to: &mut [f64]) {
        let (d, made_of) = (self.inputs.dimension(), self.inputs.of_side(0));
        let of_queries = ArrayView2::from_shape(made_of.dim(), &of_factors[..made_of.len()]);
        let to = ArrayViewMut2::from_shape((d, d), to).expect("a point is a matrix");
        gemm(1.0, made_of.t(), of_queries.expect("as many numbers"), 0.0, to);
    }
}
