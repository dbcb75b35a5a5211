//! Conjugate gradients for a matrix that is given by its products with vectors.

/// The result of conjugate gradients.
pub(super) struct Solved {
    pub x: Vec<f64>,
    /// Whether the residual reached the tolerance.
    pub converged: bool,
}

/// Solves A·x = b for a symmetric positive semi-definite A with b in its range, by conjugate gradients preconditioned by A's
/// `diagonal` (Hestenes and Stiefel 1952; Nocedal and Wright, *Numerical Optimization*, algorithm 5.3). x has no component in
/// the null space of A. Ends when the preconditioned residual is `tolerance` times that of x = 0, or after `most` products.
/// `product` writes A·v.
pub(super) fn solve(
    mut product: impl FnMut(&[f64], &mut [f64]),
    b: &[f64],
    diagonal: &[f64],
    tolerance: f64,
    most: usize,
) -> Solved {
    // A variable on which nothing depends has a diagonal of 0 and no equation.
    let least = f64::EPSILON * diagonal.iter().copied().fold(0.0, f64::max);
    let inverse: Vec<f64> =
        diagonal.iter().map(|&d| if d > least { 1.0 / d } else { 0.0 }).collect();
    let scaled = |r: &[f64]| -> Vec<f64> { r.iter().zip(&inverse).map(|(r, d)| r * d).collect() };
    let mut x = vec![0.0; b.len()];
    let mut residual = b.to_vec();
    let mut z = scaled(&residual);
    let mut direction = z.clone();
    let mut along = dot(&residual, &z);
    let goal = tolerance * tolerance * along;
    let mut image = vec![0.0; b.len()];
    for _ in 0..most {
        if along <= goal {
            return Solved { x, converged: true };
        }
        product(&direction, &mut image);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 {
            // The rest of the residual is rounding.
            return Solved { x, converged: false };
        }
        let step = along / curvature;
        for ((x, r), (d, a)) in x.iter_mut().zip(&mut residual).zip(direction.iter().zip(&image)) {
            *x += step * d;
            *r -= step * a;
        }
        z = scaled(&residual);
        let before = std::mem::replace(&mut along, dot(&residual, &z));
        for (d, z) in direction.iter_mut().zip(&z) {
            *d = z + along / before * *d;
        }
    }
    Solved { x, converged: along <= goal }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
