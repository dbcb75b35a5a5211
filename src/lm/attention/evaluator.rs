//! The operator by itself, on random inputs: what a benchmark times.

use candle_core::{Tensor, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Heads, attention};
use crate::blas::single_threaded_blas;
use crate::lm::definition::require;
use crate::lm::{Device, Dtype, LmError};
use crate::target::Layout;

/// Causal attention of one layer, softmax(QKᵀ/√D) V for each head of a layout, with standard normal
/// queries, keys and values, (B, T, H, D) each.
pub struct AttentionEvaluator {
    heads: Heads,
    q: Var,
    k: Var,
    v: Var,
}

/// A forward pass, and what its backward pass needs.
pub struct AttentionPass<'a> {
    evaluator: &'a AttentionEvaluator,
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
            Var::from_vec(data, shape, &candle_core::Device::Cpu)
        };
        Ok(Self {
            q: normal()?,
            k: normal()?,
            v: normal()?,
            heads: Heads { kinds: layout.heads().into(), softcap },
        })
    }

    /// The same inputs on another device, rounded to a dtype.
    ///
    /// # Errors
    /// A device that this build or machine does not have.
    pub fn on(self, device: Device, dtype: Dtype) -> Result<Self, LmError> {
        let device = device.open()?;
        let moved = |x: Var| Var::from_tensor(&x.to_dtype(dtype.of_tensors())?.to_device(&device)?);
        Ok(Self { heads: self.heads, q: moved(self.q)?, k: moved(self.k)?, v: moved(self.v)? })
    }

    /// One forward pass, to its end.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn forward(&self) -> Result<AttentionPass<'_>, LmError> {
        let (output, _) = attention(&self.q, &self.k, &self.v, &self.heads)?;
        output.device().synchronize()?;
        Ok(AttentionPass { evaluator: self, output })
    }
}

impl AttentionPass<'_> {
    /// The backward pass, to its end: the gradients of queries, keys and values for one of the output
    /// that is 1 everywhere.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn backward(&self) -> Result<[Tensor; 3], LmError> {
        let AttentionEvaluator { q, k, v, .. } = self.evaluator;
        let mut found = self.output.backward()?;
        match (found.remove(q), found.remove(k), found.remove(v)) {
            (Some(dq), Some(dk), Some(dv)) => {
                dq.device().synchronize()?;
                Ok([dq, dk, dv])
            }
            _ => Err(candle_core::Error::Msg("attention gave no gradient".into()).into()),
        }
    }
}
