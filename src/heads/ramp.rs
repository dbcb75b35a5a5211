//! The ramp: the share of a trained head's local attention that comes from logits linear in the key's position.
//!
//! Behind a causal mask, logits z_ij = c·j of rank one give local attention: softmax gives column j of row i a mass
//! proportional to e^(−c(i−j)). In a long row its mean relative distance is τ = 1/(e^c − 1), so c = ln(1 + 1/τ). A row of m
//! columns then has logits of half-range (m − 1)/2 · ln(1 + 1/τ), which grows with the length, not with the rank.

use std::time::Instant;

use ndarray::{Array2, Axis};

use super::PredictError;
use super::head::{check_finite, held_rows, refuse};
use super::positions::{Form, Nearest, SeenRows};
use super::precision::PrecisionRisk;
use super::screen::{LAGS, spectrum_of_product};
use crate::lm::{HeadProbe, PositionBias};
use crate::record::{record, to_milliseconds};
use crate::solver::Outcome;
use crate::targets::{HeadKind, Visibility};

record! {
    /// Logits and attention of a trained head on a group of passages, compared with a ramp over positions, over the measured
    /// rows.
    ///
    /// Logits z are QKᵀ/√d, without the head's softcap and linear position bias, if any; its attention P includes both. Shares
    /// are R² of logits minus their row mean over the allowed columns, with one fit for all rows of all passages and equal
    /// weight on every allowed pair. Divergences are means over rows of KL(P ‖ P̂), with P̂ the nearest attention of the form.
    #[derive(Default)]
    pub struct RampMeasurement {
        /// the layer, from 0
        #[range = Placed]
        layer: usize,
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
        /// the rows per passage that are measured
        #[range = Counted]
        rows: usize,
        /// the head dimension d
        #[range = Counted]
        rank: usize,
        /// m of the linear position bias m (j − i), if the head has one
        #[unit = "nats a token"]
        given_slope: Option<f64>,
        /// max |z|, z = QKᵀ/√d
        #[unit = "nats"]
        actual: f64,
        /// half the largest max − min of a row of z
        #[unit = "nats"]
        half_spread: f64,
        /// (m − 1)/2 · ln(1 + 1/mean_lag), m = n or the window: the logit of a ramp with that mean distance; empty if it is 0
        #[unit = "nats"]
        formula: Option<f64>,
        /// mean relative distance: mean over rows of Σ p (i − j)
        #[unit = "tokens"]
        mean_lag: f64,
        /// the least relative distance that holds half of all attention
        #[unit = "tokens"]
        median_lag: usize,
        /// mean entropy of the rows, −Σ p ln p
        #[unit = "nats"]
        entropy_nats: f64,
        /// attention on the token itself
        mass_within_1: f64,
        /// attention on the last 4 tokens
        mass_within_4: f64,
        /// attention on the last 16 tokens
        mass_within_16: f64,
        /// attention on the last 64 tokens
        mass_within_64: f64,
        /// effective rank of QKᵀ, mean over passages
        effective_rank_logits: f64,
        /// effective rank of QKᵀ less its row means, mean over passages
        effective_rank_centred: f64,
        /// stable rank Σσ²/σ₁² of QKᵀ less its row means
        stable_rank_centred: f64,
        /// R² within rows of c·j; empty if z is constant in every row
        share_ramp: Option<f64>,
        /// R² of c_i j, with its own slope per row
        share_lines: Option<f64>,
        /// R² of any function of j
        share_position: Option<f64>,
        /// R² of one score per key and passage, added alike to every query: at least share_position
        share_key: Option<f64>,
        /// R² of any function of i − j
        share_lag: Option<f64>,
        /// R² of a function of j and one of i − j
        share_position_and_lag: Option<f64>,
        /// c of share_ramp
        #[unit = "nats a token"]
        slope: f64,
        /// mean over rows of KL(P ‖ uniform attention)
        #[unit = "nats"]
        kl_uniform: f64,
        /// KL of the nearest softmax(c·j)
        #[unit = "nats"]
        kl_ramp: f64,
        /// KL of the nearest softmax of a function of j
        #[unit = "nats"]
        kl_position: f64,
        /// KL of the nearest softmax of a function of i − j
        #[unit = "nats"]
        kl_lag: f64,
        /// 1 − kl_ramp / kl_uniform; empty if P is uniform
        ramp_kl_share: Option<f64>,
        /// c of kl_ramp
        #[unit = "nats a token"]
        slope_kl: f64,
        /// 1/(e^c − 1) for that c: its mean distance in a long row; empty if c ≤ 0
        #[unit = "tokens"]
        ramp_lag: Option<f64>,
        /// how much rounding of the logits changes the attention
        precision: Option<PrecisionRisk>,
        /// `converged`, or `step-limit` if a share may be too low or a KL too high
        outcome: Outcome,
        /// the time of the head
        #[unit = "s"]
        wall_time_s: f64,
    }
}

