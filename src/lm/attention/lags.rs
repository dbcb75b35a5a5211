//! What a slope over the lag adds to a head's logits.

use crate::lm::simd::Slope;

/// The lags j − i ≤ 0 of a causal row, and each head's slope over them.
#[derive(Clone)]
pub(super) struct Lags {
    /// 1 − T, …, −1, 0.
    lags: Vec<f32>,
    /// m of each head.
    slopes: Vec<f32>,
}

impl Lags {
    /// Those of rows of at most `time` columns.
    pub(super) fn new(time: usize, slopes: Vec<f32>) -> Self {
        Self { lags: (0..time).rev().map(|lag| -(lag as f32)).collect(), slopes }
    }

    /// What is added to the logits of a row of `head` that sees its last `seen` columns.
    #[inline(always)]
    pub(super) fn of_row(&self, head: usize, seen: usize) -> Slope<'_> {
        Slope { slope: self.slopes[head], lags: &self.lags[self.lags.len() - seen..] }
    }
}
