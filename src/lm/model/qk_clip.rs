//! QK-Clip: heads whose logits grew too large have their queries' and keys' weights scaled down.

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, bail};

use super::language_model::Model;
use crate::lm::attention::HeadStatistics;

impl Model {
    /// For each head whose largest logit S in `statistics` (by layer and head) exceeds `threshold`
    /// τ, scales its columns of W_Q and of W_K by √(τ/S), so that the same input would give it τ.
    ///
    /// Kimi K2 (arXiv 2507.20534), the case without shared rotary keys.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub(in crate::lm) fn clip_queries_and_keys(
        &self,
        statistics: &[Vec<HeadStatistics>],
        threshold: f64,
    ) -> Result<()> {
        for (layer, heads) in statistics.iter().enumerate() {
            let factor = |head: &HeadStatistics| {
                (threshold / f64::from(head.max_logit).max(threshold)).sqrt() as f32
            };
            let factors: Vec<f32> = heads.iter().map(factor).collect();
            if factors.iter().all(|&factor| factor == 1.0) {
                continue;
            }
            for part in ["query", "key"] {
                let name = format!("layers.{layer}.attention.{part}");
                let weight = self.matrix(&name)?;
                #[cfg(feature = "cuda")]
                if weight.device().is_cuda() {
                    crate::lm::cuda::scale_heads(weight, &factors)?;
                    continue;
                }
                weight.inplace_op1(&ScaleHeads(&factors))?;
            }
        }
        Ok(())
    }
}

/// Multiplies the columns of each head by that head's factor.
pub(super) struct ScaleHeads<'a>(pub(super) &'a [f32]);

impl InplaceOp1 for ScaleHeads<'_> {
    fn name(&self) -> &'static str {
        "scale-heads"
    }

    fn cpu_fwd(&self, weight: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_, outputs) = layout.shape().dims2()?;
        let (CpuStorage::F32(weight), Some((start, end))) = (weight, layout.contiguous_offsets())
        else {
            bail!("qk-clip: a weight is not contiguous float32");
        };
        let d_head = outputs / self.0.len();
        for row in weight[start..end].chunks_mut(outputs) {
            for (head, factor) in row.chunks_mut(d_head).zip(self.0) {
                head.iter_mut().for_each(|x| *x *= factor);
            }
        }
        Ok(())
    }
}
