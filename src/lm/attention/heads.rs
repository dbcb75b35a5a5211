//! The heads of one layer, how they lie in tensors, and what attention gives of them.

use std::sync::Arc;

use candle_core::{Device, Result, Shape, Tensor, bail};

use super::mask::{Lags, Sight};
use super::{backward, forward};
use crate::lm::operators::{float32, like, with_elements};
use crate::targets::{HeadKind, Visibility};

/// The heads of one layer.
#[derive(Clone)]
pub(in crate::lm) struct Heads {
    /// What each sees.
    pub(in crate::lm) kinds: Arc<[HeadKind]>,
    /// Of what the visibility allows.
    pub(in crate::lm) visibility: Visibility,
    /// The bound c of logits c tanh(z/c), where they have one.
    pub(in crate::lm) softcap: Option<f32>,
    /// What the kernels of a device want to know of `kinds`, kept there.
    #[cfg(feature = "cuda")]
    pub(in crate::lm) on_device: Arc<std::sync::OnceLock<Tensor>>,
}

impl Heads {
    pub(in crate::lm) fn new(
        kinds: &[HeadKind],
        visibility: Visibility,
        softcap: Option<f32>,
    ) -> Self {
        Self {
            kinds: kinds.into(),
            visibility,
            softcap,
            #[cfg(feature = "cuda")]
            on_device: Arc::default(),
        }
    }

    /// What the rows of head `head` see of `time` tokens.
    pub(super) fn sight(&self, head: usize, time: usize) -> Sight {
        Sight::new(self.kinds[head], self.visibility, time)
    }

    /// The sizes of (B, T, H, D) queries, keys and values of these heads.
    pub(in crate::lm) fn dimensions(&self, q: &Shape, k: &Shape, v: &Shape) -> Result<Dimensions> {
        let (batch, time, heads, d_head) = q.dims4()?;
        if q != k || q != v || heads != self.kinds.len() {
            bail!("attention over {} heads: q {q:?}, k {k:?}, v {v:?}", self.kinds.len());
        }
        Ok(Dimensions { batch, time, heads, d_head })
    }
}

/// What attention gives.
pub(in crate::lm) struct Attended {
    /// (B, T, H, D), in the dtype of the queries.
    pub(in crate::lm) output: Tensor,
    /// Each head's statistics over the whole batch, (H, 3) of float32, for
    /// [`HeadStatistics::of_layers`](super::HeadStatistics::of_layers): its largest and smallest logit before the softcap, since those are what
    /// grows, and its entropy after it.
    pub(in crate::lm) statistics: Tensor,
    /// The way back.
    pub(in crate::lm) pullback: AttentionPullback,
}

/// From the gradient of the output to what attention's arguments have.
pub(in crate::lm) type AttentionPullback = Box<dyn FnOnce(&Tensor) -> Result<AttentionGradients>>;

/// The gradients of attention's arguments.
pub(in crate::lm) struct AttentionGradients {
    /// Of queries, keys and values, (B, T, H, D) each.
    pub(in crate::lm) heads: [Tensor; 3],
    /// Of the slopes, (H), where there are some.
    pub(in crate::lm) slopes: Option<Tensor>,
}

/// The sizes of a (B, T, H, D) tensor.
#[derive(Clone, Copy)]
pub(in crate::lm) struct Dimensions {
    pub(in crate::lm) batch: usize,
    pub(in crate::lm) time: usize,
    pub(in crate::lm) heads: usize,
    pub(in crate::lm) d_head: usize,
}

impl Dimensions {
    /// Elements of the tensor.
    pub(super) fn count(self) -> usize {
        self.batch * self.time * self.heads * self.d_head
    }

    /// 1/√D.
    pub(in crate::lm) fn scale(self) -> f32 {
        1.0 / (self.d_head as f32).sqrt()
    }
}

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

    /// A layer's heads, (H, 3).
    pub(in crate::lm) fn to_tensor(heads: &[Self], device: &Device) -> Result<Tensor> {
        let rows =
            heads.iter().flat_map(|head| [head.max_logit, head.min_logit, head.entropy_nats]);
        Tensor::from_iter(rows, device)?.reshape((heads.len(), 3))
    }

    /// The heads of each layer, from its (H, 3). On a device of its own the numbers are waited for here,
    /// once for all layers.
    pub(in crate::lm) fn of_layers(layers: &[Tensor]) -> Result<Vec<Vec<Self>>> {
        let rows = Tensor::stack(layers, 0)?.to_vec3::<f32>()?;
        let head =
            |row: Vec<f32>| Self { max_logit: row[0], min_logit: row[1], entropy_nats: row[2] };
        Ok(rows.into_iter().map(|layer| layer.into_iter().map(head).collect()).collect())
    }

    /// The largest absolute logit.
    pub fn max_abs_logit(&self) -> f32 {
        self.max_logit.max(-self.min_logit)
    }
}

/// Softmax(Z) V with Z = QKᵀ/√D, or c tanh(QKᵀ/(c√D)) with a softcap, for every head over what it sees of the columns
/// that the visibility allows. With slopes m, (H) of float32, the logits of head h are Z − m_h |j − i|.
///
/// `q`, `k` and `v` have shape (B, T, H, D): (B·T, H·D) activations as a projection leaves them, so
/// that heads are strided views and nothing is transposed.
///
/// # Errors
/// Shapes that differ, or a number of heads or slopes other than that of `heads`.
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
    let (exact, found) = with_elements([&float32(q)?, &float32(k)?, &float32(v)?], |[q, k, v]| {
        Ok(forward::forward(q, k, v, dimensions, heads, lags.as_ref()))
    })?;
    let exact = Tensor::from_vec(exact, q.shape(), q.device())?;
    let output = exact.to_dtype(q.dtype())?;
    let statistics = HeadStatistics::to_tensor(&found.statistics, q.device())?;
    let ([q, k, v], heads) = ([q, k, v].map(Tensor::clone), heads.clone());
    let pullback = move |gradient: &Tensor| {
        let all = [&float32(&q)?, &float32(&k)?, &float32(&v)?, &exact, &float32(gradient)?];
        let ([dq, dk, dv], slopes) = with_elements(all, |[q, k, v, output, gradient]| {
            let lags = lags.as_ref();
            let arguments = backward::Arguments { q, k, v, lags, output, gradient };
            Ok(backward::backward(&arguments, &found.log_sum_exp, dimensions, &heads))
        })?;
        let slopes = slopes.map(|slopes| Tensor::new(slopes, q.device())).transpose()?;
        let heads = [like(dq, &q)?, like(dk, &k)?, like(dv, &v)?];
        Ok(AttentionGradients { heads, slopes })
    };
    Ok(Attended { output, statistics, pullback: Box::new(pullback) })
}
