//! Quantities of one step: its learning rate, the windows of each worker, and the norm of its gradients.

use std::f64::consts::PI;
use std::ops::Range;

use candle_core::Tensor;
use rayon::prelude::*;

use crate::lm::error::require;
use crate::lm::operators::with_elements;
use crate::lm::workers::Workers;
use crate::lm::{LmError, Schedule, TrainDefinition, simd};

/// The learning rate of step `step`, counted from 1: linear to the peak during warm-up, then given by
/// the schedule. With s steps after warm-up, of which u are done,
/// cosine = peak · (f + (1 − f) · ½ (1 + cos(π u / s))), with f the final fraction.
pub(super) fn learning_rate(definition: &TrainDefinition, step: usize) -> f64 {
    let peak = definition.learning_rate;
    let warmup = definition.warmup_steps;
    if step <= warmup {
        return peak * step as f64 / warmup as f64;
    }
    match definition.schedule {
        Schedule::Constant => peak,
        Schedule::Cosine => {
            let left = definition.steps.saturating_sub(warmup).max(1);
            let done = (step - warmup) as f64 / left as f64;
            let last = definition.final_learning_rate;
            peak * (last + (1.0 - last) * 0.5 * (1.0 + (PI * done.min(1.0)).cos()))
        }
    }
}

/// One worker's share of the windows of a step: contiguous, of the same size for all workers, and split into as few equal
/// parts as fit into a batch each. A single worker has all windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    first: usize,
    parts: usize,
    /// Number of windows per part.
    pub part: usize,
    /// Number of parts of all workers together.
    pub all_parts: usize,
}

impl Share {
    /// The share of this worker.
    ///
    /// # Errors
    /// A number of windows that is not a multiple of the number of workers.
    pub fn of(definition: &TrainDefinition, workers: &dyn Workers) -> Result<Self, LmError> {
        let world = workers.size();
        let windows = definition.batch * definition.accumulation;
        require(
            windows.is_multiple_of(world),
            "batch",
            definition.batch,
            &format!(
                "must give {world} workers equal shares of the batch × accumulation = {windows} sequences per step; \
                 change either number"
            ),
        )?;
        let mine = windows / world;
        let mut parts = mine.div_ceil(definition.batch);
        while !mine.is_multiple_of(parts) {
            parts += 1;
        }
        let first = workers.rank() * mine;
        Ok(Self { first, parts, part: mine / parts, all_parts: parts * world })
    }

    /// The windows of each part, as ranges of the step's windows.
    pub fn parts(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.parts).map(move |part| {
            let first = self.first + part * self.part;
            first..first + self.part
        })
    }
}

/// Number of squares of gradients that are added in float32.
const RUN: usize = 1024;

/// ‖g‖ over all gradients: runs of squares are summed in float32, and the runs' sums in double precision and in order.
///
/// # Errors
/// Only errors of the tensor library.
pub(super) fn gradient_norm(gradients: &[Tensor]) -> candle_core::Result<f64> {
    #[cfg(feature = "cuda")]
    if gradients.iter().any(|gradient| gradient.device().is_cuda()) {
        return Ok(crate::lm::cuda::squared_norm(gradients)?.sqrt());
    }
    let of_one = |g: &[f32]| g.chunks(RUN).map(|run| f64::from(simd::dot(run, run))).sum();
    let squares = gradients
        .par_iter()
        .map(|gradient| with_elements([gradient], |[g]| Ok(of_one(g))))
        .collect::<candle_core::Result<Vec<f64>>>()?;
    Ok(squares.into_iter().sum::<f64>().sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_to_the_peak_and_falls_to_the_final_fraction() {
        let mut definition = TrainDefinition {
            steps: 110,
            warmup_steps: 10,
            learning_rate: 2.0,
            final_learning_rate: 0.1,
            ..TrainDefinition::default()
        };
        for (step, rate) in [(1, 0.2), (5, 1.0), (10, 2.0), (60, 1.1), (110, 0.2)] {
            let found = learning_rate(&definition, step);
            assert!((found - rate).abs() < 1e-12, "step {step}: {found}, not {rate}");
        }
        definition.schedule = Schedule::Constant;
        assert_eq!(learning_rate(&definition, 110), 2.0);
        definition.warmup_steps = 0;
        assert_eq!(learning_rate(&definition, 1), 2.0);
    }
}
