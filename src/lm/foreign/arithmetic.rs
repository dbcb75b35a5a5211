//! What a published transformer computes with, in float32.

use ndarray::{Array1, Array2, ArrayView2, s};
use statrs::function::erf::erf;

use crate::numerics::{product, softmax};
use crate::pattern::Visibility;

/// √(2/π).
const SLOPE: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// x W + b.
pub(super) struct Linear {
    /// W, inputs × outputs.
    pub(super) weights: Array2<f32>,
    /// b, outputs.
    pub(super) bias: Array1<f32>,
}

impl Linear {
    pub(super) fn of(&self, x: &Array2<f32>) -> Array2<f32> {
        product(x.view(), self.weights.view()) + &self.bias
    }
}

/// (x − mean)/√(variance + ε) ∘ gain + bias of each row.
pub(super) struct Norm {
    pub(super) gain: Array1<f32>,
    pub(super) bias: Array1<f32>,
    /// ε.
    pub(super) epsilon: f32,
}

impl Norm {
    pub(super) fn of(&self, mut x: Array2<f32>) -> Array2<f32> {
        for mut row in x.rows_mut() {
            let c = row.len() as f32;
            row -= row.sum() / c;
            // The mean is taken off first: published streams have channels far above the others, and the mean of
            // squares less the square of the mean would lose digits there.
            let variance = row.dot(&row) / c;
            row /= (variance + self.epsilon).sqrt();
        }
        x * &self.gain + &self.bias
    }
}

/// What is between the two matrices of an MLP.
#[derive(Clone, Copy)]
pub(super) enum Activation {
    /// x Φ(x), with Φ the normal distribution function.
    Gelu,
    /// x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2.
    TanhGelu,
}

impl Activation {
    pub(super) fn of(self, x: Array2<f32>) -> Array2<f32> {
        match self {
            Self::Gelu => x.mapv_into(|x| {
                let x = f64::from(x);
                (0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))) as f32
            }),
            Self::TanhGelu => x.mapv_into(|x| {
                let u = SLOPE * (x + CUBIC * x * x * x);
                0.5 * x * (1.0 + u.tanh())
            }),
        }
    }
}

/// softmax(QKᵀ/√d) V of one head, with queries, keys and values (T, d).
pub(super) fn attend(
    [queries, keys, values]: [ArrayView2<'_, f32>; 3],
    visibility: Visibility,
) -> Array2<f32> {
    let (t, d) = queries.dim();
    let mut p = product(queries, keys.t()) / (d as f32).sqrt();
    for (row, p) in p.rows_mut().into_iter().enumerate() {
        softmax(p, visibility.columns(row, t));
    }
    product(p.view(), values)
}

/// A matrix with a column of ones after its own.
pub(super) fn with_ones(x: &Array2<f32>) -> Array2<f32> {
    let mut all = Array2::ones((x.nrows(), x.ncols() + 1));
    all.slice_mut(s![.., ..x.ncols()]).assign(x);
    all
}
