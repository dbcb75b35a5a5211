//! The operator by itself, on random inputs: what a benchmark times.

use std::sync::{Arc, OnceLock};

use candle_core::{CustomOp3, Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Attention, Heads};
use crate::blas::single_threaded_blas;
use crate::lm::LmError;
use crate::lm::definition::require;
use crate::target::Layout;

/// Causal attention of one layer, softmax(QKᵀ/√D) V for each head of a layout, with standard normal
/// queries, keys, values and gradient of the output, (B, T, H, D) each.
pub struct AttentionEvaluator {
    heads: Heads,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    gradient: Tensor,
}

/// A forward pass, and what its backward pass needs.
pub struct AttentionPass<'a> {
    evaluator: &'a AttentionEvaluator,
    operator: Attention,
    output: Tensor,
}

impl AttentionEvaluator {
    /// Inputs of `batch` sequences of `time` tokens with heads of `d_head` channels, drawn from
    /// `seed`. With a softcap c the logits are c tanh(z/c).
    ///
    /// # Errors
    /// A softcap that is not above 0.
    pub fn new(
        layout: &Layout,
        (batch, time, d_head): (usize, usize, usize),
        softcap: Option<f32>,
        seed: u64,
    ) -> Result<Self, LmError> {
        if let Some(cap) = softcap {
            require(cap.is_finite() && cap > 0.0, "softcap", cap, "must be above 0")?;
        }
        single_threaded_blas();
        let shape = (batch, time, layout.heads().len(), d_head);
        let count = batch * time * layout.heads().len() * d_head;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || {
            let data: Vec<f32> = (0..count).map(|_| StandardNormal.sample(&mut rng)).collect();
            Tensor::from_vec(data, shape, &Device::Cpu)
        };
        Ok(Self {
            q: normal()?,
            k: normal()?,
            v: normal()?,
            gradient: normal()?,
            heads: Heads { kinds: layout.heads().into(), softcap },
        })
    }

    /// One forward pass.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn forward(&self) -> Result<AttentionPass<'_>, LmError> {
        let found = Arc::new(OnceLock::new());
        let operator = Attention { heads: self.heads.clone(), found };
        let output = self.q.apply_op3_no_bwd(&self.k, &self.v, &operator)?;
        Ok(AttentionPass { evaluator: self, operator, output })
    }
}

impl AttentionPass<'_> {
    /// The backward pass: the gradients of queries, keys and values.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn backward(&self) -> Result<[Tensor; 3], LmError> {
        let AttentionEvaluator { q, k, v, gradient, .. } = self.evaluator;
        match self.operator.bwd(q, k, v, &self.output, gradient)? {
            (Some(dq), Some(dk), Some(dv)) => Ok([dq, dk, dv]),
            _ => Err(candle_core::Error::Msg("attention gave no gradient".into()).into()),
        }
    }
}
