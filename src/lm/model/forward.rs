//! What a forward pass gives.

use candle_core::{Result, Tensor};

use crate::lm::operators::{Stored, linear, output_loss};

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

    /// The largest absolute logit.
    pub fn max_abs_logit(&self) -> f32 {
        self.max_logit.max(-self.min_logit)
    }
}

/// What a forward pass gives.
pub struct Forward {
    /// The residual stream after the last norm, (B·T, C).
    pub(super) hidden: Tensor,
    /// The token embedding E, (V, C), which is also the output's.
    pub(super) embedding: Tensor,
    /// Each layer's heads.
    pub heads: Vec<Vec<HeadStatistics>>,
}

impl Forward {
    /// Logits of the next token, (B·T, V).
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn logits(&self) -> Result<Tensor> {
        linear(&self.hidden, &self.embedding, Stored::OutputsByInputs)
    }

    /// The mean cross-entropy against the tokens that came next, (B·T) of uint32, in nats.
    ///
    /// # Errors
    /// A number of targets other than B·T, or a target of V or more.
    pub fn loss(&self, targets: &Tensor) -> Result<Tensor> {
        Ok(self.objective(targets, 0.0)?.0)
    }

    /// What training minimises, cross-entropy + `z_loss` · mean (log Z)², and the cross-entropy
    /// alone in nats. The logits are never held all at once.
    ///
    /// # Errors
    /// As [`Self::loss`].
    pub(in crate::lm) fn objective(&self, targets: &Tensor, z_loss: f64) -> Result<(Tensor, f64)> {
        output_loss(&self.hidden, &self.embedding, &targets.flatten_all()?, z_loss)
    }
}
