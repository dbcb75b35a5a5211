//! One evaluation of objective and gradient, as the solver runs it.

use super::factors::Factors;
use super::objective::{Objective, Precision};
use super::penalty::Penalty;
use super::problem::{FitError, Problem, check_cap};
use super::start;

/// The objective of a problem at factors that can be evaluated again and again: what a fit spends
/// its time on, for benches and comparisons.
pub struct Evaluator<'p> {
    objective: Objective<'p>,
    penalty: Penalty,
    x: Vec<f64>,
    gradient: Vec<f64>,
}

impl<'p> Evaluator<'p> {
    /// kl_nats + (slope/2n)·Σ max(|z| − cap, 0)² at `factors`, or at random ones.
    ///
    /// # Errors
    /// `Cap`; `Factors` where they do not belong to the problem.
    pub fn new(
        problem: &'p Problem,
        precision: Precision,
        factors: Option<&Factors>,
        (cap, slope): (f64, f64),
    ) -> Result<Self, FitError> {
        check_cap(cap)?;
        let x = match factors {
            Some(factors) => {
                problem.check_factors(factors)?;
                factors.to_vector()
            }
            None => start::random(problem, cap, 0)?.to_vector(),
        };
        Ok(Self {
            objective: Objective::new(problem, precision),
            penalty: Penalty::new(problem, cap, slope),
            gradient: vec![0.0; x.len()],
            x,
        })
    }

    /// Evaluates value and gradient once and returns the value, in nats.
    pub fn evaluate(&mut self) -> f64 {
        self.objective.evaluate(&self.x, Some(&self.penalty), &mut self.gradient).value
    }

    /// The gradient of the last evaluation: for each head that of its queries, (n, rank), then that
    /// of its keys; with several heads, at the end that of log π.
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }
}
