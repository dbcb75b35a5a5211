//! What is often saved instead of attention: padding, attention after dropout, logits.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, s};

use crate::targets::Visibility;

/// A row whose sum is further from 1 than this is not attention, whatever its precision.
const NO_ROW_OF_ATTENTION: f64 = 0.01;
/// Least share of zeros that dropout leaves, ...
const LEAST_DROPPED: f64 = 0.02;
/// ... and how far from 1 the mean row sum may then be.
const MEAN_AFTER_DROPOUT: f64 = 0.25;

/// The tokens without those at either end whose row or column is zero, or −∞ in logits. All, if none would remain.
pub(super) fn without_padding(matrix: &Array2<f64>, logits: bool) -> Range<usize> {
    let none = if logits { f64::NEG_INFINITY } else { 0.0 };
    let is_padding = |token: &usize| {
        let (row, column) = (matrix.row(*token), matrix.column(*token));
        row.iter().all(|entry| *entry == none) || column.iter().all(|entry| *entry == none)
    };
    let n = matrix.nrows().min(matrix.ncols());
    let start = (0..n).take_while(is_padding).count();
    let end = n - (start..n).rev().take_while(is_padding).count();
    if start < end { start..end } else { 0..n }
}

/// What a square matrix that is no attention seems to hold, and what to do.
pub(super) fn why_no_attention(dense: &Array2<f64>, visibility: Visibility) -> Option<String> {
    let n = dense.nrows();
    let seen = |row: usize| dense.row(row).slice_move(s![visibility.columns(row, n)]);
    padded_rows(dense).or_else(|| {
        let rows: Vec<ArrayView1<'_, f64>> = (0..n).map(seen).collect();
        dropout_in(dense, &rows).or_else(|| logits_in(&rows))
    })
}

/// Rows at either end that are all zero.
fn padded_rows(dense: &Array2<f64>) -> Option<String> {
    let is_zero = |row: &usize| dense.row(*row).iter().all(|p| *p == 0.0);
    let n = dense.nrows();
    let [first, last] =
        match ((0..n).take_while(is_zero).last(), (0..n).rev().take_while(is_zero).last()) {
            (Some(end), _) if end == n - 1 => return None,
            (Some(end), _) => [0, end],
            (None, start) => [start?, n - 1],
        };
    Some(format!(
        "rows {first} to {last} (from 0) are all zero, as those of padding are; leave them out with --trim-padding"
    ))
}

/// Attention after dropout with rescaling: no entry is negative, some are zero, more than half of the rows do not sum to 1,
/// and the mean row does.
fn dropout_in(dense: &Array2<f64>, seen: &[ArrayView1<'_, f64>]) -> Option<String> {
    let sums: Vec<f64> = seen.iter().map(|row| row.sum()).collect();
    let entries = || seen.iter().flat_map(|row| row.iter());
    let zeros = entries().filter(|p| **p == 0.0).count() as f64 / entries().count() as f64;
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let is_so = dense.iter().all(|p| *p >= 0.0 && p.is_finite())
        && zeros > LEAST_DROPPED
        && (mean - 1.0).abs() < MEAN_AFTER_DROPOUT
        && most_are_no_attention(seen);
    let [least, greatest] = [f64::min, f64::max].map(|of| sums.iter().copied().reduce(of));
    let (least, greatest) = (least?, greatest?);
    is_so.then(|| {
        format!(
            "{:.0} % of the allowed entries are 0 and rows sum to {least:.3} to {greatest:.3}, as dropout leaves \
             attention; call model.eval() before saving it",
            100.0 * zeros
        )
    })
}

/// Logits: more than half of the rows do not sum to 1, and some finite entry is not a probability.
fn logits_in(seen: &[ArrayView1<'_, f64>]) -> Option<String> {
    let finite = || seen.iter().flat_map(|row| row.iter().copied()).filter(|z| z.is_finite());
    let least = finite().fold(f64::INFINITY, f64::min);
    let greatest = finite().fold(f64::NEG_INFINITY, f64::max);
    let is_so = (least < 0.0 || greatest > 1.0) && most_are_no_attention(seen);
    is_so.then(|| {
        format!(
            "entries range from {least} to {greatest} and rows do not sum to 1, so these look like logits; give \
             --softmax to apply a softmax to each row"
        )
    })
}

fn most_are_no_attention(seen: &[ArrayView1<'_, f64>]) -> bool {
    2 * seen.iter().filter(|row| (row.sum() - 1.0).abs() > NO_ROW_OF_ATTENTION).count() > seen.len()
}