/// (m − 1)/2 · ln(1 + 1/τ): the half-range of a ramp of mean relative distance τ in a row of m columns. Returns `None` if τ is
/// 0, which no ramp has.
pub fn ramp_half_spread(columns: usize, mean_lag: f64) -> Option<f64> {
    (mean_lag > 0.0).then(|| 0.5 * (columns as f64 - 1.0) * (1.0 / mean_lag).ln_1p())
}

/// τ = 1/(e^c − 1), in tokens: the mean relative distance of a ramp of slope c in a long row. Returns `None` if c ≤ 0, which is
/// not local.
pub fn ramp_lag(slope: f64) -> Option<f64> {
    (slope > 0.0).then(|| 1.0 / slope.exp_m1())
}

/// The largest number of columns to which a row of a passage of `tokens` may attend.
pub fn reach(kind: HeadKind, tokens: usize) -> usize {
    kind.window().map_or(tokens, |window| window.min(tokens))
}

impl RampMeasurement {
    /// Measures a head from `probes`, one per passage of the group `passage`, all of one length. All rows of each passage are
    /// measured, or `most` evenly spaced ones of a longer passage.
    ///
    /// # Errors
    /// No probe, a head without a causal mask, logits that are not finite; `Decomposition` if
    /// LAPACK fails.
    pub fn measure(
        probes: &[&HeadProbe],
        passage: usize,
        most: Option<usize>,
    ) -> Result<Self, PredictError> {
        let began = Instant::now();
        let &first = probes.first().ok_or(PredictError::NoPassage)?;
        let HeadProbe { layer, head, kind, .. } = *first;
        check_finite(probes)?;
        refuse(
            probes,
            |probe| probe.visibility != Visibility::Causal,
            "is not causal, which this measurement needs; take a causal model",
        )?;
        let tokens = first.queries.nrows();
        let held = held_rows(tokens, most);
        let seen = SeenRows::of(probes, &held);
        let looks = Self::looks(&seen);
        let [effective_rank_logits, effective_rank_centred, stable_rank_centred] =
            ranks(probes, &held)?;

        let forms = [Form::Ramp, Form::Position, Form::Lag, Form::PositionAndLag];
        let shares = forms.map(|form| seen.share_of(form));
        let passages: Vec<SeenRows> =
            probes.iter().map(|&probe| SeenRows::of(&[probe], &held)).collect();
        let (share_key, key_scores_converged) = SeenRows::share_of_key_scores(&passages);
        let formula = ramp_half_spread(reach(kind, tokens), looks.mean_lag);
        // In long rows the nearest ramp has the head's mean relative distance.
        let rise = ramp_half_spread(tokens, looks.mean_lag).map_or(0.0, |half| 2.0 * half);
        let ramp = seen.nearest(Form::Ramp, vec![rise]);
        // A ramp is a member of both wider forms, so their results are at least as near.
        let by_position: Vec<f64> =
            (0..tokens).map(|j| Form::slope(&ramp.theta, tokens) * j as f64).collect();
        let by_lag: Vec<f64> = by_position.iter().map(|z| -z).collect();
        let position = seen.nearest(Form::Position, by_position);
        let lag = seen.nearest(Form::Lag, by_lag);
        let converged = shares.iter().all(|share| share.converged)
            && [&ramp, &position, &lag].iter().all(|nearest| nearest.converged)
            && key_scores_converged;
        let [line, of_position, of_lag, of_both] = &shares;
        let nats = |nearest: &Nearest| nearest.kl_nats.max(0.0);
        let kl_uniform = seen.divergence_from_uniform().max(0.0);
        let kl_ramp = nats(&ramp);
        let slope_kl = Form::slope(&ramp.theta, tokens);
        Ok(Self {
            layer,
            head,
            kind,
            passage,
            passages: probes.len(),
            n: tokens,
            rows: held.len(),
            rank: first.queries.ncols(),
            given_slope: first.bias.as_ref().and_then(PositionBias::slope),
            formula,
            effective_rank_logits,
            effective_rank_centred,
            stable_rank_centred,
            share_ramp: line.of_variance,
            share_lines: seen.share_of_lines(),
            share_position: of_position.of_variance,
            share_key,
            share_lag: of_lag.of_variance,
            share_position_and_lag: of_both.of_variance,
            slope: Form::slope(&line.theta, tokens),
            kl_uniform,
            kl_ramp,
            kl_position: nats(&position),
            kl_lag: nats(&lag),
            ramp_kl_share: (kl_uniform > 0.0).then(|| 1.0 - kl_ramp / kl_uniform),
            slope_kl,
            ramp_lag: ramp_lag(slope_kl),
            precision: Some(PrecisionRisk::of_rows(&seen, first.softcap.map(f64::from))),
            outcome: if converged { Outcome::Converged } else { Outcome::StepLimit },
            wall_time_s: to_milliseconds(began.elapsed().as_secs_f64()),
            ..looks
        })
    }

