//! What defines a training run: every key, its default, and which values it may take.

mod heads;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::corpus::SyntheticCorpus;
use super::{Arm, Dtype, LmError, Positions, Schedule, Stabiliser, TextVocabulary};
use crate::pattern::nearest::nearest;

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
    /// Tokens that a local head sees, its own included.
    pub window: usize,
    /// Tokens in one sequence: n.
    pub context: usize,
    /// How the model knows where a token stands.
    pub positions: Positions,
    /// How a text becomes tokens.
    pub vocabulary: TextVocabulary,
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
            context: 512,
            positions: Positions::Learned,
            vocabulary: TextVocabulary::Characters,
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
    /// Reads a definition from TOML text.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, or a value that its key cannot take.
    pub fn from_toml(text: &str) -> Result<Self, LmError> {
        let table = text.parse::<Table>().map_err(|e| LmError::Definition(one_line(&e)))?;
        Self::from_table(&table)
    }

    /// Reads a definition from a TOML table; keys left out have their defaults.
    ///
    /// # Errors
    /// An unknown key, or a value that its key cannot take.
    pub fn from_table(table: &Table) -> Result<Self, LmError> {
        let mut definition = Self::default();
        definition.merge(table)?;
        Ok(definition)
    }

    /// Replaces the keys that `table` has, and checks the result.
    ///
    /// # Errors
    /// As [`Self::from_table`]; the definition is then unchanged.
    pub fn merge(&mut self, table: &Table) -> Result<(), LmError> {
        let mut all = self.to_table()?;
        overlay(&mut all, table, "")?;
        let merged: Self =
            Value::Table(all).try_into().map_err(|e| LmError::Definition(one_line(&e)))?;
        merged.check()?;
        *self = merged;
        Ok(())
    }

    /// Sets one key from text, as `--set key=value` does: `("window", "32")`, `("arm", "ls")`,
    /// `("betas", "[0.9, 0.95]")`, `("corpus.recall", "0.2")`.
    ///
    /// # Errors
    /// As [`Self::merge`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LmError> {
        let value = match format!("value = {value}").parse::<Table>() {
            Ok(mut table) => table.remove("value"),
            Err(_) => None,
        }
        .unwrap_or_else(|| Value::String(value.to_owned()));
        let mut table = Table::new();
        match key.split_once('.') {
            Some((outer, inner)) => {
                table
                    .insert(outer.to_owned(), Table::from_iter([(inner.to_owned(), value)]).into());
            }
            None => {
                table.insert(key.to_owned(), value);
            }
        }
        self.merge(&table)
    }

    /// The whole definition as a TOML table, for a manifest.
    ///
    /// # Errors
    /// A whole number beyond TOML's 64-bit signed range.
    pub fn to_table(&self) -> Result<Table, LmError> {
        Table::try_from(self).map_err(|e| LmError::Definition(e.to_string()))
    }

    /// Tokens that one step reads.
    pub fn tokens_per_step(&self) -> usize {
        self.accumulation * self.batch * self.context
    }

    /// Holds every value against what its key may be.
    pub(super) fn check(&self) -> Result<(), LmError> {
        for (key, found) in [
            ("layers", self.layers),
            ("d_model", self.d_model),
            ("heads", self.heads),
            ("window", self.window),
            ("context", self.context),
            ("batch", self.batch),
            ("accumulation", self.accumulation),
            ("steps", self.steps),
            ("eval_every", self.eval_every),
            ("checkpoint_every", self.checkpoint_every),
            ("eval_batches", self.eval_batches),
        ] {
            require(found >= 1, key, found, "must be at least 1")?;
        }
        require(
            self.d_model.is_multiple_of(self.heads),
            "d_model",
            self.d_model,
            &format!("must be a multiple of heads = {}", self.heads),
        )?;
        self.check_arm()?;
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let rate = self.learning_rate;
        require(positive(rate), "learning_rate", rate, "must be above 0")?;
        let deviation = self.initial_deviation;
        require(positive(deviation), "initial_deviation", deviation, "must be above 0")?;
        require(positive(self.clip), "clip", self.clip, "must be above 0")?;
        let last = self.final_learning_rate;
        require((0.0..=1.0).contains(&last), "final_learning_rate", last, "must be 0 to 1")?;
        let decay = self.weight_decay;
        require(decay.is_finite() && decay >= 0.0, "weight_decay", decay, "must be 0 or more")?;
        for &step in &self.keep_checkpoints {
            require(step >= 1, "keep_checkpoints", step, "must each be at least 1")?;
        }
        let limit = self.diverged_above;
        require(limit > 0.0, "diverged_above", limit, "must be above 0, or inf for never")?;
        for beta in self.betas {
            require((0.0..1.0).contains(&beta), "betas", beta, "must each be 0 or more, below 1")?;
        }
        let valid = self.valid_fraction;
        require(valid > 0.0 && valid < 1.0, "valid_fraction", valid, "must be above 0, below 1")?;
        let test = self.test_fraction;
        let why = format!("must be 0 or more, below 1 - valid_fraction = {}", 1.0 - valid);
        require(test >= 0.0 && valid + test < 1.0, "test_fraction", test, &why)?;
        self.corpus.check()
    }
}

/// An error naming the key and what was found, unless `holds`.
pub(super) fn require(
    holds: bool,
    key: &'static str,
    found: impl ToString,
    why: &str,
) -> Result<(), LmError> {
    if holds {
        Ok(())
    } else {
        Err(LmError::Value { key, found: found.to_string(), why: why.to_owned() })
    }
}

/// Puts the values of `from` over those of `onto`, whose keys are all the valid ones.
fn overlay(onto: &mut Table, from: &Table, prefix: &str) -> Result<(), LmError> {
    for (key, value) in from {
        match (onto.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => {
                overlay(inner, value, &format!("{prefix}{key}."))?;
            }
            (Some(old), value) => *old = value.clone(),
            (None, _) => {
                let valid: Vec<&str> = onto.keys().map(String::as_str).collect();
                return Err(LmError::UnknownKey {
                    found: format!("{prefix}{key}"),
                    nearest: format!("{prefix}{}", nearest(key, &valid)),
                });
            }
        }
    }
    Ok(())
}

/// TOML's errors draw the line with a caret under it; ours are one line.
fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
