//! The columns of a trained model whose heads are looked at.

use super::training::TrainingKey;
use crate::record::{Measurement, Row, record};

record! {
    /// Identifies a trained model at a step.
    #[derive(Default)]
    pub struct ModelKey {
        /// the study of the run
        of: Option<String>,
        /// the run's name there, or the folder's
        run: String,
        /// the arm, or what a published model is
        arm: String,
        /// the run's
        seed: Option<u64>,
        /// the text's name, or `synthetic`
        corpus: Option<String>,
        /// blocks
        #[range = Counted]
        layers: usize,
        /// the width of the residual stream
        #[range = Counted]
        d_model: Option<usize>,
        /// attention heads a layer
        #[range = Counted]
        heads: usize,
        /// the dimensions of a head of a trained model; empty where they are d_model / heads
        #[range = Counted]
        d_head: Option<usize>,
        /// heads that see everything, in the layer that has most of them
        global_heads: Option<usize>,
        /// how many tokens at and before its own a local head sees; empty where all heads are global
        #[range = Counted]
        window: Option<usize>,
        /// the most tokens that the model reads
        #[range = Counted]
        context: usize,
        /// sequences a step of its training
        #[range = Counted]
        batch: Option<usize>,
        /// optimiser steps of it
        steps: Option<usize>,
        /// the largest learning rate of it
        learning_rate: Option<f64>,
        /// of the synthetic corpus: the share of segments that ask for a stored key
        recall: Option<f64>,
        /// the step of the weights
        step: Option<usize>,
    }
}

record! {
    /// Identifies a trained model at a step, with its positions.
    pub struct CheckpointKey {
        /// the model
        model: ModelKey,
        /// positional encoding: `learned`, `rope`, `sinusoidal` or `none`
        positions: Option<String>,
        /// linear position bias: `none`, `alibi` (fixed) or `learned`
        slopes: Option<String>,
    }
}

impl OfHead for CheckpointKey {
    fn model(&self) -> &ModelKey {
        &self.model
    }
}

/// The key of a row about one head of a trained model.
pub trait OfHead {
    /// The model.
    fn model(&self) -> &ModelKey;
}

impl<M: Measurement<Key: OfHead>> Row<M> {
    /// The run's name.
    pub fn run(&self) -> &str {
        &self.of.model().run
    }

    /// The run's seed; 0 of a published model.
    pub fn seed(&self) -> u64 {
        self.of.model().seed.unwrap_or(0)
    }

    /// The step of the weights; 0 of a published model.
    pub fn step(&self) -> usize {
        self.of.model().step.unwrap_or(0)
    }
}

impl ModelKey {
    /// The dimensions of a head, if it is a model that was trained here.
    pub fn head_dimension(&self) -> Option<usize> {
        self.d_head.or_else(|| Some(self.d_model? / self.heads.max(1)))
    }

    /// A model from elsewhere, of a type, on a text; `sizes` are its layers, heads of a layer, and the most tokens that it
    /// reads.
    pub fn of_published(
        name: &str,
        model_type: &str,
        text: Option<&str>,
        sizes: [usize; 3],
        step: Option<usize>,
    ) -> Self {
        let [layers, heads, context] = sizes;
        Self {
            run: name.to_owned(),
            arm: model_type.to_owned(),
            corpus: text.map(str::to_owned),
            layers,
            heads,
            context,
            step,
            ..Self::default()
        }
    }

    /// A training run, of the study `study` where it is one's.
    pub fn of_run(study: Option<&str>, run: &TrainingKey, step: Option<usize>) -> Self {
        let model = &run.model;
        Self {
            of: study.map(str::to_owned),
            run: model.run.clone(),
            arm: model.arm.clone(),
            seed: Some(run.seed),
            corpus: Some(run.corpus.clone()),
            layers: model.layers,
            d_model: Some(model.d_model),
            heads: model.heads,
            d_head: model.d_head,
            global_heads: Some(model.global_heads),
            window: model.window,
            context: run.context,
            batch: Some(run.batch),
            steps: Some(run.steps),
            learning_rate: Some(run.learning_rate),
            recall: run.recall,
            step,
        }
    }
}
