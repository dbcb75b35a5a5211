//! The backward pass: the gradients of queries, keys and values.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut1, s};
use rayon::prelude::*;

use super::Heads;
use super::head::{Dimensions, Tile, part, scratch, tiles};
use crate::lm::simd;
use crate::target::HeadKind;

/// The elements of every tensor that the gradients depend on, each of shape (B, T, H, D).
pub(super) struct Arguments<'a> {
    pub(super) q: &'a [f32],
    pub(super) k: &'a [f32],
    pub(super) v: &'a [f32],
    pub(super) output: &'a [f32],
    pub(super) gradient: &'a [f32],
}

/// One head's matrices, T × D each; `q` already carries the 1/√d.
struct Head {
    q: Array2<f32>,
    k: Array2<f32>,
    v: Array2<f32>,
    output: Array2<f32>,
    gradient: Array2<f32>,
}

/// The gradients of q, k and v, given each row's log Σ e^z in the order (batch, head, time).
///
/// Each (batch, head) is one task that goes through its tiles in order, so the sums that make dK
/// and dV do not depend on the number of threads.
pub(super) fn backward(
    arguments: &Arguments,
    log_sum_exp: &[f32],
    dimensions: Dimensions,
    heads: &Heads,
) -> [Vec<f32>; 3] {
    let scale = 1.0 / (dimensions.d_head as f32).sqrt();
    let results: Vec<[Array2<f32>; 3]> = (0..dimensions.batch * dimensions.heads)
        .into_par_iter()
        .map(|index| {
            let head = Head {
                q: dimensions.gather(arguments.q, index, scale),
                k: dimensions.gather(arguments.k, index, 1.0),
                v: dimensions.gather(arguments.v, index, 1.0),
                output: dimensions.gather(arguments.output, index, 1.0),
                gradient: dimensions.gather(arguments.gradient, index, 1.0),
            };
            let log_sum_exp = &log_sum_exp[index * dimensions.time..][..dimensions.time];
            let kind = heads.kinds[index % dimensions.heads];
            one_head(&head, log_sum_exp, (kind, heads.softcap), scale)
        })
        .collect();
    let mut gradients = [(); 3].map(|()| vec![0.0; dimensions.count()]);
    for (index, result) in results.iter().enumerate() {
        for (matrix, gradient) in result.iter().zip(&mut gradients) {
            dimensions.scatter(matrix, index, gradient);
        }
    }
    gradients
}

/// With P the probabilities and G the output's gradient: dV = PᵀG, dP = GVᵀ,
/// dZ = P ∘ (dP − rowsum(P ∘ dP)), dQ = dZ K / √d and dK = dZᵀ Q / √d, tile by tile. The row sum is
/// that of G ∘ output, so it costs T·D. With a softcap c and capped logits y, dZ also has the
/// factor 1 − (y/c)², the slope of c tanh(z/c).
fn one_head(
    head: &Head,
    log_sum_exp: &[f32],
    (kind, softcap): (HeadKind, Option<f32>),
    scale: f32,
) -> [Array2<f32>; 3] {
    let (time, d_head) = head.q.dim();
    let [mut dq, mut dk, mut dv] = [(); 3].map(|()| Array2::zeros((time, d_head)));
    let mut probability_scratch = scratch(time, kind);
    let mut gradient_scratch = scratch(time, kind);
    for tile in tiles(time, kind) {
        let rows = || s![tile.rows.clone(), ..];
        let columns = || s![tile.columns.clone(), ..];
        let (q, gradient) = (head.q.slice(rows()), head.gradient.slice(rows()));
        let output = head.output.slice(rows());
        let (k, v) = (head.k.slice(columns()), head.v.slice(columns()));
        let mut probability = part(&mut probability_scratch, &tile);
        let mut d_logits = part(&mut gradient_scratch, &tile);
        general_mat_mul(1.0, &q, &k.t(), 0.0, &mut probability);
        general_mat_mul(1.0, &gradient, &v.t(), 0.0, &mut d_logits);
        for (offset, row) in tile.rows.clone().enumerate() {
            let mean: f32 =
                gradient.row(offset).iter().zip(output.row(offset)).map(|(g, o)| g * o).sum();
            softmax_row(
                probability.row_mut(offset),
                d_logits.row_mut(offset),
                log_sum_exp[row],
                mean,
                (&tile, row, kind),
                softcap,
            );
        }
        general_mat_mul(1.0, &probability.t(), &gradient, 1.0, &mut dv.slice_mut(columns()));
        general_mat_mul(scale, &d_logits, &k, 0.0, &mut dq.slice_mut(rows()));
        // q carries the 1/√d, so this product does too.
        general_mat_mul(1.0, &d_logits.t(), &q, 1.0, &mut dk.slice_mut(columns()));
    }
    [dq, dk, dv]
}

/// Turns a row of logits into probabilities and a row of dP into dZ, both zero where the row sees
/// nothing.
fn softmax_row(
    mut logits: ArrayViewMut1<f32>,
    mut gradient: ArrayViewMut1<f32>,
    log_sum_exp: f32,
    mean: f32,
    (tile, row, kind): (&Tile, usize, HeadKind),
    softcap: Option<f32>,
) {
    let visible = tile.visible(row, kind);
    for hidden in [0..visible.start, visible.end..tile.columns.len()] {
        logits.slice_mut(s![hidden.clone()]).fill(0.0);
        gradient.slice_mut(s![hidden]).fill(0.0);
    }
    let (mut logits, mut gradient) =
        (logits.slice_mut(s![visible.clone()]), gradient.slice_mut(s![visible]));
    // Rows of row-major matrices are slices.
    if let (Some(logits), Some(gradient)) = (logits.as_slice_mut(), gradient.as_slice_mut()) {
        if let Some(cap) = softcap {
            simd::capped_softmax_gradient(gradient, logits, (log_sum_exp, mean), cap);
        } else {
            simd::exp_shifted(logits, log_sum_exp);
            simd::softmax_gradient(gradient, logits, mean);
        }
    }
}
