//! The trait of parametrisations: maps a point to factors and gradients back.

use std::borrow::Cow;

use crate::solver::curvature::Preconditioner;
use crate::solver::factors::Factors;
use crate::solver::penalty::Penalty;
use crate::solver::precision::Precision;
use crate::solver::problem::Problem;

/// A parametrisation of factors by a point that the descent moves.
pub(in crate::solver) trait Varied: Sync {
    /// The vector of the factors at x.
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]>;

    /// Writes the gradient at x from the gradient with respect to the vector of its factors.
    fn pull_back(&self, x: &[f64], of_factors: &[f64], to: &mut [f64]);

    /// The factors at x for a descent in `_precision`.
    fn factors_in<'x>(&self, _precision: Precision, x: &'x [f64]) -> Cow<'x, [f64]> {
        self.factors(x)
    }

    /// [`Self::pull_back`] for a descent in `_precision`.
    fn pull_back_in(&self, _precision: Precision, x: &[f64], of_factors: &[f64], to: &mut [f64]) {
        self.pull_back(x, of_factors, to);
    }

    /// The point of given factors; `None` if not all factors have one.
    fn point_of(&self, _: &Factors) -> Option<Vec<f64>> {
        None
    }

    /// An approximate inverse of the Hessian at x, if one is known.
    fn preconditioner(&self, _: &Problem, _x: &[f64], _: &Penalty) -> Option<Preconditioner> {
        None
    }
}
