//! The objective of one problem, as the optimiser sees it: a function of one vector.

pub(super) use super::kernel::Evaluation;
use super::kernel::Kernel;
use super::penalty::{Multipliers, Penalty};
use super::problem::{FitError, Problem};
use crate::simd::Extension;

/// The arithmetic of an evaluation. Vectors and sums over rows are float64 in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// float32 logits and products: half the time and half the memory.
    F32,
    /// float64 throughout.
    #[default]
    F64,
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl std::str::FromStr for Precision {
    type Err = FitError;

    fn from_str(text: &str) -> Result<Self, FitError> {
        match text {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(FitError::Precision(text.to_owned())),
        }
    }
}

/// The objective with its work space, so that an evaluation allocates nothing large.
pub(super) struct Objective<'p> {
    problem: &'p Problem,
    kernel: AnyKernel,
    /// Where the kernel is float32: what is measured beside the descent is float64 all the same.
    exact: Option<Kernel<f64>>,
    extension: Extension,
    pub evaluations: usize,
}

enum AnyKernel {
    F32(Kernel<f32>),
    F64(Kernel<f64>),
}

impl<'p> Objective<'p> {
    pub fn new(problem: &'p Problem, precision: Precision) -> Self {
        Self::with_extension(problem, precision, Extension::widest())
    }

    /// The objective evaluated with the vectors of `extension`: what differs is speed and rounding.
    fn with_extension(problem: &'p Problem, precision: Precision, extension: Extension) -> Self {
        let kernel = match precision {
            Precision::F32 => AnyKernel::F32(Kernel::new(problem, extension)),
            Precision::F64 => AnyKernel::F64(Kernel::new(problem, extension)),
        };
        Self { problem, kernel, exact: None, extension, evaluations: 0 }
    }

    pub fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Evaluates at x and writes the gradient of kl_nats plus the penalty to `gradient`.
    pub fn evaluate(
        &mut self,
        x: &[f64],
        penalty: Option<&Penalty>,
        gradient: &mut [f64],
    ) -> Evaluation {
        self.evaluations += 1;
        match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.evaluate(self.problem, x, penalty, Some(gradient)),
            AnyKernel::F64(kernel) => kernel.evaluate(self.problem, x, penalty, Some(gradient)),
        }
    }

    /// kl_nats and the logits' extremes at x, in float64 whatever the precision of the descent.
    pub fn measure(&mut self, x: &[f64]) -> Evaluation {
        let exact = match &mut self.kernel {
            AnyKernel::F64(kernel) => kernel,
            AnyKernel::F32(_) => {
                self.exact.get_or_insert_with(|| Kernel::new(self.problem, self.extension))
            }
        };
        exact.evaluate(self.problem, x, None, None)
    }

    /// The multipliers of every head and row after one update at x.
    pub fn updated_multipliers(&mut self, x: &[f64], penalty: &Penalty) -> Multipliers {
        match &mut self.kernel {
            AnyKernel::F32(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
            AnyKernel::F64(kernel) => kernel.updated_multipliers(self.problem, x, penalty),
        }
    }
}

#[cfg(test)]
mod tests;
