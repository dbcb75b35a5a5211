//! The measurement: loss, Hessian and classifier of a model on a text.

use std::collections::HashMap;

use nalgebra::{DMatrix, SymmetricEigen};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::classifier::classify_parts;
use super::complex::Number;
use super::passes::{Passes, Weights};
use crate::lm::{LmError, Model, Positions, Slopes};
use crate::record::record;

/// The relative residual at which an eigenvalue counts as converged.
pub const EIGENVALUE_TOLERANCE: f64 = 1e-3;

/// h = 2⁻¹⁰⁰.
const STEP: f64 = 1.0 / (1u128 << 100) as f64;

record! {
    /// Curvature of the mean cross-entropy of some passages at trained weights.
    pub struct FlatnessMeasurement {
        /// the number of passages
        #[range = Counted]
        passages: usize,
        /// the tokens per passage
        #[range = Counted]
        n: usize,
        /// the number of weights
        #[range = Counted]
        parameters: usize,
        /// mean cross-entropy of the tokens after the first
        #[unit = "nats"]
        loss_nats: f64,
        /// max |z| of QKᵀ/√d over all heads and passages
        #[unit = "nats"]
        max_abs_logit: f64,
        /// the trace of the loss's Hessian: mean of vᵀHv over random v of ±1
        trace: f64,
        /// the standard error of that mean
        trace_error: f64,
        /// θ, the Hessian's largest eigenvalue by Lanczos iteration
        largest_eigenvalue: f64,
        /// ‖Hu − θu‖/|θ| of its vector
        eigenvalue_residual: f64,
        /// the number of Lanczos iterations
        #[range = Counted]
        iterations: usize,
        /// share of windows whose part of the text a linear classifier of the mean hidden state names, of six parts
        classifier_accuracy: f64,
        /// the classifier's mean cross-entropy
        #[unit = "nats"]
        classifier_loss_nats: f64,
    }
}

impl FlatnessMeasurement {
    /// Measures `model` on `passages` of one length, and the classifier on `text`. The trace has `probes` random vectors, the
    /// eigenvalue at most `iterations` products. `None` if `goes_on`, called before each product, returned `false`.
    ///
    /// # Errors
    /// A model with parts that are not supported; a passage or text that is too short, too long or has unknown tokens.
    pub fn measure(
        model: &Model,
        passages: &[Vec<u32>],
        text: &[u32],
        [probes, iterations]: [usize; 2],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, LmError> {
        let loss = Loss::new(model, passages)?;
        let trace = loss.trace(probes, goes_on);
        let Some(([trace, trace_error], largest)) =
            trace.zip(loss.largest_eigenvalue(iterations, goes_on))
        else {
            return Ok(None);
        };
        let at = loss.along(&vec![0.0; loss.values.len()]);
        let [classifier_accuracy, classifier_loss_nats] = classify_parts(model, text)?;
        Ok(Some(Self {
            passages: passages.len(),
            n: passages[0].len(),
            parameters: loss.values.len(),
            loss_nats: at.nats,
            max_abs_logit: at.max_abs_logit,
            trace,
            trace_error,
            largest_eigenvalue: largest.value,
            eigenvalue_residual: largest.residual,
            iterations: largest.iterations,
            classifier_accuracy,
            classifier_loss_nats,
        }))
    }
}

/// The mean cross-entropy of all tokens of some passages after the first, as a function of a model's weights.
pub(super) struct Loss<'p> {
    weights: Weights,
    pub values: Vec<f64>,
    passages: &'p [Vec<u32>],
}

/// The loss and its derivatives along a direction v.
pub(super) struct Derivatives {
    pub nats: f64,
    pub max_abs_logit: f64,
    /// g + ihHv.
    pub gradient: Vec<Number>,
}

/// A Ritz value, at most the largest eigenvalue; some eigenvalue lies within its relative residual.
pub(super) struct Ritz {
    pub value: f64,
    pub residual: f64,
    pub iterations: usize,
}

