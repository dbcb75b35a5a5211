//! Tokens of padding in a saved matrix.

use std::ops::Range;

use ndarray::Array2;

use crate::targets::TargetError;

/// The tokens without those at either end whose row or column is zero, or −∞ in logits. All, if none would remain.
pub(super) fn tokens(matrix: &Array2<f64>, logits: bool) -> Range<usize> {
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

/// Returns `Padding` if rows at either end are all zero.
pub(super) fn rows_of(dense: &Array2<f64>) -> Option<TargetError> {
    let is_zero = |row: &usize| dense.row(*row).iter().all(|p| *p == 0.0);
    let n = dense.nrows();
    let (first, last) =
        ((0..n).take_while(is_zero).last(), (0..n).rev().take_while(is_zero).last());
    match (first, last) {
        _ if first == Some(n - 1) => None,
        (Some(end), _) => Some(TargetError::Padding { first: 0, last: end }),
        (None, Some(start)) => Some(TargetError::Padding { first: start, last: n - 1 }),
        (None, None) => None,
    }
}
