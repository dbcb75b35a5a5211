//! The rows of trained heads compared with the logits that their attention needs.

use crate::experiments::model_key::{ModelKey, OfHead};
use crate::heads::{HeadMeasurement, PARTS, PrecisionRisk};
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row, record};
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// The slack for float32 weights that are treated as exact.
const OF_WEIGHTS: f64 = 1e-5;

record! {
    /// Identifies a cell: a layer of a model at a step.
    #[derive(Default)]
    pub struct HeadKey {
        /// the model
        model: ModelKey,
        /// the layer, the first 0
        #[range = Placed]
        layer: usize,
    }
}

impl OfHead for HeadKey {
    fn model(&self) -> &ModelKey {
        &self.model
    }
}

/// Divergences are not negative.
pub(crate) fn check_precision(risk: Option<&PrecisionRisk>, check: &mut InvariantChecker) {
    let Some(PrecisionRisk { kl_bf16, kl_f16, kl_f8 }) = risk else { return };
    for (column, kl) in [("kl_bf16", kl_bf16), ("kl_f16", kl_f16), ("kl_f8", kl_f8)] {
        check.at_least(column, *kl, 0.0);
    }
}

impl Measurement for HeadMeasurement {
    type Key = HeadKey;

    const NAME: &'static str = "predict";
    const VERSION: u32 = 4;

    fn outcome(&self) -> String {
        self.outcome.name().to_owned()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, f) = (&row.of.model, &row.found);
        check.at(format!("{} head {} rank {} ε {}", row.cell, f.head, f.rank, f.epsilon));
        let n = f.n as f64;
        check.within("head", f.head as f64, 0.0, of.heads as f64 - 1.0);
        check.within("layer", row.of.layer as f64, 0.0, of.layers as f64 - 1.0);
        check.within("n", n, 1.0, of.context as f64);
        check.within("rows", f.rows as f64, 1.0, n);
        check.at_least("passages", f.passages as f64, 1.0);
        check.at_least("epsilon", f.epsilon, f64::MIN_POSITIVE);
        if let (HeadKind::Local { window }, Some(widest)) = (f.kind, of.window) {
            check.within("the window of kind", window as f64, widest as f64, widest as f64);
        }
        if let (Some(d_head), Some(width)) = (of.head_dimension(), of.d_model) {
            check.within("rank", f.rank as f64, d_head as f64, width.max(d_head) as f64);
        }
        check.at_least("actual", f.actual, 0.0);
        check.at_least("spread", f.spread, 0.0);
        check.at_most("spread exceeds twice actual", f.spread, 2.0 * f.actual, OF_WEIGHTS);
        check.within("entropy_nats", f.entropy_nats, 0.0, n.ln() + OF_WEIGHTS);
        check.at_least("effective_rank_logits", f.effective_rank_logits, 0.0);
        let rank = f.rank as f64;
        check.at_most(
            "effective rank of the logits exceeds d",
            f.effective_rank_logits,
            rank,
            OF_WEIGHTS,
        );
        check.there(
            "effective_rank_attention",
            f.effective_rank_attention.as_ref(),
            f.is_fitted() && f.rows == f.n,
        );
        if let Some(rank) = f.effective_rank_attention {
            check.within("effective_rank_attention", rank, 1.0 - OF_WEIGHTS, n + OF_WEIGHTS);
        }
        let masses =
            [0.0, f.mass_within_1, f.mass_within_4, f.mass_within_16, f.mass_within_64, 1.0];
        for pair in masses.windows(2) {
            check.at_most("mass falls with the lag", pair[0], pair[1], OF_WEIGHTS);
        }
        if let Some(rank) = f.input_rank {
            check.within("input_rank", rank as f64, 1.0, (f.passages * f.n) as f64);
        }
        for (column, value, outcome) in [
            ("needed", f.needed, f.outcome),
            ("needed_from_input", f.needed_from_input, f.outcome_from_input),
        ] {
            let unreached = [Outcome::Infeasible, Outcome::Screened];
            check.there(column, value.as_ref(), !unreached.contains(&outcome));
        }
        check.holds(f.is_fitted() == (f.outcome_from_input != Outcome::Screened), || {
            "outcome and outcome_from_input do not agree on whether it was fitted".to_owned()
        });
        check.within("iterations", f.iterations as f64, 0.0, f.evaluations as f64);
        check.at_least("wall_time_s", f.wall_time_s, 0.0);
        f.check_what_is_screened(check);
        check_precision(f.precision.as_ref(), check);
        f.check_what_is_needed(check);
    }
}

