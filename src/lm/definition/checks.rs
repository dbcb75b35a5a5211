//! Valid values of the keys of a training definition.

use super::choices::{Arm, Optimiser, Positions, RecursionKeys, Router, Slopes, Stabiliser};
use super::keys::TrainDefinition;
use crate::lm::LmError;
use crate::lm::error::require;

/// Upper bound for sizes. It keeps products of sizes from overflowing before they are compared with the available memory.
const MOST: usize = 1 << 40;
/// Attention heads of a layer at most.
const MOST_HEADS: usize = 1 << 16;
/// The largest number of sequences per step or evaluation, all of which are drawn before it starts.
const MOST_SEQUENCES: f64 = (1u64 << 32) as f64;
/// The largest number of tokens read in total.
const MOST_TOKENS: f64 = (1u64 << 63) as f64;

impl TrainDefinition {
    /// Checks every value against the range of its key.
    pub(in crate::lm) fn check(&self) -> Result<(), LmError> {
        for (key, found) in [
            ("layers", self.layers),
            ("recursions", self.recursions),
            ("d_model", self.d_model),
            ("heads", self.heads),
            ("d_head", self.d_head.unwrap_or(1)),
            ("window", self.window),
            ("memory_slots", self.memory_slots),
            ("context", self.context),
            ("batch", self.batch),
            ("accumulation", self.accumulation),
            ("steps", self.steps),
            ("eval_every", self.eval_every),
            ("checkpoint_every", self.checkpoint_every),
            ("eval_batches", self.eval_batches),
        ] {
            require(found >= 1, key, found, "must be at least 1")?;
            require(found <= MOST, key, found, "must be at most 2^40")?;
        }
        // The kinds of all heads are listed before memory is checked.
        let why = format!("must be at most {MOST_HEADS}");
        require(self.heads <= MOST_HEADS, "heads", self.heads, &why)?;
        self.check_tokens()?;
        require(
            self.d_head.is_some() || self.d_model.is_multiple_of(self.heads),
            "d_model",
            self.d_model,
            &format!("must be a multiple of heads = {}, or d_head be set", self.heads),
        )?;
        self.check_arm()?;
        self.check_recursions()?;
        for &step in &self.keep_checkpoints {
            require(step >= 1, "keep_checkpoints", step, "must each be at least 1")?;
        }
        self.check_numbers()?;
        self.corpus.check()
    }

    /// Checks the numbers that are not counts.
    fn check_numbers(&self) -> Result<(), LmError> {
        let valid = self.valid_fraction;
        for (key, found) in [
            ("learning_rate", self.learning_rate),
            ("upstream_learning_rate", self.upstream_learning_rate.unwrap_or(1.0)),
            ("initial_deviation", self.initial_deviation),
            ("clip", self.clip),
            ("softcap", self.softcap),
            ("qk_clip", self.qk_clip),
            ("z_loss", self.z_loss),
        ] {
            require(found.is_finite() && found > 0.0, key, found, "must be above 0")?;
        }
        let last = self.final_learning_rate;
        require((0.0..=1.0).contains(&last), "final_learning_rate", last, "must be 0 to 1")?;
        let exponent = self.loss_exponent;
        let why = "must be above 0, at most 1";
        require(exponent > 0.0 && exponent <= 1.0, "loss_exponent", exponent, why)?;
        let noise = self.label_noise;
        require((0.0..1.0).contains(&noise), "label_noise", noise, "must be 0 or more, below 1")?;
        let decay = self.weight_decay;
        require(decay.is_finite() && decay >= 0.0, "weight_decay", decay, "must be 0 or more")?;
        let limit = self.diverged_above;
        require(limit > 0.0, "diverged_above", limit, "must be above 0, or inf for never")?;
        for beta in self.betas {
            require((0.0..1.0).contains(&beta), "betas", beta, "must each be 0 or more, below 1")?;
        }
        require(valid > 0.0 && valid < 1.0, "valid_fraction", valid, "must be above 0, below 1")?;
        let why = format!("must be below steps = {}", self.steps);
        require(self.upstream_steps < self.steps, "upstream_steps", self.upstream_steps, &why)?;
        let test = self.test_fraction;
        let why = format!("must be 0 or more, below 1 - valid_fraction = {}", 1.0 - valid);
        require(test >= 0.0 && valid + test < 1.0, "test_fraction", test, &why)
    }

    /// Checks that the tokens read per step, per evaluation and in total do not overflow.
    fn check_tokens(&self) -> Result<(), LmError> {
        let Self { batch, accumulation, eval_batches, context, steps, .. } = *self;
        let sequences = |batches: usize| batch as f64 * batches as f64;
        for (key, found, batches) in
            [("batch", batch, accumulation), ("eval_batches", eval_batches, eval_batches)]
        {
            let why = "gives more than 2^32 sequences per step; lower it";
            require(sequences(batches) <= MOST_SEQUENCES, key, found, why)?;
        }
        let all = sequences(accumulation) * context as f64 * steps as f64;
        let why = "gives more than 2^63 tokens in total; lower it";
        require(all < MOST_TOKENS, "steps", steps, why)
    }