impl<'p> Loss<'p> {
    pub fn new(model: &Model, passages: &'p [Vec<u32>]) -> Result<Self, LmError> {
        let shape = model.shape().clone();
        let is_lacking = shape.sigma_reparam
            || shape.ternary
            || shape.memory_slots.is_some()
            || shape.recursion.is_some()
            || shape.softcap.is_some()
            || shape.slopes == Slopes::Learned
            || shape.positions == Positions::Sinusoidal;
        if is_lacking {
            let why = "flatness lacks sigma-reparam, softcap, ternary, gam, recursions, learned slopes and sinusoidal positions; leave \
                       the run out";
            return Err(LmError::Refused(why.to_owned()));
        }
        let (tokens, symbols) = (2..shape.context + 2, 0..shape.vocabulary_size as u32);
        let fits = |passage: &Vec<u32>| {
            tokens.contains(&passage.len()) && passage.iter().all(|id| symbols.contains(id))
        };
        if !passages.iter().all(fits) {
            let why = format!("passages must have {tokens:?} tokens in {symbols:?}");
            return Err(LmError::Refused(why));
        }
        let (mut values, mut places) = (Vec::new(), HashMap::new());
        for weight in model.weights() {
            let shape = weight.variable.dims2().unwrap_or((1, weight.variable.elem_count()));
            places.insert(weight.name.clone(), (values.len(), shape));
            let numbers = weight.variable.flatten_all()?.to_vec1::<f32>()?;
            values.extend(numbers.into_iter().map(f64::from));
        }
        Ok(Self { weights: Weights { shape, places }, values, passages })
    }

    /// Does not depend on the number of threads, which share the passages.
    pub fn along(&self, direction: &[f64]) -> Derivatives {
        let moved = self.values.iter().zip(direction).map(|(&at, v)| Number::new(at, STEP * v));
        let moved: Vec<Number> = moved.collect();
        let passages = self.passages.par_iter();
        let passes: Vec<Passes<'_>> =
            passages.map(|passage| Passes::over(&self.weights, &moved, passage)).collect();
        let tokens: usize = self.passages.iter().map(|passage| passage.len() - 1).sum();
        let share = 1.0 / tokens as f64;
        let mean = |at: usize| passes.iter().map(|one| one.gradient[at]).sum::<Number>() * share;
        Derivatives {
            nats: share * passes.iter().map(|one| one.nats).sum::<f64>(),
            max_abs_logit: passes.iter().fold(0.0, |most, one| most.max(one.max_abs_logit)),
            gradient: (0..moved.len()).map(mean).collect(),
        }
    }

    /// Hv.
    pub fn product(&self, direction: &[f64]) -> Vec<f64> {
        self.along(direction).gradient.iter().map(|g| g.im / STEP).collect()
    }

    /// The trace of H and its standard error: the mean of vᵀHv over random v of ±1 is unbiased (Hutchinson 1990,
    /// Communications in Statistics 19(2)).
    pub fn trace(&self, probes: usize, goes_on: &dyn Fn() -> bool) -> Option<[f64; 2]> {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut one = |_| {
            let sign = |_: &f64| if rng.random() { 1.0 } else { -1.0 };
            let v: Vec<f64> = self.values.iter().map(sign).collect();
            goes_on().then(|| dot(&v, &self.product(&v)))
        };
        let found = (0..probes).map(&mut one).collect::<Option<Vec<f64>>>()?;
        let count = probes as f64;
        let mean = found.iter().sum::<f64>() / count;
        let squares: f64 = found.iter().map(|one| (one - mean).powi(2)).sum();
        Some([mean, (squares / (count - 1.0) / count).sqrt()])
    }

    /// The largest eigenvalue of H by Lanczos iteration with full reorthogonalisation (Golub and Van Loan, *Matrix
    /// Computations*, chapter 10), until its residual is at most [`EIGENVALUE_TOLERANCE`], or for `most` products.
    pub fn largest_eigenvalue(&self, most: usize, goes_on: &dyn Fn() -> bool) -> Option<Ritz> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut next: Vec<f64> = self.values.iter().map(|_| rng.random::<f64>() - 0.5).collect();
        let mut length = dot(&next, &next).sqrt();
        let (mut basis, mut diagonal, mut beside) = (Vec::new(), Vec::new(), Vec::new());
        while goes_on() {
            next.iter_mut().for_each(|x| *x /= length);
            let mut image = self.product(&next);
            diagonal.push(dot(&next, &image));
            basis.push(next);
            // Two rounds leave only rounding along earlier vectors.
            for other in basis.iter().chain(&basis) {
                let share = dot(other, &image);
                image.iter_mut().zip(other).for_each(|(x, other)| *x -= share * other);
            }
            length = dot(&image, &image).sqrt();
            let iterations = basis.len();
            let entry = |row: usize, column: usize| match row.abs_diff(column) {
                0 => diagonal[row],
                1 => beside[row.min(column)],
                _ => 0.0,
            };
            let ritz = SymmetricEigen::new(DMatrix::from_fn(iterations, iterations, entry));
            let (at, value) = ritz.eigenvalues.argmax();
            let residual = (length * ritz.eigenvectors[(iterations - 1, at)] / value).abs();
            if residual <= EIGENVALUE_TOLERANCE || iterations == most {
                return Some(Ritz { value, residual, iterations });
            }
            beside.push(length);
            next = image;
        }
        None
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
