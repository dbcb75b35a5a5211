//! The heads of one layer, how they lie in tensors, and what attention gives of them.

use std::sync::Arc;

use candle_core::{Result, Shape, Tensor, bail};

use super::mask::Sight;
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
