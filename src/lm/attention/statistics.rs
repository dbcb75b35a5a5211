//! Size of a head's logits.

use candle_core::{Device, Result, Tensor};

/// Statistics of one head in one forward pass, over the batch and all pairs that the mask allows. Logits are taken
/// after the factor 1/√d and before any softcap.
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
    /// The statistics before any pair was seen: infinite extremes and no entropy.
    pub(in crate::lm) const EMPTY: Self =
        Self { max_logit: f32::NEG_INFINITY, min_logit: f32::INFINITY, entropy_nats: 0.0 };

    /// The statistics of a layer's heads as a tensor, (H, 3).
    pub(in crate::lm) fn to_tensor(heads: &[Self], device: &Device) -> Result<Tensor> {
        let rows =
            heads.iter().flat_map(|head| [head.max_logit, head.min_logit, head.entropy_nats]);
        Tensor::from_iter(rows, device)?.reshape((heads.len(), 3))
    }

    /// The statistics of each layer's heads from tensors of shape (H, 3). With a GPU this waits for the numbers, once for all
    /// layers.
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