    /// Statistics from one pass over all rows; the other columns are empty.
    fn looks(seen: &SeenRows) -> Self {
        let (mut max_abs_logit, mut spread, mut entropy) = (0.0f64, 0.0f64, 0.0);
        let mut mass_at = vec![0.0; seen.tokens];
        for row in seen.each() {
            let [low, high] = row.extremes();
            max_abs_logit = max_abs_logit.max(low.abs()).max(high.abs());
            spread = spread.max(high - low);
            entropy += row.entropy();
            for (lag, p) in row.lags().rev().zip(row.attention) {
                mass_at[lag] += p;
            }
        }
        let rows = seen.len() as f64;
        let within = |lags: usize| mass_at.iter().take(lags).sum::<f64>() / rows;
        let half = 0.5 * mass_at.iter().sum::<f64>();
        let mut sum = 0.0;
        let reaches_half = |mass: &f64| {
            sum += mass;
            sum >= half
        };
        let [mass_within_1, mass_within_4, mass_within_16, mass_within_64] = LAGS.map(within);
        Self {
            actual: max_abs_logit,
            half_spread: 0.5 * spread,
            entropy_nats: entropy / rows,
            mean_lag: mass_at.iter().enumerate().map(|(lag, p)| lag as f64 * p).sum::<f64>() / rows,
            median_lag: mass_at.iter().position(reaches_half).unwrap_or(0),
            mass_within_1,
            mass_within_4,
            mass_within_16,
            mass_within_64,
            ..Self::default()
        }
    }
}

/// Effective rank of QKᵀ, and effective and stable rank of QKᵀ minus its row means, each a mean over passages.
fn ranks(probes: &[&HeadProbe], held: &[usize]) -> Result<[f64; 3], PredictError> {
    let mut sums = [0.0; 3];
    for probe in probes {
        let queries = probe.queries.select(Axis(0), held).mapv(f64::from);
        let keys = probe.keys.mapv(f64::from);
        let mean: Array2<f64> =
            keys.mean_axis(Axis(0)).expect("a passage has tokens").insert_axis(Axis(0));
        let centred = spectrum_of_product(&queries, &(&keys - &mean))?;
        let squares: f64 = centred.singular_values.iter().map(|sigma| sigma * sigma).sum();
        let largest = centred.singular_values.first().copied().unwrap_or(0.0);
        let of_passage = [
            spectrum_of_product(&queries, &keys)?.effective_rank,
            centred.effective_rank,
            if largest > 0.0 { squares / (largest * largest) } else { 0.0 },
        ];
        for (sum, value) in sums.iter_mut().zip(of_passage) {
            *sum += value / probes.len() as f64;
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests;
