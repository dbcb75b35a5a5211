//! The objective and its descent on their own, for benchmarks and comparisons.

use std::ops::ControlFlow;

use super::error::FitError;
use super::factors::Factors;
use super::kernel::Measured;
use super::lagrangian::{InitialHessian, Lagrangian};
use super::lbfgs::{Iterate, Stopping};
use super::objective::Objective;
use super::penalty::Penalty;
use super::problem::{Precision, Problem, check_cap};
use super::start;

/// The objective of a problem at a point that can be evaluated repeatedly, moved, and used as a start of a descent. Fits spend
/// most of their time in it.
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
/// let value = evaluator.evaluate();
/// let point_and_gradient = evaluator.point().iter().zip(evaluator.gradient());
/// let downhill: Vec<f64> = point_and_gradient.map(|(x, slope)| x - 1e-3 * slope).collect();
/// assert!(evaluator.evaluate_at(&downhill) < value);
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

    /// The current point.
    pub fn point(&self) -> &[f64] {
        &self.x
    }

    /// Moves to `x` and evaluates there.
    ///
    /// # Panics
    /// If x does not have the length of the point.
    pub fn evaluate_at(&mut self, x: &[f64]) -> f64 {
        self.x.copy_from_slice(x);
        self.evaluate()
    }

    /// The gradient of the last evaluation, in the layout of the point.
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }

    /// The number of evaluations so far.
    pub fn evaluations(&self) -> usize {
        self.objective.evaluations
    }

    /// Runs L-BFGS from the point, with the line search and memory of fits, until no step decreases the value or `watch`
    /// breaks. After each iteration `watch` receives the number of evaluations, the value and the gradient. Ends with an
    /// evaluation at the final point and returns its value.
    pub fn descend(
        &mut self,
        initial: InitialHessian,
        mut watch: impl FnMut(usize, f64, &[f64]) -> ControlFlow<()>,
    ) -> f64 {
        let stopping = Stopping {
            iterations: usize::MAX,
            gradient: 0.0,
            relative_decrease: 0.0,
            absolute_decrease: 0.0,
            enough: f64::NEG_INFINITY,
        };
        let goes_on = |objective: &mut Objective<'p>, at: &Iterate<'_>| {
            watch(objective.evaluations, at.value, at.gradient).is_continue()
        };
        let Self { objective, penalty, .. } = self;
        self.x = Lagrangian { objective, penalty, initial, goes_on }.minimise(&self.x, stopping).x;
        self.evaluate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{Family, Parameters, Visibility};

    fn problem() -> Problem {
        let band = Parameters { window: Some(12), ..Parameters::default() };
        let family = Family::from_parameters("dirichlet-band", &band).unwrap();
        let target = family.build(40, 2, Visibility::Causal).unwrap();
        Problem::new(target, "global".parse().unwrap(), 4).unwrap()
    }

    #[test]
    fn a_descent_ends_where_its_watcher_breaks_off() {
        let problem = problem();
        for initial in [InitialHessian::Identity, InitialHessian::Blocks] {
            let mut evaluator = Evaluator::new(&problem, Precision::F64, None, (2.0, 0.1)).unwrap();
            let first = evaluator.evaluate();
            let mut seen = Vec::new();
            let last = evaluator.descend(initial, |evaluations, value, gradient| {
                seen.push((evaluations, value, gradient.to_vec()));
                if seen.len() == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(seen.len(), 7);
            assert!(seen.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "{initial:?}: {seen:?}");
            assert!(last < first, "{initial:?}: {last} from {first}");
            let (evaluations, value, gradient) = &seen[6];
            assert_eq!((last, evaluator.gradient()), (*value, gradient.as_slice()));
            assert_eq!(evaluator.evaluations(), evaluations + 1, "one more where it ended");
        }
    }

    #[test]
    fn a_point_moved_to_is_where_the_value_is_of() {
        let problem = problem();
        let mut evaluator = Evaluator::new(&problem, Precision::F64, None, (2.0, 0.1)).unwrap();
        let (start, value) = (evaluator.point().to_vec(), evaluator.evaluate());
        let moved: Vec<f64> = start.iter().map(|v| 1.5 * v).collect();
        assert_ne!(evaluator.evaluate_at(&moved), value);
        assert_eq!(evaluator.point(), moved);
        assert_eq!(evaluator.evaluate_at(&start), value);
    }
}
