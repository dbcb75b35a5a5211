//! Records that a training run emits during and after training.

use crate::lm::{Evaluation, Split};
use crate::targets::HeadKind;

/// One optimiser step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord {
    /// The step, from 1.
    pub step: usize,
    /// Tokens learned from so far, this step's included.
    pub tokens: u64,
    /// The batch's mean cross-entropy before the update, in nats a token.
    pub loss_nats: f64,
    /// The learning rate of the update.
    pub learning_rate: f64,
    /// The gradient's global norm before clipping.
    pub grad_norm: f64,
    /// Seconds since the run started, evaluations included.
    pub wall_time_s: f64,
}

/// One head's logits in one step's forward pass, over the batch and all visible pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadRecord {
    /// The step, from 1.
    pub step: usize,
    /// The decoder block, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// What the head sees.
    pub kind: HeadKind,
    /// The largest logit, after the 1/√d, in nats.
    pub max_logit: f64,
    /// The smallest logit.
    pub min_logit: f64,
    /// The largest absolute logit.
    pub max_abs_logit: f64,
    /// Mean over rows of the entropy of the row's attention, in nats.
    pub entropy_nats: f64,
}

/// The loss on fixed windows of one split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvalRecord {
    /// The steps taken before it.
    pub step: usize,
    /// The split.
    pub split: Split,
    /// What was found.
    pub evaluation: Evaluation,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its steps were taken.
    Completed,
    /// The loss or the gradient of a step was not finite, and its update was not made; or the loss
    /// was above `diverged_above`.
    Diverged {
        /// The step, from 1.
        step: usize,
    },
    /// It was asked to stop.
    Stopped,
}

/// What is left to say when a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainSummary {
    /// How it ended.
    pub outcome: Outcome,
    /// Steps taken.
    pub steps: usize,
    /// The model's trained numbers.
    pub parameters: usize,
    /// The loss of the last evaluation on the validation split, in nats a token; none where there
    /// was none yet, and none where the run diverged.
    pub valid_loss_nats: Option<f64>,
    /// The largest absolute logit over the heads in the last step.
    pub max_abs_logit: Option<f64>,
    /// Seconds from start to end.
    pub wall_time_s: f64,
}
