//! Records that a training run emits during and after training. Each is a row of one of the run's files.

use crate::lm::{Evaluation, Split};
use crate::record::{record, value};
use crate::targets::HeadKind;

value!(
    Text,
    "a split",
    |split| split.name().to_owned(),
    |text| Split::ALL.into_iter().find(|split| split.name() == text),
    Split
);

record! {
    /// One optimiser step: a row of `steps.csv`.
    pub struct StepRow {
        /// the step, from 1
        step: usize,
        /// tokens learned from so far, this step's included
        tokens: u64,
        /// the batch's mean cross-entropy before the update
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// learning rate of the update
        learning_rate: f64,
        /// the gradient's global norm before clipping
        #[range = Any]
        grad_norm: f64,
        /// time since the start
        #[unit = "s"]
        wall_time_s: f64,
    }
}

record! {
    /// The loss on fixed windows of one split: a row of `eval.csv`.
    pub struct EvaluationRow {
        /// the steps taken before it
        step: usize,
        /// the split of the corpus
        split: Split,
        /// tokens read for it
        tokens: u64,
        /// mean cross-entropy
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// exp of loss_nats
        #[range = Any]
        perplexity: f64,
        /// bytes of text that the tokens stand for
        bytes: Option<u64>,
        /// mean cross-entropy per byte
        #[unit = "nats a byte"]
        #[range = Diverging]
        loss_nats_per_byte: Option<f64>,
        /// exp of loss_nats_per_byte
        #[range = Any]
        perplexity_per_byte: Option<f64>,
    }
}

impl EvaluationRow {
    pub(super) fn new(step: usize, split: Split, found: &Evaluation) -> Self {
        Self {
            step,
            split,
            tokens: found.tokens,
            loss_nats: found.loss_nats,
            perplexity: found.perplexity(),
            bytes: (found.bytes > 0).then_some(found.bytes),
            loss_nats_per_byte: found.loss_nats_per_byte(),
            perplexity_per_byte: found.perplexity_per_byte(),
        }
    }
}

record! {
    /// The logits of one head in one step's forward pass, over the batch and all pairs that the mask allows: a row of
    /// `heads.parquet`.
    pub struct HeadLogRow {
        /// the step, from 1
        step: usize,
        /// the layer, from 0
        layer: usize,
        /// the head within its layer, from 0
        head: usize,
        /// `global` or `local`
        kind: String,
        /// local head: the tokens that it attends to at most
        window: Option<usize>,
        /// the largest logit of the batch, after 1/√d
        #[range = Any]
        max_logit: f64,
        /// the smallest logit
        #[range = Any]
        min_logit: f64,
        /// max |logit|
        #[range = Any]
        max_abs_logit: f64,
        /// mean entropy of the queries' attention
        #[unit = "nats"]
        #[range = Any]
        entropy_nats: f64,
    }
}

impl HeadLogRow {
    /// The columns `kind` and `window` of a head.
    pub(crate) fn columns_of(kind: HeadKind) -> (String, Option<usize>) {
        let window = kind.window();
        (if window.is_some() { "local" } else { "global" }.to_owned(), window)
    }

    /// The kind of the head.
    pub fn head_kind(&self) -> HeadKind {
        self.window.map_or(HeadKind::Global, |window| HeadKind::Local { window })
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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

impl Outcome {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
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
    /// Mean loss of the last 100 steps, in nats per token, if it was logged.
    pub train_loss_nats: Option<f64>,
    /// The loss of the last evaluation on the validation split, in nats per token; `None` if there
    /// was none yet or if the run diverged.
    pub valid_loss_nats: Option<f64>,
    /// The loss of the last evaluation on the upstream text, in nats per token, if there is one.
    pub upstream_loss_nats: Option<f64>,
    /// The largest absolute logit of all heads in the last step.
    pub max_abs_logit: Option<f64>,
    /// Seconds from start to end.
    pub wall_time_s: f64,
}
