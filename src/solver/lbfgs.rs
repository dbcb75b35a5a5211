//! Limited-memory BFGS with a strong-Wolfe line search and an optional preconditioner.
//!
//! Nocedal and Wright, *Numerical Optimization*, 2nd ed.: algorithm 7.4 (two-loop recursion) with
//! initial scaling (7.20), and algorithms 3.5 and 3.6 (line search), with cubic interpolation.

use std::collections::VecDeque;
use std::sync::Arc;

use super::curvature::Preconditioner;
use crate::numerics::{Number, add_and_dot, dot};

/// Number of stored pairs of steps and gradient changes.
const MEMORY: usize = 12;
/// Constant of the sufficient-decrease condition (3.6a).
const ARMIJO: f64 = 1e-4;
/// Constant of the curvature condition (3.7b); quasi-Newton directions need a loose one.
const CURVATURE: f64 = 0.9;
/// The most evaluations of one line search.
const SEARCH_LIMIT: usize = 20;

/// The stopping rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    /// The most iterations.
    pub iterations: usize,
    /// The largest entry of the gradient at a stationary point.
    pub gradient: f64,
    /// Stops when ten iterations together lower the value by less than this share of it, ...
    pub relative_decrease: f64,
    /// ... or by less than this in total.
    pub absolute_decrease: f64,
    /// Stops when the value is at most this.
    pub enough: f64,
}

/// The reason why a minimisation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The gradient or the decrease fell below its tolerance.
    Stationary,
    /// The value is low enough.
    Enough,
    /// Iterations ran out.
    Limit,
    /// The objective's `goes_on` returned `false`.
    Stopped,
    /// The value or gradient became NaN or infinite.
    NotFinite,
}

/// The final point.
#[derive(Debug)]
pub(super) struct Minimum {
    pub x: Vec<f64>,
    pub value: f64,
    pub gradient_norm: f64,
    pub iterations: usize,
    pub ending: Ending,
}

/// Number of iterations over which the decrease is measured.
const PATIENCE: usize = 10;

/// Iterations between two updates of the preconditioner.
const REFRESH: usize = 100;

/// The state of a minimisation after an iteration.
pub(super) struct Iterate<'a> {
    pub x: &'a [f64],
    pub value: f64,
    /// Number of iterations so far.
    pub iterations: usize,
}

/// A smooth function to minimise.
pub(super) trait Smooth {
    /// The value at x; writes the gradient.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;

    /// Called after each iteration; returns whether to continue.
    fn goes_on(&mut self, _at: &Iterate<'_>) -> bool {
        true
    }

    /// An approximate inverse of the Hessian near x, if there is one.
    fn preconditioner(&mut self, _x: &[f64]) -> Option<Arc<Preconditioner>> {
        None
    }
}

/// Minimises `objective` from x. Pairs are stored in T: float32 if gradients have no more digits, since apart from evaluations
/// reading the pairs takes most of an iteration's time.
pub(super) fn minimise<T: Number>(
    x: Vec<f64>,
    stopping: Stopping,
    objective: &mut impl Smooth,
) -> Minimum {
    let length = x.len();
    let mut at = Point { value: 0.0, gradient: vec![0.0; length], x };
    at.value = objective.evaluate(&at.x, &mut at.gradient);
    let mut preconditioner = None;
    let mut history = History::<T>::default();
    let mut values = VecDeque::with_capacity(PATIENCE);
    let mut iterations = 0;
    let ending = loop {
        if !at.value.is_finite() || !at.gradient.iter().all(|g| g.is_finite()) {
            break Ending::NotFinite;
        }
        if norm_max(&at.gradient) <= stopping.gradient {
            break Ending::Stationary;
        }
        if at.value <= stopping.enough {
            break Ending::Enough;
        }
        if values.len() == PATIENCE {
            let before: f64 = values.pop_front().unwrap_or(f64::INFINITY);
            let enough = stopping.relative_decrease * at.value.abs() + stopping.absolute_decrease;
            if before - at.value <= enough {
                break Ending::Stationary;
            }
        }
        if iterations == stopping.iterations {
            break Ending::Limit;
        }
        values.push_back(at.value);
        if iterations % REFRESH == 0 {
            preconditioner = objective.preconditioner(&at.x);
        }
        let preconditioner = preconditioner.as_deref();
        let mut direction = history.direction(&at.gradient, preconditioner);
        let mut slope = dot(&direction, &at.gradient);
        if slope >= 0.0 {
            // Rounding has spoilt the curvature information: restart with steepest descent.
            history = History::default();
            direction = history.direction(&at.gradient, preconditioner);
            slope = dot(&direction, &at.gradient);
        }
        let first_step = if history.pairs.is_empty() && preconditioner.is_none() {
            (1.0 / norm_max(&at.gradient)).min(1.0)
        } else {
            1.0
        };
        iterations += 1;
        let Some(next) = line_search(&at, &direction, slope, first_step, objective) else {
            if history.pairs.is_empty() {
                // Even the direction of steepest descent does not decrease the value: only rounding is left.
                break Ending::Stationary;
            }
            history = History::default();
            continue;
        };
        history.push(&at, &next);
        at = next;
        if !objective.goes_on(&Iterate { x: &at.x, value: at.value, iterations }) {
            break Ending::Stopped;
        }
    };
    Minimum { value: at.value, gradient_norm: norm_max(&at.gradient), x: at.x, iterations, ending }
}

