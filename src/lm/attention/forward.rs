//! The forward pass: output, log-sum-exps and statistics.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};
use rayon::prelude::*;

use super::head::{Dimensions, part, scratch, tiles};
use super::{Found, Heads};
use crate::lm::model::HeadStatistics;
use crate::lm::simd;
use crate::target::HeadKind;

/// What one head of one sequence gives.
struct HeadForward {
    output: Array2<f32>,
    log_sum_exp: Vec<f32>,
    max_logit: f32,
    min_logit: f32,
    /// Σ over rows of the row's entropy, in nats.
    entropy_sum: f64,
}

/// Attention over every (batch, head) in parallel; see [`super::attention`] for the shapes.
pub(super) fn forward(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    dimensions: Dimensions,
    heads: &Heads,
) -> (Vec<f32>, Found) {
    let scale = 1.0 / (dimensions.d_head as f32).sqrt();
    let results: Vec<HeadForward> = (0..dimensions.batch * dimensions.heads)
        .into_par_iter()
        .map(|index| {
            let q = dimensions.gather(q, index, scale);
            let k = dimensions.gather(k, index, 1.0);
            let v = dimensions.gather(v, index, 1.0);
            one_head(&q, &k, &v, heads.kinds[index % dimensions.heads], heads.softcap)
        })
        .collect();

    let mut output = vec![0.0; dimensions.count()];
    let mut log_sum_exp = Vec::with_capacity(results.len() * dimensions.time);
    let mut statistics = vec![HeadStatistics::EMPTY; dimensions.heads];
    let rows = (dimensions.batch * dimensions.time) as f64;
    for (index, head) in results.iter().enumerate() {
        dimensions.scatter(&head.output, index, &mut output);
        log_sum_exp.extend_from_slice(&head.log_sum_exp);
        let seen = &mut statistics[index % dimensions.heads];
        seen.max_logit = seen.max_logit.max(head.max_logit);
        seen.min_logit = seen.min_logit.min(head.min_logit);
        seen.entropy_nats += (head.entropy_sum / rows) as f32;
    }
    (output, Found { log_sum_exp, statistics })
}

fn one_head(
    q: &Array2<f32>,
    k: &Array2<f32>,
    v: &Array2<f32>,
    kind: HeadKind,
    softcap: Option<f32>,
) -> HeadForward {
    let (time, d_head) = q.dim();
    let mut scratch = scratch(time, kind);
    let mut result = HeadForward {
        output: Array2::zeros((time, d_head)),
        log_sum_exp: Vec::with_capacity(time),
        max_logit: f32::NEG_INFINITY,
        min_logit: f32::INFINITY,
        entropy_sum: 0.0,
    };
    let mut inverse_sums = Vec::new();
    for tile in tiles(time, kind) {
        let mut logits = part(&mut scratch, &tile);
        let k = k.slice(s![tile.columns.clone(), ..]);
        let v = v.slice(s![tile.columns.clone(), ..]);
        general_mat_mul(1.0, &q.slice(s![tile.rows.clone(), ..]), &k.t(), 0.0, &mut logits);

        inverse_sums.clear();
        for (mut row, index) in logits.rows_mut().into_iter().zip(tile.rows.clone()) {
            let visible = tile.visible(index, kind);
            row.slice_mut(s![..visible.start]).fill(0.0);
            row.slice_mut(s![visible.end..]).fill(0.0);
            let mut row = row.slice_mut(s![visible]);
            // A row of a row-major matrix is a slice; were it not, its probabilities would be empty.
            let Some(row) = row.as_slice_mut() else { continue };
            let extremes = softcap.map(|cap| simd::cap_softly(row, cap));
            let terms = simd::softmax_terms(row);
            let (min, max) = extremes.unwrap_or((terms.min, terms.max));
            let log_sum = terms.sum.ln();
            inverse_sums.push(1.0 / terms.sum);
            result.log_sum_exp.push(terms.max + log_sum);
            result.max_logit = result.max_logit.max(max);
            result.min_logit = result.min_logit.min(min);
            result.entropy_sum += f64::from(log_sum - terms.weighted / terms.sum);
        }

        let mut output = result.output.slice_mut(s![tile.rows.clone(), ..]);
        general_mat_mul(1.0, &logits, &v, 0.0, &mut output);
        for (mut row, inverse) in output.rows_mut().into_iter().zip(&inverse_sums) {
            row *= *inverse;
        }
    }
    result
}
