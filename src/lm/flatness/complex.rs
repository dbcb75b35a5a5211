//! Matrices of complex numbers, whose imaginary parts carry a derivative.

use nalgebra::Complex;
use ndarray::{Array2, ArrayView2, Axis, Zip};

use crate::numerics::{gemm, product as real_product};

pub(super) type Number = Complex<f64>;
pub(super) type Matrix = Array2<Number>;

/// f(z) for a function with the value f and the slope f′ at Re z; terms of (Im z)² are far below rounding.
pub(super) fn function(z: Number, value: f64, slope: f64) -> Number {
    Number::new(value, slope * z.im)
}

/// A B from three real products; that of the imaginary parts is far below rounding.
pub(super) fn product(a: ArrayView2<Number>, b: ArrayView2<Number>) -> Matrix {
    let [a, b] = [a, b].map(|x| [x.mapv(|z| z.re), x.mapv(|z| z.im)]);
    let re = real_product(a[0].view(), b[0].view());
    let mut im = real_product(a[1].view(), b[0].view());
    gemm(1.0, a[0].view(), b[1].view(), 1.0, im.view_mut());
    Zip::from(&re).and(&im).map_collect(|&re, &im| Number::new(re, im))
}

/// The mean of every row, as a column.
pub(super) fn means(x: &Matrix) -> Matrix {
    x.sum_axis(Axis(1)).insert_axis(Axis(1)) / x.ncols() as f64
}

/// Replaces every row by its softmax; a logit of −∞ becomes 0.
pub(super) fn softmax(x: &mut Matrix) {
    for mut row in x.rows_mut() {
        let most = row.fold(f64::NEG_INFINITY, |most, z| most.max(z.re));
        row.mapv_inplace(|z| {
            let e = (z.re - most).exp();
            function(z, e, e)
        });
        let share = row.sum().inv();
        row *= share;
    }
}
