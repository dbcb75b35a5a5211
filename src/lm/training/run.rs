//! The training loop, written once.

use std::f64::consts::PI;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::records::{HeadRecord, Outcome, Recorder, StepRecord, TrainSummary};
use super::trainer::Trainer;
use crate::lm::error::require;
use crate::lm::workers::Workers;
use crate::lm::{LmError, Schedule, Split, TrainDefinition};

impl Trainer<'_> {
    /// Steps until the definition's number of them, until it diverges, or until `stop`; tells
    /// `recorder` of every step, of an evaluation on the validation split every `eval_every` steps
    /// and after the last, of the steps of `keep_checkpoints`, and of every `checkpoint_every` steps.
    /// A run that has ended already takes no step. Several workers all stop after the same step, whichever is
    /// told to, and nothing is saved of workers whose weights came to differ.
    ///
    /// # Errors
    /// A record that could not be kept.
    pub fn run(
        &mut self,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> Result<TrainSummary, LmError> {
        let mut outcome = Outcome::Completed;
        let mut valid_loss_nats = None;
        self.check_same_weights()?;
        while !self.diverged && self.steps() < self.definition.steps {
            if self.workers.any(stop.load(Ordering::Relaxed)) {
                outcome = Outcome::Stopped;
                break;
            }
            let record = self.step()?;
            recorder.step(&record)?;
            for head in self.head_records() {
                recorder.head(&head)?;
            }
            if self.has_diverged(&record) {
                self.diverged = true;
                valid_loss_nats = None;
                break;
            }
            let last = self.steps() == self.definition.steps;
            if last || self.steps().is_multiple_of(self.definition.eval_every) {
                let record = self.evaluate(Split::Valid)?;
                recorder.eval(&record)?;
                valid_loss_nats = Some(record.evaluation.loss_nats);
            }
            let saves = self.steps().is_multiple_of(self.definition.checkpoint_every);
            let keeps = self.definition.keep_checkpoints.contains(&self.steps());
            if last || saves || keeps {
                self.check_same_weights()?;
            }
            if keeps {
                recorder.keep(self)?;
            }
            if saves {
                recorder.checkpoint(self)?;
            }
        }
        if self.diverged {
            outcome = Outcome::Diverged { step: self.steps() };
        }
        Ok(TrainSummary {
            outcome,
            steps: self.steps(),
            parameters: self.model().parameters(),
            valid_loss_nats,
            max_abs_logit: self.max_abs_logit(),
            wall_time_s: self.wall_time_s(),
        })
    }

    fn has_diverged(&self, record: &StepRecord) -> bool {
        let finite = record.loss_nats.is_finite() && record.grad_norm.is_finite();
        let warmed_up = record.step > self.definition.warmup_steps;
        !finite || (warmed_up && record.loss_nats > self.definition.diverged_above)
    }

    fn head_records(&self) -> impl Iterator<Item = HeadRecord> {
        let layers = self.heads().iter().zip(&self.model().shape().heads).enumerate();
        layers.flat_map(move |(layer, (heads, kinds))| {
            heads.iter().zip(kinds).enumerate().map(move |(head, (seen, &kind))| HeadRecord {
                step: self.steps(),
                layer,
                head,
                kind,
                max_logit: seen.max_logit.into(),
                min_logit: seen.min_logit.into(),
                max_abs_logit: seen.max_abs_logit().into(),
                entropy_nats: seen.entropy_nats.into(),
            })
        })
    }

    fn max_abs_logit(&self) -> Option<f64> {
        let heads = self.heads().iter().flatten();
        heads.map(|head| f64::from(head.max_abs_logit())).reduce(f64::max)
    }
}

/// The learning rate of step `step`, counted from 1: linear to the peak over the warm-up, then as
/// the schedule says. With s steps after warm-up of which u are done,
/// cosine = peak · (f + (1 − f) · ½ (1 + cos(π u / s))), f the final fraction.
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

/// One worker's share of the windows of a step: as many as every other's, next to each other, and in as few equal parts
/// as hold no more than a batch. A worker alone has all, a batch at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    first: usize,
    parts: usize,
    part: usize,
    world: usize,
}

impl Share {
    /// # Errors
    /// Windows that the workers cannot share evenly.
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
        Ok(Self { first: workers.rank() * mine, parts, part: mine / parts, world })
    }

    /// The windows of each part, among those of the step.
    pub fn parts(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.parts).map(move |part| {
            let first = self.first + part * self.part;
            first..first + self.part
        })
    }

    /// The windows of one part.
    pub fn at_once(self) -> usize {
        self.part
    }

    /// The parts of all workers together.
    pub fn all_parts(self) -> usize {
        self.parts * self.world
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
