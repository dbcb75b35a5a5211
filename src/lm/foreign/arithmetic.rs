//! What a published transformer computes with, in float32.

use ndarray::{Array1, Array2, Axis, s};
use statrs::function::erf::erf;

use super::stored::Stored;
use crate::lm::LmError;
use crate::numerics::product;

/// √(2/π).
const SLOPE: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// x W + b. W is read from its file each time.
pub(super) struct Linear {
    pub(super) weights: Stored,
    /// Whether W is stored as outputs × inputs.
    pub(super) transposed: bool,
    /// b, outputs.
    pub(super) bias: Option<Array1<f32>>,
}

/// Whether a projection has a bias.
#[derive(Clone, Copy)]
pub(super) enum Bias {
    Always,
    Never,
    /// Where the files have one: not every configuration says so.
    WhereThere,
}

impl Bias {
    pub(super) fn given(there: bool) -> Self {
        if there { Self::Always } else { Self::Never }
    }
}

impl Linear {
    pub(super) fn of(&self, x: &Array2<f32>) -> Result<Array2<f32>, LmError> {
        let weights = self.weights.matrix()?;
        let weights = if self.transposed { weights.reversed_axes() } else { weights };
        let y = product(x.view(), weights.view());
        Ok(match &self.bias {
            Some(bias) => y + bias,
            None => y,
        })
    }
}

/// Each row normalised, times a gain.
#[derive(Clone)]
pub(super) struct Norm {
    pub(super) gain: Array1<f32>,
    pub(super) kind: NormKind,
    /// ε.
    pub(super) epsilon: f32,
}

#[derive(Clone)]
pub(super) enum NormKind {
    /// (x − mean)/√(variance + ε) ∘ gain + bias.
    Layer { bias: Array1<f32> },
    /// x/√(mean square + ε) ∘ gain (Zhang and Sennrich 2019, arXiv 1910.07467).
    RootMeanSquare,
}

impl Norm {
    pub(super) fn of(&self, mut x: Array2<f32>) -> Array2<f32> {
        match &self.kind {
            NormKind::Layer { bias } => {
                for mut row in x.rows_mut() {
                    let c = row.len() as f32;
                    row -= row.sum() / c;
                    // The mean is taken off first: published streams have channels far above the others, and the mean
                    // of squares less the square of the mean would lose digits there.
                    let variance = row.dot(&row) / c;
                    row /= (variance + self.epsilon).sqrt();
                }
                x * &self.gain + bias
            }
            NormKind::RootMeanSquare => {
                let scales = self.scales(&x);
                x * &scales.insert_axis(Axis(1)) * &self.gain
            }
        }
    }

    /// 1/√(mean square + ε) of each row.
    pub(super) fn scales(&self, x: &Array2<f32>) -> Array1<f32> {
        let of_row = |row: ndarray::ArrayView1<'_, f32>| {
            1.0 / (row.dot(&row) / row.len() as f32 + self.epsilon).sqrt()
        };
        x.rows().into_iter().map(of_row).collect()
    }
}

/// What is between the matrices of an MLP.
#[derive(Clone, Copy)]
pub(super) enum Activation {
    /// x Φ(x), with Φ the normal distribution function.
    Gelu,
    /// x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2.
    TanhGelu,
    /// x/(1 + e^(−x)).
    Silu,
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
            Self::Silu => x.mapv_into(|x| x / (1.0 + (-x).exp())),
        }
    }
}

/// A matrix with a column of ones after its own.
pub(super) fn with_ones(x: &Array2<f32>) -> Array2<f32> {
    let mut all = Array2::ones((x.nrows(), x.ncols() + 1));
    all.slice_mut(s![.., ..x.ncols()]).assign(x);
    all
}
