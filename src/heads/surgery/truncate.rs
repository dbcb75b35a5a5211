//! Low-rank approximation of attention.

use ndarray::{Array2, ArrayView2, Axis, s};
use ndarray_linalg::{JobSvd, SVDDC};

use crate::numerics::blas::on_one_thread;
use crate::numerics::product;
use crate::targets::TargetError;

/// The best approximation of `rank` (Eckart and Young 1936), with negative entries and entries where `attention` is 0 set to 0.
/// The result need not have this rank, because the truncation of an attention matrix is not an attention matrix.
pub(super) fn truncated(
    attention: ArrayView2<'_, f64>,
    rank: usize,
) -> Result<Array2<f64>, TargetError> {
    if rank >= attention.nrows().min(attention.ncols()) {
        return Ok(attention.to_owned());
    }
    let (left, singular_values, right) = on_one_thread(|| attention.svddc(JobSvd::Some))
        .map_err(|error| TargetError::Decomposition(error.to_string()))?;
    let [left, right] = [left, right].map(|vectors| vectors.expect("vectors were asked for"));
    let mut left = left.slice(s![.., ..rank]).to_owned();
    for (mut vector, sigma) in left.axis_iter_mut(Axis(1)).zip(&singular_values) {
        vector *= *sigma;
    }
    let mut near = product(left.view(), right.slice(s![..rank, ..]));
    near.zip_mut_with(&attention, |near, &p| *near = if p > 0.0 { near.max(0.0) } else { 0.0 });
    Ok(near)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_matrix_of_a_rank_is_its_own_truncation_and_a_full_rank_leaves_it_as_it_is() {
        // Two blocks of equal rows, σ = 1 and √(3/2)·½·√2.
        let p = array![
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 0.5, 0.5, 0.0],
            [0.0, 0.5, 0.5, 0.0],
            [0.0, 0.5, 0.5, 0.0],
        ];
        let two = truncated(p.view(), 2).unwrap();
        assert!((&two - &p).iter().all(|off| off.abs() < 1e-12), "{two}");
        assert_eq!(truncated(p.view(), 4).unwrap(), p);
        // σ of the larger block is √(3/2), of the smaller 1.
        let one = truncated(p.view(), 1).unwrap();
        assert!(one.row(0).sum().abs() < 1e-12 && (one.row(2).sum() - 1.0).abs() < 1e-12, "{one}");
    }

    #[test]
    fn what_falls_under_zero_or_where_nothing_was_is_left_out() {
        let p = array![[1.0, 0.0], [0.9, 0.1]];
        let one = truncated(p.view(), 1).unwrap();
        assert_eq!(one[[0, 1]], 0.0, "the future");
        assert!(one.iter().all(|&entry| entry >= 0.0));
        assert!(one[[1, 1]] > 0.0 && one[[1, 1]] < 0.1);
    }
}
