//! A point that descent moves, and the way from it to factors and back.

use std::borrow::Cow;

use crate::fit::curvature::Preconditioner;
use crate::fit::factors::Factors;
use crate::fit::kernel::Evaluation;
use crate::fit::penalty::Penalty;
use crate::fit::problem::Problem;

/// Evaluates at factors' vector and writes the gradient in it.
pub(in crate::fit) type InFactors<'a> = &'a mut dyn FnMut(&[f64], &mut [f64]) -> Evaluation;

/// What descent moves.
pub(in crate::fit) trait Varied: Sync {
    /// The vector of the factors at x.
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]>;

    /// Evaluates at x and writes the gradient in x; `room` is work space that only this writes to.
    fn evaluate(
        &self,
        x: &[f64],
        gradient: &mut [f64],
        room: &mut Vec<f64>,
        in_factors: InFactors<'_>,
    ) -> Evaluation;

    /// The point of factors; none where not all have one.
    fn point_of(&self, factors: &Factors) -> Option<Vec<f64>>;

    /// An approximate inverse of the Hessian at x, where one is known.
    fn preconditioner(
        &self,
        problem: &Problem,
        x: &[f64],
        penalty: &Penalty,
    ) -> Option<Preconditioner>;
}

/// Factors that weights make out of given inputs.
pub(super) trait Made: Sync {
    /// The numbers of the factors.
    fn factors_length(&self) -> usize;

    /// Writes the queries and keys of a point, (n, rank) each.
    fn write_factors(&self, x: &[f64], to: &mut [f64]);

    /// Writes the gradient at point x, given that of its queries and keys.
    fn pull_back(&self, x: &[f64], of_factors: &[f64], to: &mut [f64]);
}

impl<M: Made> Varied for M {
    fn factors<'x>(&self, x: &'x [f64]) -> Cow<'x, [f64]> {
        let mut factors = vec![0.0; self.factors_length()];
        self.write_factors(x, &mut factors);
        Cow::Owned(factors)
    }

    fn evaluate(
        &self,
        x: &[f64],
        gradient: &mut [f64],
        room: &mut Vec<f64>,
        in_factors: InFactors<'_>,
    ) -> Evaluation {
        room.resize(2 * self.factors_length(), 0.0);
        let (factors, of_factors) = room.split_at_mut(self.factors_length());
        self.write_factors(x, factors);
        let evaluation = in_factors(factors, of_factors);
        self.pull_back(x, of_factors, gradient);
        evaluation
    }

    fn point_of(&self, _: &Factors) -> Option<Vec<f64>> {
        None
    }

    fn preconditioner(&self, _: &Problem, _: &[f64], _: &Penalty) -> Option<Preconditioner> {
        None
    }
}