struct Point {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

struct History<T> {
    /// (step, gradient change, 1 / their product), oldest first.
    pairs: VecDeque<(Vec<T>, Vec<T>, f64)>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { pairs: VecDeque::new() }
    }
}

impl<T: Number> History<T> {
    fn push(&mut self, from: &Point, to: &Point) {
        let differences = |to: &[f64], from: &[f64]| -> Vec<T> {
            to.iter().zip(from).map(|(a, b)| T::from_f64(a - b)).collect()
        };
        let step = differences(&to.x, &from.x);
        let change = differences(&to.gradient, &from.gradient);
        // Products are computed from the pair as it is stored.
        let product = dot(&step, &change);
        if product > f64::EPSILON * dot(&change, &change) {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back((step, change, 1.0 / product));
        }
    }

    /// −H·gradient by the two-loop recursion. It starts from B⁻¹ if there is a preconditioner, scaled by (7.20) in its metric.
    fn direction(&self, gradient: &[f64], preconditioner: Option<&Preconditioner>) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.pairs.len());
        let newest = self.pairs.back();
        let mut along = newest.map_or(0.0, |(step, ..)| dot(step, &direction));
        let mut older = self.pairs.iter().rev().skip(1);
        for (_, change, inverse) in self.pairs.iter().rev() {
            let share = inverse * along;
            let next = older.next().map_or(&[][..], |(step, ..)| step);
            along = add_and_dot(&mut direction, -share, change, next);
            shares.push(share);
        }
        let mut scaled = newest.map(|(_, change, _)| widened(change)).unwrap_or_default();
        if let Some(preconditioner) = preconditioner {
            // Both vectors in one pass over the preconditioner's memory, which dominates the time.
            preconditioner.apply([&mut direction, &mut scaled]);
        }
        if let Some((_, change, inverse)) = newest {
            let scale = 1.0 / (inverse * dot(change, &scaled));
            direction.iter_mut().for_each(|v| *v *= scale);
        }
        let oldest = self.pairs.front();
        let mut along = oldest.map_or(0.0, |(_, change, _)| dot(change, &direction));
        let mut newer = self.pairs.iter().skip(1);
        for ((step, _, inverse), share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let next = newer.next().map_or(&[][..], |(_, change, _)| change);
            along = add_and_dot(&mut direction, share - inverse * along, step, next);
        }
        direction
    }
}

fn widened<T: Number>(v: &[T]) -> Vec<f64> {
    v.iter().map(|&v| v.to_f64()).collect()
}

/// One trial of a line search: step length, value, slope along the direction.
#[derive(Clone, Copy)]
struct Trial {
    step: f64,
    value: f64,
    slope: f64,
}

/// A point along the direction that meets the strong Wolfe conditions, or at the evaluation limit the best point with
/// sufficient decrease. Returns `None` if no such point was found.
fn line_search(
    from: &Point,
    direction: &[f64],
    slope: f64,
    first_step: f64,
    objective: &mut impl Smooth,
) -> Option<Point> {
    let start = Trial { step: 0.0, value: from.value, slope };
    let mut best: Option<Point> = None;
    let (mut low, mut high): (Trial, Option<Trial>) = (start, None);
    let mut step = first_step;
    for _ in 0..SEARCH_LIMIT {
        let x: Vec<f64> = from.x.iter().zip(direction).map(|(x, p)| x + step * p).collect();
        let mut gradient = vec![0.0; x.len()];
        let value = objective.evaluate(&x, &mut gradient);
        let trial = Trial { step, value, slope: dot(&gradient, direction) };
        let descends = value <= start.value + ARMIJO * step * slope && value.is_finite();
        if descends && best.as_ref().is_none_or(|best| value < best.value) {
            best = Some(Point { x, value, gradient });
        }
        if !descends || value >= low.value {
            high = Some(trial);
        } else if trial.slope.abs() <= -CURVATURE * slope {
            return best;
        } else {
            if trial.slope * (high.map_or(f64::INFINITY, |h| h.step) - low.step) >= 0.0 {
                high = Some(low);
            }
            low = trial;
        }
        step = match high {
            Some(high) => interpolate(low, high),
            None => 4.0 * step,
        };
    }
    best
}

