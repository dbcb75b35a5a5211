//! Attention with most of its entries removed.

use ndarray::{Array2, ArrayViewMut1};

use super::truncate::truncated;
use crate::targets::TargetError;

/// Keeps the `count` largest entries of each row, divided by their sum; ties go to earlier columns.
pub(super) fn largest(mut attention: Array2<f64>, count: usize) -> Array2<f64> {
    for mut row in attention.rows_mut() {
        keep_largest(row.view_mut(), count);
        divide_by_sum(row);
    }
    attention
}

/// Sets all but the `count` largest entries to 0; ties go to earlier places.
pub(super) fn keep_largest(mut entries: ArrayViewMut1<'_, f64>, count: usize) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[b].total_cmp(&entries[a]));
    order.into_iter().skip(count).for_each(|place| entries[place] = 0.0);
}

/// Replaces attention by its best approximation of `rank`, each row divided by its sum: see [`truncated`]. A row whose
/// approximation is 0 is unchanged.
pub(super) fn of_rank(mut attention: Array2<f64>, rank: usize) -> Result<Array2<f64>, TargetError> {
    let near = truncated(attention.view(), rank)?;
    for (mut row, near) in attention.rows_mut().into_iter().zip(near.rows()) {
        if near.sum() > 0.0 {
            row.assign(&near);
            divide_by_sum(row);
        }
    }
    Ok(attention)
}

/// Keeps the last `window` columns of each causal row, divided by their sum.
pub(super) fn last(mut attention: Array2<f64>, window: usize) -> Array2<f64> {
    for (at, mut row) in attention.rows_mut().into_iter().enumerate() {
        let first = (at + 1).saturating_sub(window);
        row.iter_mut().take(first).for_each(|p| *p = 0.0);
        divide_by_sum(row);
    }
    attention
}

/// Divides a row by its sum. A row whose remaining entries are all 0, for example because they underflow, stays 0.
fn divide_by_sum(mut row: ArrayViewMut1<'_, f64>) {
    let sum = row.sum();
    if sum > 0.0 {
        row /= sum;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn what_is_left_keeps_its_proportions() {
        let p = array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.125, 0.375]];
        let two = largest(p.clone(), 2);
        assert_eq!(
            two,
            array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5 / 0.875, 0.0, 0.375 / 0.875]]
        );
        assert_eq!(
            largest(p.clone(), 1),
            array![[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        );
        assert_eq!(last(p.clone(), 1), Array2::<f64>::eye(3));
        assert_eq!(
            last(p.clone(), 2),
            array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.0, 0.25, 0.75]]
        );
        assert_eq!(largest(p.clone(), 3), p);
        assert_eq!(last(p.clone(), 3), p);
        assert_eq!(of_rank(p.clone(), 3).unwrap(), p);
    }

    /// At rank one, P₁ = σ·u·vᵀ, so rows are proportional to v on the columns that they may attend to.
    #[test]
    fn of_rank_one_rows_differ_in_what_they_see_alone() {
        let p = array![[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.125, 0.375]];
        let one = of_rank(p, 1).unwrap();
        assert_eq!(one.row(0).to_vec(), [1.0, 0.0, 0.0]);
        let ratio = |row: usize| one[[row, 1]] / one[[row, 0]];
        assert!((ratio(1) / ratio(2) - 1.0).abs() < 1e-12, "{one}");
        assert!(one.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-15), "{one}");
    }
}
