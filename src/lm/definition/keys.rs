//! Every key of a training run, and its default.

use serde::{Deserialize, Serialize};

use super::choices::{Arm, Dtype, Objective, Positions, Schedule, Slopes, Stabiliser};
use super::synthetic_corpus::SyntheticCorpus;
use super::text_vocabulary::TextVocabulary;
use crate::pattern::{Patch, Visibility};

/// Everything that a training run depends on beside its text.
///
/// Written as TOML with these field names as keys; a key left out has its default. The same
/// definition on the same corpus gives the same run, and two arms with the same `seed` start from
/// the same weights and read the same windows of text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainDefinition {
    /// Which heads are global and which local, and what holds the logits down.
    pub arm: Arm,
    /// What holds the logits down beside what `arm` names, for any layout of heads.
    pub stabilisers: Vec<Stabiliser>,
    /// The bound c of `softcap`, in nats.
    pub softcap: f64,
    /// The threshold τ of `qk-clip`, in nats.
    pub qk_clip: f64,
    /// The coefficient ς of `z-loss`.
    pub z_loss: f64,
    /// Decoder blocks.
    pub layers: usize,
    /// Width of the residual stream; a multiple of `heads`.
    pub d_model: usize,
    /// Attention heads in each layer, each of d_model / heads dimensions.
    pub heads: usize,
    /// Global heads in each layer of arm `ls`.
    pub global_heads: usize,
    /// Tokens that a local head sees, its own included; with `visibility = "bidirectional"` as many to either side.
    pub window: usize,
    /// Of data in raster order: what a local head sees in place of the last `window` tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// Whether a token sees what comes after it: `causal` or `bidirectional`.
    pub visibility: Visibility,
    /// What is learned to predict.
    pub objective: Objective,
    /// The part of a sequence's tokens that `masked` hides and asks for.
    pub mask_share: f64,
    /// Tokens in one sequence: n.
    pub context: usize,
    /// How the model knows where a token stands.
    pub positions: Positions,
    /// What a head's logits have beside QKᵀ/√D: a slope over the lag.
    pub slopes: Slopes,
    /// How a text becomes tokens.
    pub vocabulary: TextVocabulary,
    /// Bytes of a record R, where the data are records of equal length and no text; 0 for text. Every sequence is one
    /// whole record: a symbol that begins it and its first R − 1 bytes, from which its R bytes are predicted. So
    /// `context` is R and `vocabulary` is `byte`, and where a definition sets this key without them they become so.
    pub records: usize,
    /// The standard deviation of the initial weights: 0.02 in GPT-2, of 768 channels or more; the
    /// same per 1/√d_model is 0.07 at 64 channels.
    pub initial_deviation: f64,
    /// Sequences in one batch.
    pub batch: usize,
    /// Batches in one step: their mean gradient moves the weights.
    pub accumulation: usize,
    /// Whether a block's activations are dropped and computed again in the backward pass: the memory of
    /// one block in place of all, for a forward pass more; the run is the same.
    pub recompute: bool,
    /// Optimiser steps.
    pub steps: usize,
    /// The peak learning rate.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises linearly to its peak.
    pub warmup_steps: usize,
    /// The learning rate after warm-up.
    pub schedule: Schedule,
    /// The last learning rate of the cosine schedule, as a fraction of the peak.
    pub final_learning_rate: f64,
    /// AdamW's decay rates of the first and second moments.
    pub betas: [f64; 2],
    /// AdamW's decoupled weight decay, on matrices only.
    pub weight_decay: f64,
    /// The gradient's largest global norm; longer ones are scaled down to it.
    pub clip: f64,
    /// The numbers that activations and weights are held in.
    pub dtype: Dtype,
    /// Seeds the initial weights and the windows of text.
    pub seed: u64,
    /// Steps between evaluations; there is one at the end in any case.
    pub eval_every: usize,
    /// Steps between checkpoints, of which the last is kept.
    pub checkpoint_every: usize,
    /// Steps after which the weights alone are kept for good; those past the run's last never come.
    pub keep_checkpoints: Vec<usize>,
    /// A training loss above it, in nats, ends a run as diverged once its warm-up is over; `inf` for
    /// never.
    pub diverged_above: f64,
    /// Batches that an evaluation averages: the same windows each time.
    pub eval_batches: usize,
    /// The part of the corpus held out for validation, where it has no text of its own.
    pub valid_fraction: f64,
    /// The part of the corpus that training never looks at.
    pub test_fraction: f64,
    /// The synthetic corpus, used where no text is given.
    pub corpus: SyntheticCorpus,
}

impl Default for TrainDefinition {
    fn default() -> Self {
        Self {
            arm: Arm::Mhsa,
            stabilisers: Vec::new(),
            softcap: 50.0,
            qk_clip: 100.0,
            z_loss: 1e-4,
            layers: 3,
            d_model: 64,
            heads: 4,
            global_heads: 1,
            window: 16,
            patch: None,
            visibility: Visibility::Causal,
            objective: Objective::NextToken,
            mask_share: 0.15,
            context: 512,
            positions: Positions::Learned,
            slopes: Slopes::None,
            vocabulary: TextVocabulary::Characters,
            records: 0,
            initial_deviation: 0.02,
            batch: 4,
            accumulation: 1,
            recompute: false,
            steps: 1500,
            learning_rate: 3e-3,
            warmup_steps: 100,
            schedule: Schedule::Cosine,
            final_learning_rate: 0.1,
            betas: [0.9, 0.99],
            weight_decay: 0.1,
            clip: 1.0,
            dtype: Dtype::Float32,
            seed: 0,
            eval_every: 250,
            checkpoint_every: 500,
            keep_checkpoints: Vec::new(),
            diverged_above: f64::INFINITY,
            eval_batches: 16,
            valid_fraction: 0.1,
            test_fraction: 0.0,
            corpus: SyntheticCorpus::default(),
        }
    }
}

impl TrainDefinition {
    /// Tokens that one step reads.
    pub fn tokens_per_step(&self) -> usize {
        self.accumulation * self.batch * self.context
    }
}
