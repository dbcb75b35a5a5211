//! What a forward pass gives.

use candle_core::{DType, Device, Result, Tensor};

use crate::lm::operators::{output_loss, tied_logits};

/// One head's logits in one forward pass, over the batch and all visible pairs; logits are taken
/// after the 1/√d, before any softcap, and are in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadStatistics {
    /// The largest logit.
    pub max_logit: f32,
    /// The smallest logit.
    pub min_logit: f32,
    /// Mean over rows of −Σ p ln p, in nats.
    pub entropy_nats: f32,
}

impl HeadStatistics {
    /// The statistics of no pairs at all.
    pub(in crate::lm) const EMPTY: Self =
        Self { max_logit: f32::NEG_INFINITY, min_logit: f32::INFINITY, entropy_nats: 0.0 };

    /// A layer's heads, (H, 3).
    pub(in crate::lm) fn to_tensor(heads: &[Self], device: &Device) -> Result<Tensor> {
        let rows =
            heads.iter().flat_map(|head| [head.max_logit, head.min_logit, head.entropy_nats]);
        Tensor::from_iter(rows, device)?.reshape((heads.len(), 3))
    }

    /// The heads of each layer, from its (H, 3). On a device of its own the numbers are waited for here,
    /// once for all layers.
    pub(in crate::lm) fn of_layers(layers: &[Tensor]) -> Result<Vec<Vec<Self>>> {
        let rows = Tensor::stack(layers, 0)?.to_vec3::<f32>()?;
        let head =
            |row: Vec<f32>| Self { max_logit: row[0], min_logit: row[1], entropy_nats: row[2] };
        Ok(rows.into_iter().map(|layer| layer.into_iter().map(head).collect()).collect())
    }

    /// The largest absolute logit.
    pub fn max_abs_logit(&self) -> f32 {
        self.max_logit.max(-self.min_logit)
    }
}

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