impl HeadMeasurement {
    /// Checks columns that rows have only since heads are screened: all of them are present, or none.
    fn check_what_is_screened(&self, check: &mut InvariantChecker) {
        let screened = self.key_head.is_some();
        for (column, value) in [
            ("scale", self.scale),
            ("max_logit", self.max_logit),
            ("max_dot", self.max_dot),
            ("first_mass", self.first_mass),
            ("sink_mass", self.sink_mass),
        ] {
            check.there(column, value.as_ref(), screened);
        }
        check.there("max_logit_capped", self.max_logit_capped.as_ref(), self.softcap.is_some());
        let Some(key_head) = self.key_head else {
            check.holds(self.is_fitted(), || {
                "is screened, but without what is then told".to_owned()
            });
            return;
        };
        check.at_most("key_head exceeds the head", key_head as f64, self.head as f64, 0.0);
        let (scale, max_logit) = (self.scale.unwrap_or(f64::NAN), self.max_logit);
        check.at_least("scale", scale, f64::MIN_POSITIVE);
        check.at_least("bias_range", self.bias_range.unwrap_or(0.0), 0.0);
        check.holds(self.bias_range.is_none() || !self.is_fitted(), || {
            "is fitted beside a position bias".to_owned()
        });
        check.within("max_logit", max_logit.unwrap_or(f64::NAN), -self.actual, self.actual);
        check.equal(
            "max_dot is not max_logit / scale",
            self.max_dot,
            max_logit.map(|z| z / scale),
            ROUNDING,
        );
        if let Some(cap) = self.softcap {
            check.at_least("softcap", cap, f64::MIN_POSITIVE);
            let capped = max_logit.map(|z| cap * (z / cap).tanh());
            check.equal(
                "max_logit_capped is not c·tanh(z/c)",
                self.max_logit_capped,
                capped,
                ROUNDING,
            );
        }
        for (column, share) in [
            ("first_mass", self.first_mass),
            ("sink_mass", self.sink_mass),
            ("share_ramp", self.share_ramp.or(Some(0.0))),
        ] {
            check.within(column, share.unwrap_or(f64::NAN), 0.0, 1.0 + OF_WEIGHTS);
        }
    }

    fn check_what_is_needed(&self, check: &mut InvariantChecker) {
        let (floor, needed, tied) = (self.floor, self.needed, self.needed_from_input);
        check.at_least("floor", floor.unwrap_or(f64::NAN), 0.0);
        // Attention within ε of uniform needs no logits, so it is not fitted.
        let fitted = floor.is_some_and(|floor| floor > 0.0);
        if needed.is_some() {
            check.at_most("needed is under its floor", floor, needed, OF_WEIGHTS);
            check.there("kl_nats", self.kl_nats.as_ref(), fitted);
        }
        if tied.is_some() {
            check.at_most("needed_from_input is under needed", needed, tied, OF_WEIGHTS);
            // A softcap makes attention from logits of another size, so the head's own weights need not reach ε.
            if self.softcap.is_none() {
                check.at_most("actual is under needed_from_input", tied, self.actual, OF_WEIGHTS);
            }
            check.there("kl_nats_from_input", self.kl_nats_from_input.as_ref(), fitted);
        }
        if fitted && needed.is_some() {
            check.at_most("kl_nats exceeds ε", self.kl_nats, self.epsilon, OF_WEIGHTS);
        }
        if fitted && tied.is_some() {
            check.at_most(
                "kl_nats_from_input exceeds ε",
                self.kl_nats_from_input,
                self.epsilon,
                OF_WEIGHTS,
            );
        }
        let parts =
            [self.floor, self.inflation, self.input_factor, self.excess_factor, self.shift_factor];
        for ((told, part), column) in parts.into_iter().zip(self.factors()).zip(PARTS) {
            check.there(column, told.as_ref(), part.is_some());
            if part.is_some() {
                check.equal(&format!("{column} is not the ratio"), told, part, OF_WEIGHTS);
            }
        }
        if let Some(parts) = parts.into_iter().collect::<Option<Vec<f64>>>() {
            let product: f64 = parts.iter().product();
            check.equal("the parts' product is not actual", product, self.actual, OF_WEIGHTS);
        }
    }
}
