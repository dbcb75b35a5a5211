//! Logits X·C·Xᵀ of given inputs, C any matrix.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

use super::inputs::Inputs;
use super::varied::Made;
use crate::fit::factors::Factors;
use crate::numerics::{gemm, product};

/// W_q·W_kᵀ as any matrix C: keys are the inputs in their coordinates, the rank is their dimension, and a point is C
/// row by row, in which logits are linear.
pub(in crate::fit) struct AnyMatrix {
    inputs: Inputs,
}

impl AnyMatrix {
    pub(super) fn new(inputs: Inputs) -> Self {
        Self { inputs }
    }

    /// The rank of the factors.
    pub fn rank(&self) -> usize {
        self.inputs.dimension()
    }

    /// What queries (`side` = 0) or keys (1) are made of, (rows, rank).
    pub fn of_side(&self, side: usize) -> &Array2<f64> {
        self.inputs.of_side(side)
    }

    /// The point of factors that it makes, however they are scaled; none where LAPACK fails.
    pub fn matrix_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        let weights = |side: usize| {
            let m = [factors.queries(), factors.keys()][side];
            let rows = m.slice(s![0, ..self.of_side(side).nrows(), ..]).to_owned();
            self.inputs.nearest_weights(side, &rows)
        };
        let c = product(weights(0)?.view(), weights(1)?.t());
        Some(c.iter().copied().collect())
    }
}

impl Made for AnyMatrix {
    fn factors_length(&self) -> usize {
        2 * self.inputs.n() * self.rank()
    }

    fn write_factors(&self, x: &[f64], to: &mut [f64]) {
        let (made_of, d) = (self.of_side(0), self.rank());
        let (queries, keys) = to.split_at_mut(self.inputs.n() * d);
        let (queries, nobodys) = queries.split_at_mut(made_of.nrows() * d);
        nobodys.fill(0.0);
        let c = ArrayView2::from_shape((d, d), x).expect("a point is a matrix");
        let queries = ArrayViewMut2::from_shape((made_of.nrows(), d), queries);
        gemm(1.0, made_of.view(), c, 0.0, queries.expect("as many numbers"));
        keys.copy_from_slice(self.of_side(1).as_slice().expect("rows lie together"));
    }

    fn pull_back(&self, _: &[f64], of_factors: &[f64], to: &mut [f64]) {
        let (made_of, d) = (self.of_side(0), self.rank());
        let of_queries = &of_factors[..made_of.nrows() * d];
        let of_queries = ArrayView2::from_shape((made_of.nrows(), d), of_queries);
        let to = ArrayViewMut2::from_shape((d, d), to).expect("a point is a matrix");
        gemm(1.0, made_of.t(), of_queries.expect("as many numbers"), 0.0, to);
    }
}
