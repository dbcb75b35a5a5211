//! Records that a training run emits during and after training.

use crate::lm::{Evaluation, Split};
use crate::targets::HeadKind;

/// One optimiser step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord {
    /// The step, from 1.
    pub step: usize,
    /// Number of tokens trained on so far, including this step's.
    pub tokens: u64,
    /// The batch's mean cross-entropy before the update, in nats per token.
    pub loss_nats: f64,
    /// The learning rate of the update.
    pub learning_rate: f64,
    /// The gradient's global norm before clipping.
    pub grad_norm: f64,
    /// Seconds since the start of the run, including evaluations.
    pub wall_time_s: f64,
}

/// Statistics of one head in one step's forward pass, over the batch and all pairs that the mask allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadRecord {
    /// The step, from 1.
    pub step: usize,
    /// The block, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// The kind of the head.
    pub kind: HeadKind,
    /// The largest logit, including the factor 1/√d.
    pub max_logit: f64,
    /// The smallest logit.
    pub min_logit: f64,
    /// The largest absolute logit.
    pub max_abs_logit: f64,
    /// Mean over rows of the entropy of attention, in nats.
    pub entropy_nats: f64,
}

/// The loss on fixed windows of one split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvalRecord {
    /// Number of steps taken before it.
    pub step: usize,
    /// The split.
    pub split: Split,
    /// The result.
    pub evaluation: Evaluation,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps were taken.
    Completed,
    /// The loss or the gradient of a step was not finite, so its update was skipped; or the loss
    /// exceeded `diverged_above` after warm-up.
    Diverged {
        /// The step, from 1.
        step: usize,
    },
    /// The run was asked to stop.
    Stopped,
}

/// Summary of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainSummary {
    /// The outcome.
    pub outcome: Outcome,
    /// Number of steps taken.
    pub steps: usize,
    /// Number of trained parameters of the model.
    pub parameters: usize,
    /// The loss of the last evaluation on the validation split, in nats per token; `None` if there
    /// was none yet or if the run diverged.
    pub valid_loss_nats: Option<f64>,
    /// The largest absolute logit of all heads in the last step.
    pub max_abs_logit: Option<f64>,
    /// Seconds from start to end.
    pub wall_time_s: f64,
}
