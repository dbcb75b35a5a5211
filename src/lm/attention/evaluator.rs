//! The attention operator alone, on random inputs, for benchmarks.

use candle_core::Tensor;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::attention;
use super::heads::{Attended, Heads};
use crate::lm::error::require;
use crate::lm::{Device, Dtype, LmError, memory_estimate};
use crate::targets::Layout;

/// Causal attention of one layer, softmax(QKᵀ/√D) V for each head of a layout. Queries, keys, values and the gradient of
/// the output are standard normal, each of shape (B, T, H, D).
pub struct AttentionEvaluator {
    heads: Heads,
    /// Queries, keys, values and the gradient of the output.
    tensors: [Tensor; 4],
}

impl AttentionEvaluator {
    /// Draws inputs for `batch` sequences of `time` tokens with d_head = `d_head` from `seed`. With a softcap c the logits are
    /// c tanh(z/c).
    ///
    /// # Errors
    /// A softcap that is not above 0, or inputs that do not fit into the machine's memory.
    pub fn new(
        layout: &Layout,
        (batch, time, d_head): (usize, usize, usize),
        softcap: Option<f32>,
        seed: u64,
    ) -> Result<Self, LmError> {
        if let Some(cap) = softcap {
            require(cap.is_finite() && cap > 0.0, "softcap", cap, "must be above 0")?;
        }
        let shape = (batch, time, layout.heads().len(), d_head);
        let all = [batch, time, layout.heads().len(), d_head].map(|size| size as f64);
        // Each tensor also has a gradient.
        let bytes = 2.0 * 4.0 * size_of::<f32>() as f64 * all.iter().product::<f64>();
        memory_estimate::check(
            "queries, keys, values and the output need",
            bytes,
            "batch, context or d_head",
        )?;
        let count = batch * time * layout.heads().len() * d_head;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || {
            let data: Vec<f32> = (0..count).map(|_| StandardNormal.sample(&mut rng)).collect();
            Tensor::from_vec(data, shape, &candle_core::Device::Cpu)
        };
        let tensors = [normal()?, normal()?, normal()?, normal()?];
        Ok(Self { heads: Heads::new(layout.heads(), softcap), tensors })
    }

    /// Moves the inputs to another device and rounds them to a dtype.
    ///
    /// # Errors
    /// A device that this build or machine does not have.
    pub fn on(mut self, device: Device, dtype: Dtype) -> Result<Self, LmError> {
        let device = device.open()?;
        for tensor in &mut self.tensors {
            *tensor = tensor.to_dtype(dtype.of_tensors())?.to_device(&device)?;
        }
        Ok(self)
    }

    /// Runs one forward pass and waits until it ends. Returns the backward pass, which waits too and returns the gradients of
    /// queries, keys and values.
    ///
    /// # Errors
    /// Only errors of the tensor library, of either pass.
    pub fn forward(&self) -> Result<impl FnOnce() -> Result<[Tensor; 3], LmError>, LmError> {
        let [q, k, v, gradient] = &self.tensors;
        let Attended { output, pullback, .. } = attention(q, k, v, None, &self.heads)?;
        output.device().synchronize()?;
        Ok(move || {
            let gradients = pullback(gradient)?.heads;
            gradients[0].device().synchronize()?;
            Ok(gradients)
        })
    }
}
