//! Levenberg–Marquardt on queries and keys together: solves (H + μB)·s = −g by preconditioned conjugate gradients. H is
//! the Gauss–Newton matrix or the full Hessian, and B consists of the damped blocks of the Gauss–Newton matrix.
//!
//! Damping: Madsen, Nielsen and Tingleff 2004, *Methods for non-linear least squares problems*, 2nd ed., equation 2.21.
//! Conjugate gradients: Nocedal and Wright, *Numerical Optimization*, 2nd ed., algorithms 5.3 and 7.1. They stop at
//! negative curvature, or at the tolerance √‖g‖.

use crate::curvature::{Blocks, Curvature};
use crate::problems::Stage;
use crate::run::{Run, along, dot};

/// Damping added to every block, as a share of the mean curvature, as in fits.
const BLOCK_DAMPING: f64 = 0.1;
/// Maximum number of conjugate-gradient steps.
const STEPS: usize = 250;
/// Largest tolerance of conjugate gradients: residual as a share of the gradient.
const RESIDUAL: f64 = 0.3;
/// Initial value and minimum of μ.
const FIRST_MU: f64 = 1.0;
const LEAST_MU: f64 = 1e-9;
/// Value of μ at which steps are lost in rounding errors.
const MOST_MU: f64 = 1e12;
/// Share of the predicted decrease from which a step is accepted.
const ACCEPTED: f64 = 1e-4;

/// Matrix of second derivatives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Matrix {
    /// Jᵀ(∂²/∂z²)J: positive semidefinite.
    GaussNewton,
    /// The full Hessian, as differences of the gradient: indefinite.
    Hessian,
}

/// Takes steps until the time budget is used up or no step descends.
pub fn levenberg_marquardt(run: &mut Run, matrix: Matrix) {
    let mut value = run.evaluator.evaluate();
    let mut x = run.evaluator.point().to_vec();
    let mut gradient = run.evaluator.gradient().to_vec();
    let first_norm = dot(&gradient, &gradient).sqrt();
    let (mut mu, mut growth) = (FIRST_MU, 2.0);
    let mut here = Local::at(run.stage, &x);
    while mu < MOST_MU {
        let Some(local) = &here else { return };
        let share = (dot(&gradient, &gradient).sqrt() / first_norm).sqrt().min(RESIDUAL);
        let step = local.solve(run, matrix, (&x, &gradient), mu, share);
        let moved = along(&x, 1.0, &step.direction);
        let reached = run.evaluator.evaluate_at(&moved);
        let gain = (value - reached) / step.predicted;
        if gain > ACCEPTED {
            mu = (mu * (1.0 - (2.0 * gain - 1.0).powi(3)).max(1.0 / 3.0)).max(LEAST_MU);
            growth = 2.0;
            (x, value) = (moved, reached);
            gradient.copy_from_slice(run.evaluator.gradient());
            if !run.reached(value) {
                return;
            }
            here = Local::at(run.stage, &x);
        } else {
            mu *= growth;
            growth *= 2.0;
            if run.elapsed() > 1.0 {
                return;
            }
        }
    }
}

/// The Gauss–Newton matrix at a point, its damped blocks and their inverses.
struct Local {
    curvature: Curvature,
    blocks: Blocks,
    inverse: Blocks,
}

/// A step, and the decrease that the quadratic model predicts for it.
struct Step {
    direction: Vec<f64>,
    predicted: f64,
}

impl Local {
    fn at(stage: &Stage, x: &[f64]) -> Option<Self> {
        let curvature = Curvature::at(stage, x);
        let blocks = curvature.blocks();
        let damping = BLOCK_DAMPING * blocks.mean_curvature();
        let blocks = blocks.damped(damping);
        let inverse = blocks.inverse()?;
        Some(Self { curvature, blocks, inverse })
    }

    fn solve(
        &self,
        run: &mut Run,
        matrix: Matrix,
        (x, gradient): (&[f64], &[f64]),
        mu: f64,
        share: f64,
    ) -> Step {
        let mut s = vec![0.0; x.len()];
        let mut hs = s.clone();
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut y = self.inverse.product(&residual);
        let mut p = y.clone();
        let mut ry = dot(&residual, &y);
        let enough = share * share * dot(gradient, gradient);
        for count in 0..STEPS {
            let hp = match matrix {
                Matrix::GaussNewton => {
                    run.products += 1;
                    self.curvature.product(&p)
                }
                Matrix::Hessian => hessian_product(run, x, gradient, &p),
            };
            let damped = along(&hp, mu, &self.blocks.product(&p));
            let curvature = dot(&p, &damped);
            if curvature <= 0.0 && count > 0 {
                break;
            }
            // In a direction of negative curvature, take the preconditioner's step length.
            let alpha = if curvature > 0.0 { ry / curvature } else { 1.0 };
            s = along(&s, alpha, &p);
            hs = along(&hs, alpha, &hp);
            if curvature <= 0.0 {
                break;
            }
            residual = along(&residual, -alpha, &damped);
            if dot(&residual, &residual) <= enough {
                break;
            }
            y = self.inverse.product(&residual);
            let next = dot(&residual, &y);
            p = along(&y, next / ry, &p);
            ry = next;
        }
        let predicted = -dot(gradient, &s) - 0.5 * dot(&s, &hs);
        Step { direction: s, predicted }
    }
}

/// Product of the full Hessian and v, as a forward difference of the gradient (one evaluation).
pub fn hessian_product(run: &mut Run, x: &[f64], gradient: &[f64], v: &[f64]) -> Vec<f64> {
    let length = dot(v, v).sqrt();
    if length == 0.0 {
        return vec![0.0; v.len()];
    }
    let offset = 1e-7 * (1.0 + dot(x, x).sqrt()) / length;
    run.evaluator.evaluate_at(&along(x, offset, v));
    let there = run.evaluator.gradient();
    there.iter().zip(gradient).map(|(there, here)| (there - here) / offset).collect()
}
