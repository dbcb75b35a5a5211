//! The trend of keys over token positions.

use ndarray::{Array2, ArrayView2, Axis, s};
use ndarray_linalg::QR;

use crate::numerics::blas::on_one_thread;
use crate::numerics::product;
use crate::targets::TargetError;

/// The regression of the mean of some streams, (T, C), on the powers 1 to `degree` of the position: Σₖ φₖ·βₖᵀ.
///
/// # Errors
/// `Decomposition` if LAPACK fails.
pub(super) fn trend(streams: &[&Array2<f32>], degree: usize) -> Result<Array2<f64>, TargetError> {
    let mut mean = Array2::<f64>::zeros(streams.first().map_or((0, 0), |stream| stream.dim()));
    for &stream in streams {
        mean += &stream.mapv(f64::from);
    }
    mean /= streams.len() as f64;
    let all = basis(powers(mean.nrows(), degree).view())?;
    let polynomials = all.slice(s![.., 1..]).to_owned();
    let coefficients = product(polynomials.t(), mean.view());
    Ok(product(polynomials.view(), coefficients.view()))
}

/// t⁰ to t^`degree` of positions scaled to [−1, 1], (T, degree + 1).
fn powers(count: usize, degree: usize) -> Array2<f64> {
    let scale = 2.0 / (count.max(2) - 1) as f64;
    Array2::from_shape_fn((count, degree + 1), |(at, power)| {
        (at as f64 * scale - 1.0).powi(power as i32)
    })
}

/// Orthonormal columns with the same span as `columns`, in the same order.
fn basis(columns: ArrayView2<'_, f64>) -> Result<Array2<f64>, TargetError> {
    let lengths =
        columns.map_axis(Axis(0), |column| column.dot(&column).sqrt().max(f64::MIN_POSITIVE));
    let (q, _) =
        on_one_thread(|| (&columns / &lengths).qr()).map_err(TargetError::decomposition)?;
    Ok(q)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of two lines, a parabola, an alternating sign and a constant.
    #[test]
    fn keys_without_their_trend_have_none() {
        let (t, c) = (41, 5);
        let position = |at: usize| at as f32 / 20.0 - 1.0;
        // Symmetric about the middle, so it has no linear trend.
        let other = |at: usize| if at.is_multiple_of(2) { 1.0f32 } else { -1.0 };
        let stream = Array2::from_shape_fn((t, c), |(at, channel)| {
            let x = position(at);
            [3.0 * x, 4.0 * x, 2.0 * x * x, other(at), 1.0][channel]
        });
        for degree in [1, 2] {
            let left = stream.mapv(f64::from) - trend(&[&stream], degree).unwrap();
            let orthonormal = basis(powers(t, degree).view()).unwrap();
            let trend = product(left.t(), orthonormal.slice(s![.., 1..]));
            let most = trend.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            assert!(most < 1e-10, "degree {degree}: a trend of {most} is left");
        }
    }
}
