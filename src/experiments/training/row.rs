//! The rows of training runs.

use crate::lm::TrainDefinition;
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row, STOPPED, record};
use crate::run::{Course, run_manifest};

record! {
    /// Identifies a training run.
    #[derive(Default)]
    pub struct TrainingKey {
        /// the model
        model: ModelColumns,
        /// the seed of weights, batches and corpus
        seed: u64,
        /// the name of the text, or `synthetic`
        corpus: String,
        /// n, the tokens per sequence
        #[range = Counted]
        context: usize,
        /// the sequences per step
        #[range = Counted]
        batch: usize,
        /// optimiser steps
        steps: usize,
        /// the largest learning rate
        learning_rate: f64,
        /// synthetic corpus: the share of segments that ask for a stored key
        recall: Option<f64>,
    }
}

/// The corpus of a run that reads no text.
pub const SYNTHETIC: &str = "synthetic";

impl TrainingKey {
    /// The key of the run `run` on the text called `text`, or on the synthetic corpus.
    pub fn of(run: &str, definition: &TrainDefinition, text: Option<&str>) -> Self {
        Self {
            model: ModelColumns::of(run, definition),
            seed: definition.seed,
            corpus: text.unwrap_or(SYNTHETIC).to_owned(),
            context: definition.context,
            batch: definition.accumulation * definition.batch,
            steps: definition.steps,
            learning_rate: definition.learning_rate,
            recall: text.is_none().then_some(definition.corpus.recall),
        }
    }
}

record! {
    /// The result and the course of a training run.
    #[derive(Default)]
    pub struct TrainingMeasurement {
        /// the number of parameters
        parameters: usize,
        /// mean loss of the last 100 steps
        #[unit = "nats a token"]
        #[range = Diverging]
        train_loss_nats: Option<f64>,
        /// loss of the last evaluation
        #[unit = "nats a token"]
        #[range = Diverging]
        valid_loss_nats: Option<f64>,
        /// the same on the upstream text, if there is one
        #[unit = "nats a token"]
        #[range = Diverging]
        upstream_loss_nats: Option<f64>,
        /// max |logit| over heads in the last step
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit: Option<f64>,
        /// `completed`, `diverged` or `stopped` (continued by the next sweep)
        outcome: String,
        /// the training time
        #[unit = "s"]
        wall_time_s: f64,
        /// how smoothly
        course: Course,
        /// synthetic corpus: the least expected loss per token
        #[unit = "nats a token"]
        corpus_entropy_nats: Option<f64>,
    }
}

/// The outcome of a run that took all of its steps.
const COMPLETED: &str = "completed";
/// The outcome of a run whose loss or gradient was not finite, or too large.
const DIVERGED: &str = "diverged";

impl Measurement for TrainingMeasurement {
    type Key = TrainingKey;

    const NAME: &'static str = "train";
    const VERSION: u32 = run_manifest::VERSION;

    fn outcome(&self) -> String {
        self.outcome.clone()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, found, course) = (&row.of, &row.found, &row.found.course);
        let completed = found.outcome == COMPLETED;
        let stopped = found.outcome == STOPPED;
        check.holds(completed || stopped || found.outcome == DIVERGED, || {
            format!("outcome is {:?}, not {COMPLETED}, {DIVERGED} or {STOPPED}", found.outcome)
        });
        check.at_least("wall_time_s", found.wall_time_s, f64::MIN_POSITIVE);
        // The size of the embeddings depends on the vocabulary, which is not in the rows.
        let model = &of.model;
        check.at_least("parameters", found.parameters as f64, model.block_weights() as f64);
        let all = (of.steps * of.batch * of.context) as f64;
        let read = course.tokens.map_or(0.0, |tokens| tokens as f64);
        check.within("tokens", read, if completed { all } else { 0.0 }, all);
        check.within("loss_spike_score", course.loss_spike_score, 0.0, 1.0);
        check.within("grad_spike_score", course.grad_spike_score, 0.0, 1.0);
        check.within("loss_spikes", course.loss_spikes as f64, 0.0, of.steps as f64);
        check.there("recall", of.recall.as_ref(), of.corpus == SYNTHETIC);
        let entropy = found.corpus_entropy_nats;
        check.there("corpus_entropy_nats", entropy.as_ref(), of.corpus == SYNTHETIC);
        if stopped {
            check.holds(read < all, || "was stopped, and has read all its tokens".to_owned());
        } else if !completed {
            // A diverged run may have no loss, or one that is not a finite number.
            return;
        }
        let (train, valid) = (found.train_loss_nats, found.valid_loss_nats);
        let missing = f64::NAN;
        check.at_least("train_loss_nats", train.unwrap_or(missing), 0.0);
        check.at_least("valid_loss_nats", valid.unwrap_or(missing), 0.0);
        let (last, peak) = (found.max_abs_logit, course.peak_max_abs_logit);
        check.at_least("max_abs_logit", last.unwrap_or(missing), 0.0);
        check.at_most("max_abs_logit exceeds its peak", last, peak, 0.0);
        if of.steps > 1 {
            let change = course.logit_change_per_step;
            check.at_least("logit_change_per_step", change.unwrap_or(missing), 0.0);
            check.at_most("logits change by more than their peak", change, peak, ROUNDING);
        }
        if let Some(entropy) = entropy {
            check.at_least("corpus_entropy_nats", entropy, 0.0);
        }
    }
}

record! {
    /// A model, as its definition has it.
    #[derive(Default)]
    pub struct ModelColumns {
        /// the run's name in its study's definition
        run: String,
        /// the attention variant: which heads are global or local, and the stabiliser
        arm: String,
        /// the number of layers
        #[range = Counted]
        layers: usize,
        /// the width of the residual stream
        #[range = Counted]
        d_model: usize,
        /// attention heads per layer
        #[range = Counted]
        heads: usize,
        /// the dimensions of a head; empty where they are d_model / heads
        #[range = Counted]
        d_head: Option<usize>,
        /// global heads in the layer with most of them
        global_heads: usize,
        /// the tokens that a local head sees, its own among them; empty where all heads are global
        #[range = Counted]
        window: Option<usize>,
        /// positional encoding: `learned`, `rope`, `sinusoidal` or `none`
        positions: String,
        /// linear position bias: `none`, `alibi` (fixed) or `learned`
        slopes: String,
    }
}

impl ModelColumns {
    /// The dimensions of a head.
    pub fn head_dimension(&self) -> usize {
        self.d_head.unwrap_or_else(|| self.d_model / self.heads.max(1))
    }

    /// The weights of the blocks' matrices, L·(4·C·H·D + 8·C²): the least number of parameters.
    pub fn block_weights(&self) -> usize {
        let of_heads = self.heads * self.head_dimension();
        4 * self.layers * self.d_model * (of_heads + 2 * self.d_model)
    }

    /// Those of the run `run`.
    pub fn of(run: &str, definition: &TrainDefinition) -> Self {
        Self {
            run: run.to_owned(),
            arm: definition.arm.name().to_owned(),
            layers: definition.layers,
            d_model: definition.d_model,
            heads: definition.heads,
            d_head: definition.d_head,
            global_heads: definition.most_global_heads(),
            window: definition.local_tokens(),
            positions: definition.positions.name().to_owned(),
            slopes: definition.slopes.name().to_owned(),
        }
    }
}
