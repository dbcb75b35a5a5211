//! Attention with most of its entries removed.

use ndarray::{Array2, ArrayViewMut1};

/// Keeps the `count` largest entries of each row, divided by their sum; ties go to earlier columns.
pub(super) fn largest(mut attention: Array2<f64>, count: usize) -> Array2<f64> {
    for mut row in attention.rows_mut() {
        keep_largest(row.view_mut(), count);
        divide_by_sum(row);
    }
    attention
}

/// Sets all but the `count` largest entries to 0; ties go to earlier places.
fn keep_largest(mut entries: ArrayViewMut1<'_, f64>, count: usize) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[b].total_cmp(&entries[a]));
    order.into_iter().skip(count).for_each(|place| entries[place] = 0.0);
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
    }
}
