//! The product of a matrix of any strides with a vector.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1};

use super::by_vector;
use crate::numerics::{Extension, Real};

/// A x.
pub(crate) fn times_vector<T: Real>(a: ArrayView2<'_, T>, x: ArrayView1<'_, T>) -> Vec<T> {
    let mut y = vec![T::default(); a.nrows()];
    let scales = (T::from_f64(1.0), T::default());
    by_vector::times(
        Extension::widest(),
        scales,
        x,
        a.reversed_axes(),
        ArrayViewMut1::from(&mut y),
    );
    y
}
