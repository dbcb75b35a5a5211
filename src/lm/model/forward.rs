//! What a forward pass gives.

use candle_core::{DType, Result, Tensor};

use crate::lm::attention::HeadStatistics;
use crate::lm::objective::Batch;
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

    /// The mean cross-entropy of what is predicted of the batch that was read, in nats.
    pub(in crate::lm) fn loss_of(&self, batch: &Batch) -> Result<f64> {
        let asked = batch.of_rows(&self.hidden)?;
        let found = output_loss(&asked, &self.embedding, &batch.targets, 0.0, false)?;
        found.cross_entropy.to_dtype(DType::F64)?.to_scalar()
    }

    /// Logits of the next token, or of a masked one in its place, (B·T, V), float32.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn logits(&self) -> Result<Tensor> {
        tied_logits(&self.hidden, &self.embedding)?.to_dtype(DType::F32)
    }
}
