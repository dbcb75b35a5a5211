//! A point that descent moves, and the way from it to factors and back.

use std::borrow::Cow;

use crate::solver::curvature::Preconditioner;
use crate::solver::factors::Factors;
use crate::solver::penalty::Penalty;
use crate::solver::precision::Precision;
use crate::solver::problem::Problem;

/// What descent moves.
pub(in crate::solver) trait Varied: Sync {
    /// The vector of the factors at x.
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]>;

    /// Writes the gradient at x, given that in the vector of its factors.
    fn pull_back(&self, x: &[f64], of_factors: &[f64], to: &mut [f64]);

    /// The factors at x as a descent in `_precision` takes them.
    fn factors_in<'x>(&self, _precision: Precision, x: &'x [f64]) -> Cow<'x, [f64]> {
        self.factors(x)
    }

    /// [`Self::pull_back`] as a descent in `_precision` takes it.
    fn pull_back_in(&self, _precision: Precision, x: &[f64], of_factors: &[f64], to: &mut [f64]) {
        self.pull_back(x, of_factors, to);
    }

    /// The point of factors; none where not all have one.
    fn point_of(&self, _: &Factors) -> Option<Vec<f64>> {
        None
    }

    /// An approximate inverse of the Hessian at x, where one is known.
    fn preconditioner(&self, _: &Problem, _x: &[f64], _: &Penalty) -> Option<Preconditioner> {
        None
    }
}
