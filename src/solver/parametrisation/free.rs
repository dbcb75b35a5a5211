//! The parametrisation of free queries, keys and head weights: a point is their vector.

use std::borrow::Cow;

use super::varied::Varied;
use crate::solver::curvature::{Blocks, Preconditioner};
use crate::solver::factors::Factors;
use crate::solver::penalty::Penalty;
use crate::solver::problem::Problem;

/// Factors as their own parametrisation.
pub(in crate::solver) struct Free;

impl Varied for Free {
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]> {
        Cow::Borrowed(x)
    }

    fn pull_back(&self, _: &[f64], of_factors: &[f64], to: &mut [f64]) {
        to.copy_from_slice(of_factors);
    }

    fn point_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        Some(factors.to_vector())
    }

    fn preconditioner(&self, of: &Problem, x: &[f64], penalty: &Penalty) -> Option<Preconditioner> {
        Blocks::at(of, x, penalty).map(Preconditioner::Blocks)
    }
}