    /// Checks the keys of a model without attention.
    fn check_without_attention(&self) -> Result<(), LmError> {
        require(self.heads == 1, "heads", self.heads, "must be 1 with arm = gam")?;
        let d_head = self.head_dimension();
        require(d_head == self.d_model, "d_head", d_head, "must not be set with arm = gam")?;
        for (key, found, is_allowed) in [
            ("positions", self.positions.name(), self.positions != Positions::Rope),
            ("slopes", self.slopes.name(), self.slopes == Slopes::None),
            ("optimiser", "muon", self.optimiser == Optimiser::Adamw),
            ("ternary", "true", !self.ternary),
        ] {
            require(is_allowed, key, found, "is not available with arm = gam; leave it out")?;
        }
        let others = self.stabilisers.iter().any(|other| *other != Stabiliser::ZLoss);
        require(!others, "stabilisers", "those of attention", "must be empty with arm = gam")
    }

    /// Checks the keys of recursion.
    fn check_recursions(&self) -> Result<(), LmError> {
        let (recurs, is_routed) = (self.recursions > 1, self.router != Router::None);
        let [scale, loss] = [self.router_scale, self.router_loss];
        let is_number = |found: f64| found.is_finite() && found >= 0.0;
        let number = |found: Option<f64>| found.unwrap_or(0.0).to_string();
        let lags = "has distances that a router changes; set slopes = none";
        let local = "has local heads, whose windows a router would change; set arm = mhsa";
        // Each recursion is a layer in the log of heads.
        let most = "must be at most 1024";
        let middle = "must be at least 3 with recursions, which repeat those in between";
        let gam = "has no recursions; set recursions = 1";
        let needs_recursions = "needs recursions; set recursions = 2 or more";
        let needs_router = "needs a router; set router = expert or token";
        let own = self.recursion_keys == RecursionKeys::Own;
        let by_score = self.causal_validation || self.router == Router::Expert;
        for (holds, key, found, why) in [
            (self.recursions <= 1024, "recursions", self.recursions.to_string(), most),
            (!recurs || self.layers >= 3, "layers", self.layers.to_string(), middle),
            (!recurs || self.arm != Arm::Gam, "arm", "gam".into(), gam),
            (recurs || !is_routed, "router", self.router.name().into(), needs_recursions),
            (recurs || own, "recursion_keys", "shared".into(), needs_recursions),
            (is_routed || scale.is_none(), "router_scale", number(scale), needs_router),
            (is_routed || loss.is_none(), "router_loss", number(loss), needs_router),
            (scale.is_none_or(is_number), "router_scale", number(scale), "must be 0 or more"),
            (loss.is_none_or(is_number), "router_loss", number(loss), "must be 0 or more"),
            (by_score, "causal_validation", "false".into(), "needs router = expert; leave it out"),
            (!is_routed || self.slopes == Slopes::None, "slopes", self.slopes.name().into(), lags),
            (!is_routed || !self.has_local_heads(), "arm", self.arm.name().into(), local),
        ] {
            require(holds, key, found, why)?;
        }
        Ok(())
    }

    /// Checks the variant and the keys that belong to it.
    fn check_arm(&self) -> Result<(), LmError> {
        if self.arm == Arm::Gam {
            self.check_without_attention()?;
        }
        self.arm.check(self.layers, self.heads, self.global_heads)?;
        require(
            !(self.ternary && self.has(Stabiliser::SigmaReparam)),
            "ternary",
            self.ternary,
            "must be false with sigma-reparam",
        )?;
        let d_head = self.head_dimension();
        let key = if self.d_head.is_some() { "d_head" } else { "d_model" };
        require(
            self.positions != Positions::Rope || d_head.is_multiple_of(2),
            key,
            self.d_head.unwrap_or(self.d_model),
            &format!("gives d_head = {d_head}; positions = rope needs an even number"),
        )?;
        require(
            self.positions != Positions::Sinusoidal || self.d_model.is_multiple_of(2),
            "d_model",
            self.d_model,
            "must be even with positions = sinusoidal",
        )?;
        for undoes in [Stabiliser::QkNorm, Stabiliser::SigmaReparam] {
            require(
                !(self.has(Stabiliser::QkClip) && self.has(undoes)),
                "stabilisers",
                "qk-clip",
                "has no effect with qk-norm or sigma-reparam, which rescale the weights; leave one out",
            )?;
        }
        Ok(())
    }
}
