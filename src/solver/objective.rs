//! The objective of one problem as the optimiser uses it: a function of one vector.

use std::sync::Arc;

use super::curvature::Preconditioner;
use super::error::FitError;
use super::factors::Factors;
use super::kernel::{Evaluation, Kernel, Measured};
use super::parametrisation::{Free, Varied};
use super::penalty::{Multipliers, Penalty};
use super::problem::{Precision, Problem};
use crate::numerics::Extension;

/// The objective with its work space, so that an evaluation makes no large allocation.
pub(super) struct Objective<'p> {
    problem: &'p Problem,
    kernel: AnyKernel,
    /// The float64 kernel for measurements if the descent uses float32.
    exact: Option<Kernel<f64>>,
    extension: Extension,
    varied: &'p dyn Varied,
    /// The gradient with respect to the vector of the factors.
    gradient: Vec<f64>,
    /// `Some` if the preconditioner is reused between stages: the number of evaluations when it was computed, and the
    /// preconditioner.
    curvature: Option<Option<(usize, Arc<Preconditioner>)>>,
    pub evaluations: usize,
}

/// The number of evaluations for which a preconditioner is reused.
pub(super) const KEPT: usize = 50;

enum AnyKernel {
    F32(Kernel<f32>),
    F64(Kernel<f64>),
}

impl<'p> Objective<'p> {
    pub fn new(problem: &'p Problem, precision: Precision) -> Self {
        Self::with_extension(problem, precision, Extension::widest())
    }

    /// The objective with the vector instructions of `extension`; results differ between extensions by rounding only.
    fn with_extension(problem: &'p Problem, precision: Precision, extension: Extension) -> Self {
        let kernel = match precision {
            Precision::F32 => AnyKernel::F32(Kernel::new(problem, extension)),
            Precision::F64 => AnyKernel::F64(Kernel::new(problem, extension)),
        };
        let (varied, gradient) = (&Free, Vec::new());
        Self {
            problem,
            kernel,
            exact: None,
            extension,
            varied,
            gradient,
            curvature: None,
            evaluations: 0,
        }
    }

    /// The objective as a function of a parametrisation `varied` instead of free factors.
    pub fn varying(problem: &'p Problem, precision: Precision, varied: &'p dyn Varied) -> Self {
        Self { varied, ..Self::new(problem, precision) }
    }

    /// Reuses the preconditioner between stages if `sparing` is true.
    pub fn sparing(self, sparing: bool) -> Self {
        Self { curvature: sparing.then_some(None), ..self }
    }

    pub fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// The arithmetic of value and gradient.
    pub fn precision(&self) -> Precision {
        match &self.kernel {
            AnyKernel::F32(_) => Precision::F32,
            AnyKernel::F64(_) => Precision::F64,
        }
    }

    /// Evaluates at x and writes the gradient of kl_nats plus the penalty to `gradient`.
    pub fn evaluate(
        &mut self,
        x: &[f64],
        penalty: Option<&Penalty>,
        gradient: &mut [f64],
    ) -> Evaluation {
        self.evaluations += 1;
        let (problem, precision) = (self.problem, self.precision());
        let factors = self.varied.factors(precision, x);
        self.gradient.resize(factors.len(), 0.0);
        let of_factors = Some(self.gradient.as_mut_slice());
        let evaluation = match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.evaluate(problem, &factors, penalty, of_factors),
            AnyKernel::F64(kernel) => kernel.evaluate(problem, &factors, penalty, of_factors),
        };
        self.varied.pull_back(precision, x, &self.gradient, gradient);
        evaluation
    }

    /// kl_nats and the extremes of the logits at x, in float64 for either precision of the descent.
    pub fn measure(&mut self, x: &[f64]) -> Measured {
        self.measure_vector(&self.varied.factors(Precision::F64, x))
    }

    /// As [`Self::measure`] for given factors.
    pub fn measure_factors(&mut self, factors: &Factors) -> Measured {
        self.measure_vector(&factors.to_vector())
    }

    /// The factors at x.
    pub fn factors(&self, x: &[f64]) -> Result<Factors, FitError> {
        let (heads, n, rank) = (self.problem.heads(), self.problem.n(), self.problem.rank());
        Factors::from_vector(&self.varied.factors(Precision::F64, x), heads, n, rank)
    }

    /// The point of given factors; `None` if the parametrisation has no such inverse.
    pub fn point_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        self.varied.point_of(factors)
    }

    /// An approximate inverse of the Hessian, if one is known.
    pub fn preconditioner(&mut self, x: &[f64], penalty: &Penalty) -> Option<Arc<Preconditioner>> {
        if let Some(Some((at, kept))) = &self.curvature
            && self.evaluations < at + KEPT
        {
            return Some(kept.clone());
        }
        let found = self.varied.preconditioner(self.problem, x, penalty).map(Arc::new)?;
        if let Some(kept) = &mut self.curvature {
            *kept = Some((self.evaluations, found.clone()));
        }
        Some(found)
    }

    fn measure_vector(&mut self, x: &[f64]) -> Measured {
        let exact = match &mut self.kernel {
            AnyKernel::F64(kernel) => kernel,
            AnyKernel::F32(_) => {
                self.exact.get_or_insert_with(|| Kernel::new(self.problem, self.extension))
            }
        };
        exact.evaluate(self.problem, x, None, None).measured
    }

    /// The multipliers of every head and row after one update at x.
    pub fn updated_multipliers(&mut self, x: &[f64], penalty: &Penalty) -> Multipliers {
        let x = &self.varied.factors(Precision::F64, x);
        match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
            AnyKernel::F64(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
        }
    }
}

#[cfg(test)]
mod tests;
