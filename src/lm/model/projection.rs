//! Matrices of a block: the values that multiply activations, and the gradients of the weights that they are computed from.

use candle_core::{DType, Result, Tensor};

use super::weights::{Gradients, ModelShape, Parameter, SINGULAR_VECTOR, Tensors};
use crate::lm::operators::spectrally_normalised;

/// A matrix, inputs × outputs, by which activations are multiplied.
pub(super) struct Projection {
    dtype: DType,
    pub(super) weight: Parameter,
    /// The gain γ and the singular vector, if the matrix is γ/σ(W) · W.
    spectral: Option<(Parameter, Tensor)>,
    ternary: bool,
}

/// Maps the gradient of a matrix to those of the weights from which it is computed.
pub(super) type FactorPullback = Box<dyn FnOnce(Tensor, &mut Gradients) -> Result<()>>;

/// A matrix by which activations are multiplied, and the backward pass to its weights.
pub(super) struct Factor {
    pub(super) matrix: Tensor,
    pub(super) pullback: FactorPullback,
}

/// γ · round(clip(W/γ, −1, 1)) with γ the mean of |W| (TriLM: Kaushal et al. 2024, arXiv 2407.12327). A matrix of zeros stays.
fn ternary(weight: &Tensor) -> Result<Tensor> {
    let scale = weight.abs()?.mean_all()?.to_scalar::<f32>()?;
    if scale == 0.0 {
        return Ok(weight.clone());
    }
    let scale = f64::from(scale);
    (weight / scale)?.clamp(-1f32, 1f32)?.round()? * scale
}

impl Projection {
    pub(super) fn new(shape: &ModelShape, name: &str, tensors: &Tensors) -> Result<Self> {
        let spectral = || -> Result<_> {
            let vector = tensors.vector(&format!("{name}{SINGULAR_VECTOR}"))?;
            Ok((tensors.parameter(&format!("{name}.gain"))?, vector))
        };
        Ok(Self {
            dtype: shape.dtype.of_tensors(),
            weight: tensors.parameter(name)?,
            spectral: shape.sigma_reparam.then(spectral).transpose()?,
            ternary: shape.ternary,
        })
    }

    pub(super) fn factor(&self) -> Result<Factor> {
        let weight = self.weight.clone();
        let Some((gain, vector)) = self.spectral.clone() else {
            // The gradient of ternary values is taken as that of the weights: a straight-through estimator.
            let values =
                if self.ternary { ternary(&weight.tensor)? } else { weight.tensor.clone() };
            return Ok(Factor {
                matrix: values.to_dtype(self.dtype)?,
                pullback: Box::new(move |d_matrix, gradients| gradients.add(&weight, d_matrix)),
            });
        };
        let (scaled, back) = spectrally_normalised(&weight.tensor, &gain.tensor, &vector)?;
        let pullback = move |d_matrix: Tensor, gradients: &mut Gradients| {
            let [d_weight, d_gain] = back(&d_matrix.to_dtype(DType::F32)?)?;
            gradients.add(&weight, d_weight)?;
            gradients.add(&gain, d_gain)
        };
        Ok(Factor { matrix: scaled.to_dtype(self.dtype)?, pullback: Box::new(pullback) })
    }
}
