//! The objective on its own, for benchmarks and comparisons.

use super::error::FitError;
use super::factors::Factors;
use super::kernel::Measured;
use super::objective::Objective;
use super::penalty::Penalty;
use super::problem::{Precision, Problem, check_cap};
use super::start;

/// The objective of a problem at a point, which can be evaluated repeatedly. Fits spend most of their time in it.
///
/// A point is a vector x: for each head its queries, (n, rank), then its keys. With several heads, log π follows at the end.
///
/// ```
/// use rank_study::solver::{Evaluator, Precision, Problem};
/// use rank_study::targets::{Family, Layout, Visibility};
///
/// let target = Family::DirichletBand { window: 4, alpha: 1.0 }.build(12, 0, Visibility::Causal)?;
/// let problem = Problem::new(target, Layout::global(), 2)?;
/// let mut evaluator = Evaluator::new(&problem, Precision::F64, None, (8.0, 1.0))?;
/// assert!(evaluator.evaluate() > 0.0);
/// assert_eq!(evaluator.gradient().len(), 2 * 12 * 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Evaluator<'p> {
    objective: Objective<'p>,
    penalty: Penalty,
    x: Vec<f64>,
    gradient: Vec<f64>,
}

impl Measured {
    /// Measures `factors` on a problem, in float64.
    ///
    /// # Errors
    /// `OtherFactors` if the factors do not fit the problem.
    pub fn of(problem: &Problem, factors: &Factors) -> Result<Self, FitError> {
        problem.check_factors(factors)?;
        Ok(Objective::new(problem, Precision::F64).measure_factors(factors))
    }
}

impl<'p> Evaluator<'p> {
    /// Creates the objective kl_nats + (slope/2n)·Σ max(|z| − cap, 0)² at `factors`, or at random ones.
    ///
    /// # Errors
    /// `Cap`; `OtherFactors` if `factors` do not fit the problem.
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

    /// The gradient of the last evaluation, in the layout of the point.
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }
}
