//! Causal multi-head attention on the CPU as one operator, with each head global or
//! local and its logits measured on the way.
//!
//! The work goes in blocks: some rows against only the columns that they see, so a local head
//! costs O(T·w) and a global one half of T², in time, and O(block · T) in memory: no T × T array is
//! ever built, neither forward nor backward. The forward pass keeps one log-sum-exp a row, from which
//! the backward pass rebuilds the probabilities (Dao et al. 2022, arXiv 2205.14135; unlike theirs, a
//! block here spans all columns of its rows, so no running rescaling is needed). The products are
//! those of the fit: keys and values are packed once, and probabilities are multiplied where they lie.

mod backward;
mod evaluator;
mod forward;
mod head;
mod packed;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use evaluator::{AttentionEvaluator, AttentionPass};

use std::sync::Arc;

use candle_core::{Result, Shape, Tensor, bail};

use super::model::HeadStatistics;
use super::operators::{Pullback, float32, like, with_elements};
use crate::pattern::HeadKind;
pub(super) use head::Dimensions;

/// The heads of one layer.
#[derive(Clone)]
pub(super) struct Heads {
    /// What each sees.
    pub(super) kinds: Arc<[HeadKind]>,
    /// The bound c of logits c tanh(z/c), where they have one.
    pub(super) softcap: Option<f32>,
    /// What the kernels of a device want to know of `kinds`, kept there.
    #[cfg(feature = "cuda")]
    pub(super) on_device: Arc<std::sync::OnceLock<Tensor>>,
}

impl Heads {
    pub(super) fn new(kinds: &[HeadKind], softcap: Option<f32>) -> Self {
        Self {
            kinds: kinds.into(),
            softcap,
            #[cfg(feature = "cuda")]
            on_device: Arc::default(),
        }
    }

    /// The sizes of (B, T, H, D) queries, keys and values of these heads.
    pub(super) fn dimensions(&self, q: &Shape, k: &Shape, v: &Shape) -> Result<Dimensions> {
        let (batch, time, heads, d_head) = q.dims4()?;
        if q != k || q != v || heads != self.kinds.len() {
            bail!("attention over {} heads: q {q:?}, k {k:?}, v {v:?}", self.kinds.len());
        }
        Ok(Dimensions { batch, time, heads, d_head })
    }
}

/// What attention gives.
pub(super) struct Attended {
    /// (B, T, H, D), in the dtype of the queries.
    pub(super) output: Tensor,
    /// Each head's statistics over the whole batch, (H, 3) of float32, for
    /// [`HeadStatistics::of_layers`]: its largest and smallest logit before the softcap, since those are what
    /// grows, and its entropy after it.
    pub(super) statistics: Tensor,
    /// To the gradients of queries, keys and values.
    pub(super) pullback: Pullback<3>,
}

/// Softmax(Z) V with Z = QKᵀ/√D, or c tanh(QKᵀ/(c√D)) with a softcap, for every head over the
/// columns that it sees: causal for a global head, the last w for a local one.
///
/// `q`, `k` and `v` have shape (B, T, H, D): (B·T, H·D) activations as a projection leaves them, so
/// that heads are strided views and nothing is transposed.
///
/// # Errors
/// Shapes that differ, or a number of heads other than that of `heads`.
pub(super) fn attention(q: &Tensor, k: &Tensor, v: &Tensor, heads: &Heads) -> Result<Attended> {
    #[cfg(feature = "cuda")]
    if q.device().is_cuda() {
        return super::cuda::attention(q, k, v, heads);
    }
    let dimensions = heads.dimensions(q.shape(), k.shape(), v.shape())?;
    let (exact, found) = with_elements([&float32(q)?, &float32(k)?, &float32(v)?], |[q, k, v]| {
        Ok(forward::forward(q, k, v, dimensions, heads))
    })?;
    let exact = Tensor::from_vec(exact, q.shape(), q.device())?;
    let output = exact.to_dtype(q.dtype())?;
    let statistics = HeadStatistics::to_tensor(&found.statistics, q.device())?;
    let ([q, k, v], heads) = ([q, k, v].map(Tensor::clone), heads.clone());
    let pullback = move |gradient: &Tensor| {
        let all = [&float32(&q)?, &float32(&k)?, &float32(&v)?, &exact, &float32(gradient)?];
        let [dq, dk, dv] = with_elements(all, |[q, k, v, output, gradient]| {
            let arguments = backward::Arguments { q, k, v, output, gradient };
            Ok(backward::backward(&arguments, &found.log_sum_exp, dimensions, &heads))
        })?;
        Ok([like(dq, &q)?, like(dk, &k)?, like(dv, &v)?])
    };
    Ok(Attended { output, statistics, pullback: Box::new(pullback) })
}

/// What the forward pass learns beside its output.
struct Found {
    /// log Σ e^z of each row, in the order (batch, head, time).
    log_sum_exp: Vec<f32>,
    /// One entry a head.
    statistics: Vec<HeadStatistics>,
}