/// The minimiser of the cubic through two trials, kept away from the ends of their interval.
fn interpolate(a: Trial, b: Trial) -> f64 {
    let (low, high) = (a.step.min(b.step), a.step.max(b.step));
    let middle = 0.5 * (low + high);
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.step - b.step);
    let square = d1 * d1 - a.slope * b.slope;
    if square.is_nan() || square < 0.0 {
        return middle;
    }
    let d2 = (b.step - a.step).signum() * square.sqrt();
    let step = b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    let margin = 0.1 * (high - low);
    if step.is_finite() { step.clamp(low + margin, high - margin) } else { middle }
}

fn norm_max(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |norm, v| v.abs().max(norm))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<F: FnMut(&[f64], &mut [f64]) -> f64> Smooth for F {
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
            self(x, gradient)
        }
    }

    const STOPPING: Stopping = Stopping {
        iterations: 500,
        gradient: 1e-9,
        relative_decrease: 0.0,
        absolute_decrease: 0.0,
        enough: f64::NEG_INFINITY,
    };

    #[test]
    fn finds_rosenbrocks_minimum() {
        let minimum = minimise::<f64>(
            vec![-1.2, 1.0, -1.2, 1.0],
            STOPPING,
            &mut |x: &[f64], g: &mut [f64]| {
                g.fill(0.0);
                let mut value = 0.0;
                for i in 0..3 {
                    let (a, b) = (1.0 - x[i], x[i + 1] - x[i] * x[i]);
                    value += a * a + 100.0 * b * b;
                    g[i] += -2.0 * a - 400.0 * x[i] * b;
                    g[i + 1] += 200.0 * b;
                }
                value
            },
        );
        assert_eq!(minimum.ending, Ending::Stationary);
        for x in &minimum.x {
            assert!((x - 1.0).abs() < 1e-6, "{:?}", minimum.x);
        }
    }

    /// Pairs in float32 only steer the search; the result is not rounded.
    #[test]
    fn an_ill_conditioned_quadratic_reaches_its_gradient_tolerance() {
        let patient = Stopping { iterations: 5000, ..STOPPING };
        let mut quadratic = |x: &[f64], g: &mut [f64]| {
            let mut value = 0.0;
            for (i, (x, g)) in x.iter().zip(g).enumerate() {
                let curvature = 10f64.powf(i as f64 / 12.0);
                value += 0.5 * curvature * x * x;
                *g = curvature * x;
            }
            value
        };
        let exact = minimise::<f64>(vec![1.0; 50], patient, &mut quadratic);
        let single = minimise::<f32>(vec![1.0; 50], patient, &mut quadratic);
        for norm in [exact.gradient_norm, single.gradient_norm] {
            assert!(norm <= 1e-9, "{norm}");
        }
    }

    #[test]
    fn a_limit_an_enough_value_and_one_that_is_not_finite_are_reported() {
        let slow = |stopping: Stopping| {
            minimise::<f64>(vec![8.0, 1.0], stopping, &mut |x: &[f64], g: &mut [f64]| {
                g.copy_from_slice(&[x[0].powi(3), 100.0 * x[1]]);
                0.25 * x[0].powi(4) + 50.0 * x[1] * x[1]
            })
        };
        assert_eq!(slow(Stopping { iterations: 1, ..STOPPING }).ending, Ending::Limit);
        let enough = slow(Stopping { enough: 3.0, ..STOPPING });
        assert_eq!(enough.ending, Ending::Enough);
        assert!((0.0..=3.0).contains(&enough.value), "{}", enough.value);
        let broken = minimise::<f64>(vec![1.0], STOPPING, &mut |_: &[f64], g: &mut [f64]| {
            g[0] = f64::NAN;
            f64::NAN
        });
        assert_eq!(broken.ending, Ending::NotFinite);
    }
}
