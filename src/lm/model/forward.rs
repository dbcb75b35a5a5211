//! What a forward pass gives.

use candle_core::{DType, Result, Tensor};

use crate::lm::attention::HeadStatistics;
use crate::lm::operators::{output_loss, tied_logits};

/// What a forward pass gives.
pub struct Forward {
    /// The residual stream after the last norm, (B·T, C), in the model's dtype.
    pub(super) hidden: Tensor,
    /// The token embedding E, (V, C), which is also the output's, in that dtype.
    pub(super) embedding: Tensor,
    /// Each layer's heads, (H, 3).
    pub(super) statistics: Vec<Tensor>,
}

impl Forward {
    /// Each layer's heads.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn heads(&self) -> Result<Vec<Vec<HeadStatistics>>> {
        HeadStatistics::of_layers(&self.statistics)
    }

    /// Logits of the next token, (B·T, V), float32.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn logits(&self) -> Result<Tensor> {
        tied_logits(&self.hidden, &self.embedding)?.to_dtype(DType::F32)
    }

    /// The mean cross-entropy against the tokens that came next, (B·T) of uint32, in nats.
    ///
    /// # Errors
    /// A number of targets other than B·T, or a target of V or more.
    pub fn loss(&self, targets: &Tensor) -> Result<f64> {
        let targets = targets.flatten_all()?;
        let found = output_loss(&self.hidden, &self.embedding, &targets, 0.0, false)?;
        found.cross_entropy.to_dtype(DType::F64)?.to_scalar()
    }
}
