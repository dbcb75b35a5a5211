//! Rows of a training run's own files, and the summary of its course.

use crate::lm::{EvalRecord, Split, StepRecord};
use crate::record::{Column, columns_of, record, to_microseconds, value};

value!(
    Text,
    "a split",
    |split| split.name().to_owned(),
    |text| Split::ALL.into_iter().find(|split| split.name() == text),
    Split
);

record! {
    /// A row of `steps.csv`.
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

impl From<&StepRecord> for StepRow {
    fn from(record: &StepRecord) -> Self {
        let StepRecord { step, tokens, loss_nats, learning_rate, grad_norm, wall_time_s } = *record;
        let wall_time_s = to_microseconds(wall_time_s);
        Self { step, tokens, loss_nats, learning_rate, grad_norm, wall_time_s }
    }
}

record! {
    /// A row of `eval.csv`.
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

impl From<&EvalRecord> for EvaluationRow {
    fn from(record: &EvalRecord) -> Self {
        let found = &record.evaluation;
        Self {
            step: record.step,
            split: record.split,
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
    /// A row of `curve.csv`: an interval of steps; a run has about two hundred.
    pub struct CurveRow {
        /// last step of the interval
        step: usize,
        /// tokens learned from by its end
        tokens: u64,
        /// time since the start at its end
        #[unit = "s"]
        wall_time_s: f64,
        /// mean loss over the interval
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// mean gradient norm over the interval
        #[range = Any]
        grad_norm: f64,
        /// largest |logit| in the interval
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit: Option<f64>,
        /// largest |logit| over global heads
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_global: Option<f64>,
        /// largest |logit| over heads with a window
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_local: Option<f64>,
    }
}

record! {
    /// Summary of the stability of a training run, computed from its steps.
    pub struct Course {
        /// the tokens read in total
        tokens: Option<u64>,
        /// peak max |logit|, over heads and steps
        #[unit = "nats"]
        #[range = Diverging]
        peak_max_abs_logit: Option<f64>,
        /// share of steps whose loss is 7 standard deviations or more from the mean of the 1,000 before (OLMo 2)
        loss_spike_score: f64,
        /// the same for the gradient norm
        grad_spike_score: f64,
        /// number of runs of losses that far above the median of the 201 around, by median absolute deviation
        loss_spikes: usize,
        /// mean |change| of max |logit| per step
        #[unit = "nats"]
        #[range = Diverging]
        logit_change_per_step: Option<f64>,
    }
}

record! {
    /// A row of `heads.parquet`: the logits of one head in one step. The file is written column by column.
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
        max_logit: f64,
        /// the smallest logit
        min_logit: f64,
        /// max |logit|
        max_abs_logit: f64,
        /// mean entropy of the queries' attention
        #[unit = "nats"]
        entropy_nats: f64,
    }
}

/// The row files in a training run's folder, by short name, with their columns.
pub fn log_columns() -> [(&'static str, Vec<Column>); 4] {
    [
        ("steps", columns_of::<StepRow>()),
        ("curve", columns_of::<CurveRow>()),
        ("eval", columns_of::<EvaluationRow>()),
        ("heads", columns_of::<HeadLogRow>()),
    ]
}
