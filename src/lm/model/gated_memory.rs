//! The mixer of Gated Associative Memory in the place of attention: a causal convolution and a learned memory, both gated.

use candle_core::{D, DType, Result, Tensor, bail};

use super::weights::{BlockPass, BlockPullback, Gradients, ModelShape, Parameter, TAPS, Tensors};
use crate::lm::operators::{
    layer_norm, linear, sigmoid, slope_of_sigmoid, slope_of_softmax, softmax,
};

/// x + σ(y G₁) ∘ conv(y) + σ(y G₂) ∘ softmax(y Mᵀ) M, with y the normalised layer input, M the memory, (S, C), of S slots,
/// G = [G₁ G₂] the gate, (C, 2C), and conv a causal convolution of each channel over [`TAPS`] tokens (Acharya 2025,
/// arXiv 2509.00605, without biases and dropout). The scores y Mᵀ are not scaled. Only the convolution reads other tokens.
pub(super) struct GatedMemory {
    dtype: DType,
    norm: Parameter,
    /// (TAPS, C); the last row multiplies the token itself.
    convolution: Parameter,
    memory: Parameter,
    gate: Parameter,
}

impl GatedMemory {
    /// The mixer of block `layer` of a model.
    pub(super) fn new(shape: &ModelShape, layer: usize, tensors: &Tensors) -> Result<Self> {
        let get = |part: &str| tensors.parameter(&format!("layers.{layer}.attention.{part}"));
        Ok(Self {
            dtype: shape.dtype.of_tensors(),
            norm: get("norm")?,
            convolution: get("convolution")?,
            memory: get("memory")?,
            gate: get("gate")?,
        })
    }

    /// The residual stream after the mixer, with the pass back. The scores stand for the logits of one head in the
    /// statistics, (1, 3).
    pub(super) fn forward(&self, x: &Tensor, sizes: (usize, usize)) -> Result<BlockPass> {
        let gain = self.norm.clone();
        let (y, to_norm) = layer_norm(x, &gain.tensor, self.dtype)?;
        let BlockPass { x: mixed, statistics, pullback } = self.mix(&y, sizes)?;
        let back = move |gradient: Tensor, gradients: &mut Gradients| {
            let d_normed = pullback(gradient.clone(), gradients)?;
            let [gradient, d_gain] = to_norm(&d_normed, Some(&gradient))?;
            gradients.add(&gain, d_gain)?;
            Ok(gradient)
        };
        Ok(BlockPass { x: (x + mixed)?, statistics, pullback: Box::new(back) })
    }

    /// Adds to the residual stream of the newest tokens, (T, C), given in `recent` the normalised layer inputs of up to
    /// `TAPS` − 1 tokens before them, which it replaces by those of the newest ones.
    pub(super) fn add_next(&self, x: &Tensor, recent: &mut Option<Tensor>) -> Result<Tensor> {
        let (y, _) = layer_norm(x, &self.norm.tensor, self.dtype)?;
        let (all, time) = match recent.take() {
            Some(recent) => (Tensor::cat(&[&recent, &y], 0)?, y.dim(0)?),
            None => (y.clone(), y.dim(0)?),
        };
        let read = all.dim(0)?;
        let mixed = self.mix(&all, (1, read))?.x.narrow(0, read - time, time)?;
        let kept = read.min(TAPS - 1);
        *recent = Some(all.narrow(0, read - kept, kept)?);
        x + mixed
    }

