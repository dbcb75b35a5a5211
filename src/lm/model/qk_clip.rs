//! QK-clip: scales the queries and keys of heads with large logits.

use candle_core::{Tensor, Var};

use super::language_model::Model;
use crate::lm::attention::HeadStatistics;

impl Model {
    /// For each head whose largest logit S in `statistics` (by layer and head) exceeds `threshold`
    /// τ, scales its columns of W_Q and W_K by √(τ/S), so that the same input has a largest logit of τ.
    ///
    /// QK-Clip of Kimi K2 (arXiv 2507.20534), for heads without shared rotary keys.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub(in crate::lm) fn clip_queries_and_keys(
        &self,
        statistics: &[Vec<HeadStatistics>],
        threshold: f64,
    ) -> candle_core::Result<()> {
        let layers = self.shape.logged_layers();
        for layer in 0..self.shape.layers() {
            let of_layer = statistics.iter().zip(&layers).filter(|(_, block)| **block == layer);
            // All recursions of a block have the same weights.
            let mut largest = vec![threshold; self.shape.heads[layer].len()];
            for (head, found) in of_layer.flat_map(|(heads, _)| heads.iter().enumerate()) {
                largest[head] = largest[head].max(found.max_logit.into());
            }
            let factor = |largest: &f64| (threshold / largest).sqrt() as f32;
            let factors: Vec<f32> = largest.iter().map(factor).collect();
            if factors.iter().all(|&factor| factor == 1.0) {
                continue;
            }
            for part in ["query", "key"] {
                let name = format!("layers.{layer}.attention.{part}");
                scale_heads(self.matrix(&name)?, &factors)?;
            }
        }
        Ok(())
    }
}

/// Multiplies the columns of each head of a matrix by the factor of that head.
pub(super) fn scale_heads(weight: &Var, factors: &[f32]) -> candle_core::Result<()> {
    let (_, outputs) = weight.dims2()?;
    let d_head = outputs / factors.len();
    let columns = factors.iter().flat_map(|factor| std::iter::repeat_n(*factor, d_head));
    let columns = Tensor::from_iter(columns, weight.device())?;
    weight.set(&weight.as_detached_tensor().broadcast_mul(&columns)?)
}
