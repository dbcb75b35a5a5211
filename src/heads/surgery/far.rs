//! Replaces the far part of attention, keeping its mass in each row.

use ndarray::{Array2, ArrayView1, ArrayViewMut1, s};

use super::cut;
use super::truncate::truncated;
use crate::heads::far::far_columns;
use crate::targets::TargetError;

/// Spreads each row's far mass evenly over its far columns.
pub(super) fn even(mut attention: Array2<f64>, window: usize) -> Array2<f64> {
    for (row, mut p) in attention.rows_mut().into_iter().enumerate() {
        let mut far = p.slice_mut(s![far_columns(row, window)]);
        if !far.is_empty() {
            let each = far.sum() / far.len() as f64;
            far.fill(each);
        }
    }
    attention
}

/// Puts each row's far mass on its `count` largest far entries, in their proportions; ties go to earlier columns.
pub(super) fn largest(mut attention: Array2<f64>, count: usize, window: usize) -> Array2<f64> {
    for (row, mut p) in attention.rows_mut().into_iter().enumerate() {
        let mut far = p.slice_mut(s![far_columns(row, window)]);
        // Rows that need no change stay bit-identical.
        if count < far.len() {
            let mass = far.sum();
            cut::keep_largest(far.view_mut(), count);
            give(far, mass);
        }
    }
    attention
}

/// Distributes each row's far mass like the best approximation of `rank` of the far parts of all rows together.
pub(super) fn of_rank(
    mut attention: Array2<f64>,
    rank: usize,
    window: usize,
) -> Result<Array2<f64>, TargetError> {
    let mut far = Array2::zeros(attention.dim());
    for (row, p) in attention.rows().into_iter().enumerate() {
        let columns = s![far_columns(row, window)];
        far.row_mut(row).slice_mut(columns).assign(&p.slice(columns));
    }
    let near = truncated(far.view(), rank)?;
    put(&mut attention, &near, window);
    Ok(attention)
}

/// Distributes each row's far mass like that of `other`.
pub(super) fn like(mut attention: Array2<f64>, other: &Array2<f64>, window: usize) -> Array2<f64> {
    put(&mut attention, other, window);
    attention
}

/// Replaces the far entries of `attention` by those of `other`, scaled to the far mass of each row. A row where `other` has no
/// far mass is unchanged.
fn put(attention: &mut Array2<f64>, other: &Array2<f64>, window: usize) {
    for (row, mut p) in attention.rows_mut().into_iter().enumerate() {
        let columns = s![far_columns(row, window)];
        let other: ArrayView1<'_, f64> = other.row(row).slice_move(columns);
        if other.sum() > 0.0 {
            let mut far = p.slice_mut(columns);
            let mass = far.sum();
            far.assign(&other);
            give(far, mass);
        }
    }
}

/// Scales entries to the sum `mass`, unless all of them are 0.
fn give(mut entries: ArrayViewMut1<'_, f64>, mass: f64) {
    let sum = entries.sum();
    if sum > 0.0 {
        entries *= mass / sum;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    /// With a window of 1, the far columns are 1 to 3 in row 4 and column 1 in row 2.
    fn attention() -> Array2<f64> {
        array![
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0, 0.0],
            [0.25, 0.25, 0.5, 0.0, 0.0],
            [0.125, 0.25, 0.125, 0.5, 0.0],
            [0.25, 0.25, 0.0625, 0.1875, 0.25],
        ]
    }

    fn masses(p: &Array2<f64>) -> Vec<f64> {
        (0..5).map(|row| p.slice(s![row, far_columns(row, 1)]).sum()).collect()
    }

    #[test]
    fn the_far_mass_stays_and_all_else_is_as_it_was() {
        let own = attention();
        let other = Array2::from_shape_fn((5, 5), |(i, j)| (i + 2 * j) as f64);
        let edits = [
            even(own.clone(), 1),
            largest(own.clone(), 1, 1),
            of_rank(own.clone(), 1, 1).unwrap(),
            like(own.clone(), &other, 1),
        ];
        for edited in &edits {
            for (mass, own) in masses(edited).into_iter().zip(masses(&own)) {
                assert!((mass - own).abs() < 1e-15, "{edited}");
            }
            for row in 0..5 {
                let far = far_columns(row, 1);
                for j in (0..5).filter(|j| !far.contains(j)) {
                    assert_eq!(edited[[row, j]], own[[row, j]], "{row}, {j}");
                }
            }
        }
        assert_eq!(edits[0].row(4).to_vec(), [0.25, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 0.25]);
        assert_eq!(edits[1].row(4).to_vec(), [0.25, 0.5, 0.0, 0.0, 0.25]);
        // 6 : 8 : 10 of a far mass of one half.
        let expected = [0.25, 0.125, 0.5 / 3.0, 0.5 * 10.0 / 24.0, 0.25];
        for (entry, expected) in edits[3].row(4).iter().zip(expected) {
            assert!((entry - expected).abs() < 1e-15, "{}", edits[3].row(4));
        }
    }

    #[test]
    fn what_takes_nothing_away_leaves_every_digit() {
        let own = attention();
        assert_eq!(largest(own.clone(), 3, 1), own);
        for edited in [of_rank(own.clone(), 5, 1).unwrap(), like(own.clone(), &own, 1)] {
            assert!((&edited - &own).iter().all(|off| off.abs() < 1e-15));
        }
        for edited in [even(own.clone(), 4), largest(own.clone(), 1, 5)] {
            assert_eq!(edited, own, "nothing is far");
        }
        assert_eq!(like(own.clone(), &Array2::zeros((5, 5)), 1), own);
    }

    #[test]
    fn a_far_part_of_one_dimension_is_its_own_best_approximation() {
        // First a matrix without far mass, then one with all far mass in one column, which has rank one.
        let own = array![
            [1.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0],
            [0.25, 0.0, 0.75, 0.0],
            [0.25, 0.0, 0.0, 0.75],
        ];
        assert_eq!(of_rank(own.clone(), 1, 2).unwrap(), own);
        let mut own = Array2::from_shape_fn((6, 6), |(i, j)| f64::from(u8::from(i == j)));
        for row in 3..6 {
            own[[row, 1]] = 0.25 * row as f64 / 6.0;
            own[[row, row]] = 1.0 - own[[row, 1]];
        }
        let one = of_rank(own.clone(), 1, 2).unwrap();
        assert!((&one - &own).iter().all(|off| off.abs() < 1e-12), "{one}");
    }
}
