//! The linear position bias of a head's logits.

use std::ops::Range;

use crate::lm::simd::Slope;

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
