//! The learning rate of each step.

use std::f64::consts::PI;

use crate::lm::{Schedule, TrainDefinition};

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
