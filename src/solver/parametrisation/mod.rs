//! Parametrisations: the variables of a fit, and the factors they stand for.

mod inputs;
mod tied;
mod tied_curvature;

use std::borrow::Cow;

use crate::solver::block_inverses::Blocks;
use crate::solver::curvature::Preconditioner;
use crate::solver::factors::Factors;
use crate::solver::penalty::Penalty;
use crate::solver::problem::{Precision, Problem};

pub use inputs::Inputs;
pub use tied::{Normalisation, SharedProjection};

/// A parametrisation of factors by a point that the descent moves.
pub(in crate::solver) trait Varied: Sync {
    /// The vector of the factors at x, for a descent in `precision`; exact in float64.
    fn factors<'x>(&self, precision: Precision, x: &'x [f64]) -> Cow<'x, [f64]>;

    /// Writes the gradient at x from the gradient with respect to the vector of its factors, for a descent in `precision`.
    fn pull_back(&self, precision: Precision, x: &[f64], of_factors: &[f64], to: &mut [f64]);

    /// The point of given factors; `None` if not all factors have one.
    fn point_of(&self, _: &Factors) -> Option<Vec<f64>> {
        None
    }

    /// An approximate inverse of the Hessian at x, if one is known.
    fn preconditioner(&self, _: &Problem, _x: &[f64], _: &Penalty) -> Option<Preconditioner> {
        None
    }
}

/// Factors as their own parametrisation.
pub(in crate::solver) struct Free;

impl Varied for Free {
    fn factors<'x>(&self, _: Precision, x: &'x [f64]) -> Cow<'x, [f64]> {
        Cow::Borrowed(x)
    }

    fn pull_back(&self, _: Precision, _: &[f64], of_factors: &[f64], to: &mut [f64]) {
        to.copy_from_slice(of_factors);
    }

    fn point_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        Some(factors.to_vector())
    }

    fn preconditioner(&self, of: &Problem, x: &[f64], penalty: &Penalty) -> Option<Preconditioner> {
        Blocks::at(of, x, penalty).map(Preconditioner::Blocks)
    }
}
