//! Causal multi-head attention on the CPU as one differentiable operator, with each head global or
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

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::model::HeadStatistics;
use super::operators::{elements, in_float32, with_elements};
use crate::target::HeadKind;
pub(super) use head::Dimensions;

/// The heads of one layer.
#[derive(Clone)]
pub(super) struct Heads {
    /// What each sees.
    pub(super) kinds: Arc<[HeadKind]>,
    /// The bound c of logits c tanh(z/c), where they have one.
    pub(super) softcap: Option<f32>,
}

impl Heads {
    /// The sizes of (B, T, H, D) queries, keys and values of these heads.
    pub(super) fn dimensions(&self, q: &Shape, k: &Shape, v: &Shape) -> Result<Dimensions> {
        let (batch, time, heads, d_head) = q.dims4()?;
        if q != k || q != v || heads != self.kinds.len() {
            bail!("attention over {} heads: q {q:?}, k {k:?}, v {v:?}", self.kinds.len());
        }
        Ok(Dimensions { batch, time, heads, d_head })
    }
}

/// Softmax(Z) V with Z = QKᵀ/√D, or c tanh(QKᵀ/(c√D)) with a softcap, for every head over the
/// columns that it sees: causal for a global head, the last w for a local one.
///
/// `q`, `k` and `v` have shape (B, T, H, D): (B·T, H·D) activations as a projection leaves them, so
/// that heads are strided views and nothing is transposed. Returns the output in the same shape and
/// dtype, and each head's statistics over the whole batch, (H, 3) of float32, for
/// [`HeadStatistics::of_layers`]: its largest and smallest logit before the softcap, since those are
/// what grows, and its entropy after it.
///
/// # Errors
/// Shapes that differ, or a number of heads other than that of `heads`.
pub(super) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    heads: &Heads,
) -> Result<(Tensor, Tensor)> {
    #[cfg(feature = "cuda")]
    if q.device().is_cuda() {
        return super::cuda::attention(q, k, v, heads);
    }
    let found = Arc::new(OnceLock::new());
    let operator = Attention { heads: heads.clone(), found: found.clone() };
    let output = in_float32([q, k, v], |[q, k, v]| {
        q.contiguous()?.apply_op3(&k.contiguous()?, &v.contiguous()?, operator)
    })?;
    match found.get() {
        Some(Found { statistics, .. }) => {
            Ok((output, HeadStatistics::to_tensor(statistics, q.device())?))
        }
        None => bail!("attention: the forward pass left no statistics"),
    }
}

/// What the forward pass learns beside its output.
struct Found {
    /// log Σ e^z of each row, in the order (batch, head, time).
    log_sum_exp: Vec<f32>,
    /// One entry a head.
    statistics: Vec<HeadStatistics>,
}

struct Attention {
    heads: Heads,
    found: Arc<OnceLock<Found>>,
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let dimensions =
            self.heads.dimensions(q_layout.shape(), k_layout.shape(), v_layout.shape())?;
        let (output, found) = forward::forward(
            elements(q, q_layout)?,
            elements(k, k_layout)?,
            elements(v, v_layout)?,
            dimensions,
            &self.heads,
        );
        // Only a first run fills the cell; a second one would find the same.
        let _ = self.found.set(found);
        Ok((CpuStorage::F32(output), q_layout.shape().clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        output: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(found) = self.found.get() else {
            bail!("attention: backward without a forward pass");
        };
        let dimensions = self.heads.dimensions(q.shape(), k.shape(), v.shape())?;
        let [dq, dk, dv] = with_elements(q, |q| {
            with_elements(k, |k| {
                with_elements(v, |v| {
                    with_elements(output, |output| {
                        with_elements(gradient, |gradient| {
                            let arguments = backward::Arguments { q, k, v, output, gradient };
                            let sums = &found.log_sum_exp;
                            Ok(backward::backward(&arguments, sums, dimensions, &self.heads))
                        })
                    })
                })
            })
        })?;
        let tensor = |x: Vec<f32>| Tensor::from_vec(x, q.shape(), q.device()).map(Some);
        Ok((tensor(dq)?, tensor(dk)?, tensor(dv)?))
    }
}
