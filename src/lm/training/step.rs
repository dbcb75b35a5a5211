//! Quantities of one step: its learning rate, the windows of each worker, and the norm of its gradients.

use std::f64::consts::PI;
use std::ops::Range;

use candle_core::Tensor;
use rayon::prelude::*;

use crate::lm::error::require;
use crate::lm::operators::with_elements;
use crate::lm::workers::Workers;
use crate::lm::{LmError, Schedule, TrainDefinition, simd};

/// The schedule of the upstream steps, after Pythia's (Biderman et al. 2023, arXiv 2304.01373): the share of them that is
/// warm-up, and the last rate as a fraction of the peak.
const UPSTREAM_WARMUP: f64 = 0.05;
const UPSTREAM_FINAL: f64 = 0.1;

/// TriLM's schedule: the rate's factor in the second half (peaks of 0.0024 and 0.0015 to 0.0012 and 0.0008 in the paper), and the
/// share of the steps that have weight decay.
const TRILM_SECOND_HALF: f64 = 2.0 / 3.0;
const TRILM_DECAYED: f64 = 2.0 / 3.0;

/// The learning rate of step `step`, counted from 1: linear to the peak during warm-up, then given by
/// the schedule. With s steps after warm-up, of which u are done,
/// cosine = peak · (f + (1 − f) · ½ (1 + cos(π u / s))), with f the final fraction.
///
/// TriLM's is peak · (1 − u / s), times ⅔ after half of all steps.
///
/// Upstream steps have a cosine schedule of their own. Warm-up then starts at its last rate instead of 0.
pub(super) fn learning_rate(definition: &TrainDefinition, step: usize) -> f64 {
    let upstream = definition.upstream_steps;
    let upstream_peak = definition.upstream_learning_rate.unwrap_or(definition.learning_rate);
    if step <= upstream {
        let warmup = (UPSTREAM_WARMUP * upstream as f64).ceil() as usize;
        return match step <= warmup {
            true => upstream_peak * step as f64 / warmup as f64,
            false => upstream_peak * cosine(step - warmup, upstream - warmup, UPSTREAM_FINAL),
        };
    }
    let first = if upstream > 0 { UPSTREAM_FINAL * upstream_peak } else { 0.0 };
    let (step, steps) = (step - upstream, definition.steps.saturating_sub(upstream));
    let TrainDefinition { learning_rate: peak, warmup_steps: warmup, .. } = *definition;
    if step <= warmup {
        return first + (peak - first) * step as f64 / warmup as f64;
    }
    match definition.schedule {
        Schedule::Constant => peak,
        Schedule::Cosine => {
            let (done, left) = (step - warmup, steps.saturating_sub(warmup));
            peak * cosine(done, left, definition.final_learning_rate)
        }
        Schedule::Trilm => {
            let left =
                steps.saturating_sub(step) as f64 / steps.saturating_sub(warmup).max(1) as f64;
            peak * left * if 2 * step > steps { TRILM_SECOND_HALF } else { 1.0 }
        }
    }
}

/// The weight decay of step `step`, counted from 1.
pub(super) fn weight_decay(definition: &TrainDefinition, step: usize) -> f64 {
    let upstream = definition.upstream_steps;
    let decayed = TRILM_DECAYED * definition.steps.saturating_sub(upstream) as f64;
    match definition.schedule {
        Schedule::Trilm if step.saturating_sub(upstream) as f64 > decayed => 0.0,
        _ => definition.weight_decay,
    }
}

/// Falls from 1 to `last` over `steps`, of which `done` are done.
fn cosine(done: usize, steps: usize, last: f64) -> f64 {
    let done = done as f64 / steps.max(1) as f64;
    last + (1.0 - last) * 0.5 * (1.0 + (PI * done.min(1.0)).cos())
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

    /// Compares the learning rates of steps.
    fn assert_rates(definition: &TrainDefinition, expected: &[(usize, f64)]) {
        for &(step, rate) in expected {
            let found = learning_rate(definition, step);
            assert!((found - rate).abs() < 1e-12, "step {step}: {found}, not {rate}");
        }
    }

    #[test]
    fn it_rises_to_the_peak_and_falls_to_the_final_fraction() {
        let definition = TrainDefinition::default()
            .with("steps=110 warmup_steps=10 learning_rate=2 final_learning_rate=0.1");
        assert_rates(&definition, &[(1, 0.2), (5, 1.0), (10, 2.0), (60, 1.1), (110, 0.2)]);
        let constant = definition.clone().with("schedule=constant");
        assert_rates(&constant, &[(110, 2.0)]);
        assert_rates(&constant.with("warmup_steps=0"), &[(1, 2.0)]);
        let two = definition.with("steps=150 upstream_steps=40 upstream_learning_rate=1");
        assert_rates(&two, &[(1, 0.5), (2, 1.0), (21, 0.55), (40, 0.1)]);
        assert_rates(&two, &[(41, 0.29), (50, 2.0), (100, 1.1), (150, 0.2)]);
    }

    #[test]
    fn the_schedule_of_ternary_weights_has_a_lower_second_half_and_a_last_third_without_decay() {
        let definition = TrainDefinition::default()
            .with("steps=120 warmup_steps=20 learning_rate=3 weight_decay=0.5 schedule=trilm");
        assert_rates(&definition, &[(10, 1.5), (20, 3.0), (60, 1.8), (70, 1.0), (80, 0.8)]);
        assert_rates(&definition, &[(81, 0.78), (120, 0.0)]);
        let decays = [10, 20, 60, 70, 80, 81, 120].map(|step| weight_decay(&definition, step));
        assert_eq!(decays, [0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0]);
    }
}
