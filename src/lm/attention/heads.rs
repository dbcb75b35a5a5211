//! The heads of one layer: the layout of their tensors, their position bias, statistics of their logits, and results.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{Device, Result, Shape, Tensor, bail};

use crate::lm::simd::Slope;
use crate::targets::HeadKind;

/// The heads of one layer.
#[derive(Clone)]
pub(in crate::lm) struct Heads {
    /// Which tokens each head attends to, up to its own: all, or a window.
    pub(in crate::lm) kinds: Arc<[HeadKind]>,
    /// The softcap c of logits c tanh(z/c), if any.
    pub(in crate::lm) softcap: Option<f32>,
    /// Windows of the heads in the memory of a GPU, created once.
    #[cfg(feature = "cuda")]
    pub(in crate::lm) on_device: Arc<std::sync::OnceLock<Tensor>>,
}

impl Heads {
    pub(in crate::lm) fn new(kinds: &[HeadKind], softcap: Option<f32>) -> Self {
        Self {
            kinds: kinds.into(),
            softcap,
            #[cfg(feature = "cuda")]
            on_device: Arc::default(),
        }
    }

    /// The largest number of columns that a row of head `head` attends to.
    pub(super) fn window(&self, head: usize) -> usize {
        self.kinds[head].window().unwrap_or(usize::MAX)
    }

    /// The sizes of queries, keys and values of shape (B, T, H, D) for these heads. Fails if the shapes differ or H is wrong.
    pub(in crate::lm) fn dimensions(&self, q: &Shape, k: &Shape, v: &Shape) -> Result<Dimensions> {
        let (batch, time, heads, d_head) = q.dims4()?;
        if q != k || q != v || heads != self.kinds.len() {
            bail!("attention over {} heads: q {q:?}, k {k:?}, v {v:?}", self.kinds.len());
        }
        Ok(Dimensions { batch, time, heads, d_head })
    }
}

/// The columns that row `row` attends to: at most `window` of them, up to its own.
#[inline(always)]
pub(super) fn columns(window: usize, row: usize) -> Range<usize> {
    (row + 1).saturating_sub(window)..row + 1
}

/// Results of a forward pass of attention.
pub(in crate::lm) struct Attended {
    /// (B, T, H, D), in the dtype of the queries.
    pub(in crate::lm) output: Tensor,
    /// Statistics of each head over the whole batch, (H, 3) of float32; read them with
    /// [`HeadStatistics::of_layers`](super::HeadStatistics::of_layers). The largest and the smallest logit are taken before
    /// the softcap, because these are the ones that grow, and the entropy after it.
    pub(in crate::lm) statistics: Tensor,
    /// Computes the gradients of the inputs; call it once.
    pub(in crate::lm) pullback: AttentionPullback,
}

/// The backward pass: maps the gradient of the output to the gradients of attention's inputs.
pub(in crate::lm) type AttentionPullback = Box<dyn FnOnce(&Tensor) -> Result<AttentionGradients>>;

/// Gradients of attention's inputs.
pub(in crate::lm) struct AttentionGradients {
    /// Gradients of queries, keys and values, (B, T, H, D) each.
    pub(in crate::lm) heads: [Tensor; 3],
    /// Gradients of the slopes of the position bias, (H), if there is one.
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
    /// Number of elements of the tensor.
    pub(super) fn count(self) -> usize {
        self.batch * self.time * self.heads * self.d_head
    }

    /// 1/√D.
    pub(in crate::lm) fn scale(self) -> f32 {
        1.0 / (self.d_head as f32).sqrt()
    }
}

/// Negated relative distances −|j − i| ≤ 0 of any row, and the slope m of each head.
#[derive(Clone)]
pub(super) struct Lags {
    /// 1 − T, …, −1, 0, −1, …, 1 − T.
    lags: Vec<f32>,
    /// Slope m of each head.
    slopes: Vec<f32>,
}

impl Lags {
    /// Distances for rows of at most `time` columns.
    pub(super) fn new(time: usize, slopes: Vec<f32>) -> Self {
        let before = (1..time).rev();
        let lags = before.clone().chain(0..time).map(|lag| -(lag as f32)).collect();
        Self { lags, slopes }
    }

    /// The bias for the columns that row `row` of `head` attends to.
    #[inline(always)]
    pub(super) fn of_row(&self, head: usize, row: usize, columns: &Range<usize>) -> Slope<'_> {
        let first = self.lags.len() / 2 - row + columns.start;
        Slope { slope: self.slopes[head], lags: &self.lags[first..first + columns.len()] }
    }
}

/// Statistics of one head in one forward pass, over the batch and all pairs that the mask allows. Logits are taken
/// after the factor 1/√d and before any softcap.
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
    /// The statistics before any pair was seen: infinite extremes and no entropy.
    pub(in crate::lm) const EMPTY: Self =
        Self { max_logit: f32::NEG_INFINITY, min_logit: f32::INFINITY, entropy_nats: 0.0 };

    /// The statistics of a layer's heads as a tensor, (H, 3).
    pub(in crate::lm) fn to_tensor(heads: &[Self], device: &Device) -> Result<Tensor> {
        let rows =
            heads.iter().flat_map(|head| [head.max_logit, head.min_logit, head.entropy_nats]);
        Tensor::from_iter(rows, device)?.reshape((heads.len(), 3))
    }

    /// The statistics of each layer's heads from tensors of shape (H, 3). With a GPU this waits for the numbers, once for all
    /// layers.
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
