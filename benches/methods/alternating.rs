//! Alternating Newton: steps on all queries with the keys fixed, then on all keys with the queries fixed.
//!
//! With K fixed, each query is a convex problem with d unknowns. It takes a damped Newton step with its own exact
//! Hessian and step length. With Q fixed, all keys form one convex problem, because each row's softmax couples them.
//! They use d × d blocks that together bound the Hessian from above, and one common step length.

use crate::curvature::{Curvature, Half};
use crate::run::{Run, along, dot};

/// Initial damping as a share of the mean curvature, and its bounds.
const DAMPING: f64 = 1e-2;
const LEAST_DAMPING: f64 = 1e-6;
const MOST_DAMPING: f64 = 1e3;
/// Maximum number of evaluations per line search.
const TRIALS: usize = 12;
/// A step is too long if the slope at its end is positive and exceeds this share of the first slope's magnitude.
const OVERSHOOT: f64 = 0.5;
/// Constant of the sufficient decrease (Armijo) condition.
const ARMIJO: f64 = 1e-4;

/// Sweeps until the time budget is used up, or until neither half moves at the largest damping.
pub fn alternating(run: &mut Run) {
    let mut dampings = [DAMPING; 2];
    let mut value = run.evaluator.evaluate();
    loop {
        let mut stuck = 0;
        for (half, damping) in [Half::Queries, Half::Keys].into_iter().zip(&mut dampings) {
            match step(run, half, *damping, value) {
                Some((reached, trials)) => {
                    value = reached;
                    *damping *= match trials {
                        1 => 0.3,
                        2 | 3 => 1.0,
                        _ => 4.0,
                    };
                }
                None => {
                    stuck += usize::from(*damping >= MOST_DAMPING);
                    *damping *= 10.0;
                }
            }
            *damping = damping.clamp(LEAST_DAMPING, MOST_DAMPING);
            if !run.reached(value) {
                return;
            }
        }
        if stuck == 2 {
            return;
        }
    }
}

/// Takes one step of one half; returns the value reached and the number of evaluations. Returns `None` if no step
/// length descends; the evaluator is then back at its old point.
fn step(run: &mut Run, half: Half, damping: f64, value: f64) -> Option<(f64, usize)> {
    let x = run.evaluator.point().to_vec();
    let blocks = Curvature::at(run.stage, &x).blocks().half(half);
    let damping = damping * blocks.mean_curvature();
    let inverse = blocks.damped(damping).inverse()?;
    let (first, length) = match half {
        Half::Queries => (0, x.len() / 2),
        Half::Keys => (x.len() / 2, x.len() / 2),
    };
    let mut direction = vec![0.0; x.len()];
    let gradient = &run.evaluator.gradient()[first..first + length];
    for (to, v) in direction[first..].iter_mut().zip(inverse.product(gradient)) {
        *to = -v;
    }
    let reached = match half {
        Half::Queries => row_search(run, &x, direction, value),
        Half::Keys => backtrack(run, &x, &direction, value),
    };
    if reached.is_none() {
        run.evaluator.evaluate_at(&x);
    }
    reached
}

/// Each row shortens its step until its slope there is no longer steeply uphill. This needs no values of single rows,
/// because a convex function decreases while its slope is negative.
fn row_search(
    run: &mut Run,
    x: &[f64],
    mut direction: Vec<f64>,
    value: f64,
) -> Option<(f64, usize)> {
    let d = run.stage.problem.rank();
    let slopes = |run: &Run, direction: &[f64]| -> Vec<f64> {
        let rows = run.evaluator.gradient().chunks_exact(d).zip(direction.chunks_exact(d));
        rows.take(x.len() / (2 * d)).map(|(g, v)| dot(g, v)).collect()
    };
    let mut first = slopes(run, &direction);
    for trial in 1..=TRIALS {
        let reached = run.evaluator.evaluate_at(&along(x, 1.0, &direction));
        let now = slopes(run, &direction);
        let descends = reached < value;
        let mut shortened = false;
        for (row, first) in first.iter_mut().enumerate() {
            let too_far = now[row] > if descends { -OVERSHOOT * *first } else { 0.0 };
            if !(too_far || now[row].is_nan()) {
                continue;
            }
            // Zero of the slope's secant.
            let share = (*first / (*first - now[row])).clamp(0.1, 0.9);
            let share = if share.is_nan() { 0.1 } else { share };
            direction[row * d..(row + 1) * d].iter_mut().for_each(|v| *v *= share);
            *first *= share;
            shortened = true;
        }
        if descends && !shortened {
            return Some((reached, trial));
        }
        if !shortened {
            return None;
        }
    }
    None
}

/// One step length for all: halved until the value decreases enough.
fn backtrack(run: &mut Run, x: &[f64], direction: &[f64], value: f64) -> Option<(f64, usize)> {
    let slope = dot(run.evaluator.gradient(), direction);
    let mut length = 1.0;
    for trial in 1..=TRIALS {
        let reached = run.evaluator.evaluate_at(&along(x, length, direction));
        if reached < value + ARMIJO * length * slope {
            return Some((reached, trial));
        }
        length *= 0.5;
    }
    None
}
