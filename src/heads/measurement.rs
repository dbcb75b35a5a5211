//! The record of a trained head: its logits, and those that its attention needs.

use super::{Parts, PrecisionRisk};
use crate::record::{record, to_milliseconds};
use crate::solver::Outcome;
use crate::targets::HeadKind;

record! {
    /// The logits of a trained head on a group of passages, and those that its attention needs at one ε.
    #[derive(Default)]
    pub struct HeadMeasurement {
        /// the head, from 0
        #[range = Placed]
        head: usize,
        /// the kind of head: `global` or `local:W`
        kind: HeadKind,
        /// the group of passages
        passage: usize,
        /// the number of passages in the group
        #[range = Counted]
        passages: usize,
        /// the tokens per passage
        #[range = Counted]
        n: usize,
        /// the rows per passage that were fitted
        #[range = Counted]
        rows: usize,
        /// the head dimension d
        #[range = Counted]
        rank: usize,
        /// ε, the allowed error
        #[unit = "nats"]
        #[range = Positive]
        epsilon: f64,
        /// max |logit| of the head
        #[unit = "nats"]
        actual: f64,
        /// logit range: the largest max − min of a row
        #[unit = "nats"]
        spread: f64,
        /// L*(ε; P, d), the least max |logit| at rank d
        #[unit = "nats"]
        needed: Option<f64>,
        /// Lˣ(ε; P, d), the same with Q = X·W_q and K = X·W_k
        #[unit = "nats"]
        needed_from_input: Option<f64>,
        /// L⁰(ε; P), the full-rank minimum of max |logit|
        #[unit = "nats"]
        floor: Option<f64>,
        /// rank penalty: needed / floor; empty if either is 0
        inflation: Option<f64>,
        /// input factor: needed_from_input / needed
        input_factor: Option<f64>,
        /// the rank of the layer's input on the tokens that were fitted; if it is their number, the input factor is 1
        #[range = Counted]
        input_rank: Option<usize>,
        /// excess factor: ½ spread / needed_from_input
        excess_factor: Option<f64>,
        /// shift factor: actual / ½ spread
        shift_factor: Option<f64>,
        /// mean entropy of the rows, −Σ p ln p
        #[unit = "nats"]
        entropy_nats: f64,
        /// effective rank of QKᵀ, mean over passages
        effective_rank_logits: f64,
        /// effective rank of P, mean over passages, if every row is measured
        effective_rank_attention: Option<f64>,
        /// attention on the token itself
        mass_within_1: f64,
        /// attention on the last 4 tokens
        mass_within_4: f64,
        /// attention on the last 16 tokens
        mass_within_16: f64,
        /// attention on the last 64 tokens
        mass_within_64: f64,
        /// the key head that this head reads, from 0
        #[range = Placed]
        key_head: Option<usize>,
        /// s, the factor of q·k
        scale: Option<f64>,
        /// c, if logits z are bounded by c·tanh(z/c)
        #[unit = "nats"]
        softcap: Option<f64>,
        /// max z, before a softcap
        #[unit = "nats"]
        max_logit: Option<f64>,
        /// max c·tanh(z/c)
        #[unit = "nats"]
        max_logit_capped: Option<f64>,
        /// max q·k, without s
        max_dot: Option<f64>,
        /// the largest max − min of a row's position bias, which is not part of logits; empty without one
        #[unit = "nats"]
        bias_range: Option<f64>,
        /// attention on the first token of a passage
        first_mass: Option<f64>,
        /// the weight of a learned sink
        sink_mass: Option<f64>,
        /// share (R²) of the centred logits that c·j explains; empty if they are constant, or not causal
        share_ramp: Option<f64>,
        /// how much rounding of the logits changes the attention
        precision: Option<PrecisionRisk>,
        /// the error of the fit with free queries and keys
        #[unit = "nats"]
        kl_nats: Option<f64>,
        /// the error of the fit with Q = X·W_q and K = X·W_k
        #[unit = "nats"]
        kl_nats_from_input: Option<f64>,
        /// the outcome of the fit with free queries and keys, or `screened`
        outcome: Outcome,
        /// the outcome of the fit with Q = X·W_q and K = X·W_k
        outcome_from_input: Outcome,
        /// L-BFGS iterations of both fits
        iterations: usize,
        /// evaluations of objective and gradient in both fits
        evaluations: usize,
        /// the time of both fits, or of screening
        #[unit = "s"]
        wall_time_s: f64,
    }
}

/// The names of the factors, in the order of [`HeadMeasurement::factors`].
pub const PARTS: [&str; 5] =
    ["floor", "inflation", "input_factor", "excess_factor", "shift_factor"];

impl HeadMeasurement {
    /// The row at one ε with its floor, without a fit.
    pub(super) fn at(&self, epsilon: f64, floor: Option<f64>, wall_time_s: f64) -> Self {
        let wall_time_s = to_milliseconds(wall_time_s);
        Self { epsilon, floor, wall_time_s, ..self.clone() }.with_factors()
    }

    /// The row at the ε of the fits `parts`, with what they found.
    pub fn fitted(&self, parts: &Parts, wall_time_s: f64) -> Self {
        let Parts { epsilon, floor, needed: free, needed_from_input: tied, input_rank } = parts;
        Self {
            needed: free.max_abs_logit(),
            input_rank: Some(*input_rank),
            needed_from_input: tied.max_abs_logit(),
            kl_nats: free.solution().map(|found| found.kl_nats),
            kl_nats_from_input: tied.solution().map(|found| found.kl_nats),
            outcome: free.outcome,
            outcome_from_input: tied.outcome,
            iterations: free.iterations + tied.iterations,
            evaluations: free.evaluations + tied.evaluations,
            ..self.at(*epsilon, *floor, wall_time_s)
        }
        .with_factors()
    }

    fn with_factors(self) -> Self {
        let [_, inflation, input_factor, excess_factor, shift_factor] = self.factors();
        Self { inflation, input_factor, excess_factor, shift_factor, ..self }
    }

    /// Whether the layer's input restricts queries and keys: with as many channels as tokens, any are projections of it.
    pub fn is_restricted_by_input(&self) -> bool {
        self.input_rank.is_none_or(|rank| rank < self.passages * self.n)
    }

    /// Whether the head was fitted, not only screened.
    pub fn is_fitted(&self) -> bool {
        self.outcome != Outcome::Screened
    }

    /// The factors of actual = floor · inflation · input_factor · excess_factor · shift_factor, in the order of [`PARTS`]: the
    /// floor, and the ratio of each level to the one before. A ratio is `None` if either level is 0 or was not found. Centring
    /// the rows costs one rank, so the excess factor may be slightly below 1. The shift factor is at least 1 up to rounding.
    pub fn factors(&self) -> [Option<f64>; 5] {
        let &Self { floor, needed, needed_from_input, spread, actual, .. } = self;
        let half_spread = Some(0.5 * spread);
        [
            floor,
            ratio(needed, floor),
            ratio(needed_from_input, needed),
            ratio(half_spread, needed_from_input),
            ratio(Some(actual), half_spread),
        ]
    }

    /// floor, inflation, input_factor, excess_factor and shift_factor, whose product is `actual`; `None` if one is unknown or
    /// the floor is 0.
    pub fn parts(&self) -> Option<[f64; 5]> {
        let [floor, inflation, input_factor, excess_factor, shift_factor] = self.factors();
        Some([floor?, inflation?, input_factor?, excess_factor?, shift_factor?])
    }
}

fn ratio(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    match (over?, under?) {
        (over, under) if over > 0.0 && under > 0.0 => Some(over / under),
        _ => None,
    }
}