    /// What the mixer adds to the residual stream, float32, for normalised inputs y, (B·T, C), with the pass back to
    /// the gradient of y.
    fn mix(&self, y: &Tensor, (b, t): (usize, usize)) -> Result<BlockPass> {
        let (rows, c) = y.dims2()?;
        let dtype = self.dtype;
        let [taps, memory, gate] =
            [&self.convolution, &self.memory, &self.gate].map(Parameter::clone);

        let values = memory.tensor.to_dtype(dtype)?;
        let keys = values.t()?.contiguous()?;
        let (products, to_products) = linear(y, &[&keys, &gate.tensor.to_dtype(dtype)?])?;
        let [scores, gates] = &products[..] else {
            bail!("two matrices gave {} products", products.len());
        };
        let scores = scores.to_dtype(DType::F32)?;
        let shares = softmax(&scores)?;
        let statistics = vec![statistics(&scores, &shares)?];
        let (recalled, to_shares) = linear(&shares.to_dtype(dtype)?, &[&values])?;
        let recalled = recalled[0].to_dtype(DType::F32)?;
        let gates = sigmoid(&gates.to_dtype(DType::F32)?)?;
        let [open, open_memory] = [gates.narrow(1, 0, c)?, gates.narrow(1, c, c)?];
        let sequences = y.to_dtype(DType::F32)?.reshape((b, t, c))?;
        let convolved = convolve(&sequences, &taps.tensor)?.reshape((rows, c))?;
        let mixed = ((&open * &convolved)? + (&open_memory * &recalled)?)?;

        let back = move |gradient: Tensor, gradients: &mut Gradients| {
            let d_gates = [(&gradient * &convolved)?, (&gradient * &recalled)?];
            let d_gates = (Tensor::cat(&d_gates, 1)? * slope_of_sigmoid(&gates)?)?;

            let d_recalled = (&gradient * open_memory)?.to_dtype(dtype)?;
            let (d_shares, d_values) = to_shares(&[&d_recalled])?;
            let d_scores = slope_of_softmax(&shares, &d_shares.to_dtype(DType::F32)?)?;
            let (dy, found) =
                to_products(&[&d_scores.to_dtype(dtype)?, &d_gates.to_dtype(dtype)?])?;
            let ([d_keys, d_gate], [d_values]) = (&found[..], &d_values[..]) else {
                bail!("the products gave {} gradients", found.len() + d_values.len());
            };
            gradients.add(&memory, (d_values + d_keys.t()?)?)?;
            gradients.add(&gate, d_gate.clone())?;

            let d_convolved = (gradient * open)?.reshape((b, t, c))?;
            let (d_sequences, d_taps) = convolve_back(&sequences, &taps.tensor, &d_convolved)?;
            gradients.add(&taps, d_taps)?;
            dy.to_dtype(DType::F32)? + d_sequences.reshape((rows, c))?
        };
        let pullback: BlockPullback<'static> = Box::new(back);
        Ok(BlockPass { x: mixed, statistics, pullback })
    }
}

/// Each sequence of (B, T, C) moved `by` tokens back in time (`ahead`: forward), with zeros in the places left free.
fn moved(x: &Tensor, by: usize, ahead: bool) -> Result<Tensor> {
    let time = x.dim(1)?;
    match ahead {
        true => x.pad_with_zeros(1, by, 0)?.narrow(1, 0, time),
        false => x.pad_with_zeros(1, 0, by)?.narrow(1, by, time),
    }
}

/// Σₖ tapsₖ ∘ xₜ₋₍K₋₁₋ₖ₎ for x of shape (B, T, C) and taps of (K, C).
fn convolve(x: &Tensor, taps: &Tensor) -> Result<Tensor> {
    let term = |tap: usize| moved(x, TAPS - 1 - tap, true)?.broadcast_mul(&taps.narrow(0, tap, 1)?);
    (1..TAPS).try_fold(term(0)?, |sum, tap| sum + term(tap)?)
}

/// The gradients of the inputs of [`convolve`].
fn convolve_back(x: &Tensor, taps: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
    let term = |tap: usize| {
        moved(&gradient.broadcast_mul(&taps.narrow(0, tap, 1)?)?, TAPS - 1 - tap, false)
    };
    let of_tap = |tap: usize| (moved(x, TAPS - 1 - tap, true)? * gradient)?.sum((0, 1));
    let dx = (1..TAPS).try_fold(term(0)?, |sum, tap| sum + term(tap)?)?;
    let d_taps = (0..TAPS).map(of_tap).collect::<Result<Vec<_>>>()?;
    Ok((dx, Tensor::stack(&d_taps, 0)?))
}

/// The largest and the smallest score and the mean entropy of the shares in nats, (1, 3).
fn statistics(scores: &Tensor, shares: &Tensor) -> Result<Tensor> {
    let largest = scores.max_keepdim(D::Minus1)?;
    // ln p = z − max z − ln Σ e^(z − max z), and the largest share is 1 / Σ.
    let log_of_largest = shares.max(D::Minus1)?.log()?;
    let gaps = scores.broadcast_sub(&largest)?;
    let entropy = ((shares * gaps)?.sum(D::Minus1)? + log_of_largest)?.neg()?.mean_all()?;
    let all = [scores.max_all()?, scores.min_all()?, entropy];
    Tensor::stack(&all, 0)?.reshape((1, 3))
}
