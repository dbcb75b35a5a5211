//! Multi-head attention on the CPU as one operator, behind a causal mask, with global and local heads. The forward
//! pass also records statistics of the logits.
//!
//! Work is split into blocks of rows, each computed against only the columns that its rows attend to. A local head costs
//! O(T·w) time and a global head half of T²; memory is O(block · T). No T × T array is allocated in either pass.
//! The forward pass keeps one log-sum-exp per row, from which the backward pass recomputes the probabilities (Dao et al.
//! 2022, arXiv 2205.14135). Unlike there, a block spans all columns of its rows, so no running rescaling is needed.
//! The matrix products are those of the solver: keys and values are packed once, and probabilities are used in place.

mod backward;
mod evaluator;
mod forward;
mod heads;
mod tasks;
#[cfg(test)]
mod tests;

use candle_core::{Result, Tensor, bail};

use crate::lm::operators::{float32, like, with_elements};

pub use evaluator::AttentionEvaluator;
#[cfg(feature = "cuda")]
pub(super) use heads::Dimensions;
pub use heads::HeadStatistics;
use heads::Lags;
pub(super) use heads::{Attended, AttentionGradients, AttentionPullback, Heads};

/// Softmax(Z) V with Z = QKᵀ/√D, or c tanh(QKᵀ/(c√D)) with a softcap, for every head over the columns that its mask allows.
/// With slopes m, (H) of float32, the logits of head h are Z − m_h |j − i|.
///
/// `q`, `k` and `v` have shape (B, T, H, D): the (B·T, H·D) activations of a projection, so
/// heads are strided views and nothing is transposed.
///
/// # Errors
/// Shapes that differ, or a number of heads or slopes that differs from that of `heads`.
pub(in crate::lm) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    slopes: Option<&Tensor>,
    heads: &Heads,
) -> Result<Attended> {
    #[cfg(feature = "cuda")]
    if q.device().is_cuda() {
        return crate::lm::cuda::attention(q, k, v, slopes, heads);
    }
    let dimensions = heads.dimensions(q.shape(), k.shape(), v.shape())?;
    let lags = match slopes {
        None => None,
        Some(slopes) if slopes.elem_count() == dimensions.heads => {
            Some(Lags::new(dimensions.time, slopes.to_vec1()?))
        }
        Some(slopes) => bail!("{} slopes for {} heads", slopes.elem_count(), dimensions.heads),
    };
    let (exact, log_sum_exp, statistics) =
        with_elements([&float32(q)?, &float32(k)?, &float32(v)?], |inputs| {
            Ok(forward::forward(inputs, dimensions, heads, lags.as_ref()))
        })?;
    let exact = Tensor::from_vec(exact, q.shape(), q.device())?;
    let output = exact.to_dtype(q.dtype())?;
    let statistics = HeadStatistics::to_tensor(&statistics, q.device())?;
    let ([q, k, v], heads) = ([q, k, v].map(Tensor::clone), heads.clone());
    let pullback = move |gradient: &Tensor| {
        let all = [&float32(&q)?, &float32(&k)?, &float32(&v)?, &exact, &float32(gradient)?];
        let ([dq, dk, dv], slopes) = with_elements(all, |all| {
            Ok(backward::backward(all, &log_sum_exp, dimensions, &heads, lags.as_ref()))
        })?;
        let slopes = slopes.map(|slopes| Tensor::new(slopes, q.device())).transpose()?;
        let heads = [like(dq, &q)?, like(dk, &k)?, like(dv, &v)?];
        Ok(AttentionGradients { heads, slopes })
    };
    Ok(Attended { output, statistics, pullback: Box::new(pullback) })
}
