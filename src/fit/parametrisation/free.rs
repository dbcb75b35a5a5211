//! Queries and keys that are free: a point is their vector.

use std::borrow::Cow;

use super::varied::{InFactors, Varied};
use crate::fit::curvature::Preconditioner;
use crate::fit::factors::Factors;
use crate::fit::kernel::Evaluation;
use crate::fit::penalty::Penalty;
use crate::fit::problem::Problem;

/// Every query, every key and the weights of heads, each on its own.
pub(in crate::fit) struct Free;

impl Varied for Free {
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]> {
        Cow::Borrowed(x)
    }

    fn evaluate(
        &self,
        x: &[f64],
        gradient: &mut [f64],
        _: &mut Vec<f64>,
        in_factors: InFactors<'_>,
    ) -> Evaluation {
        in_factors(x, gradient)
    }

    fn point_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        Some(factors.to_vector())
    }

    fn preconditioner(
        &self,
        problem: &Problem,
        x: &[f64],
        penalty: &Penalty,
    ) -> Option<Preconditioner> {
        Preconditioner::at(problem, x, penalty)
    }
}
