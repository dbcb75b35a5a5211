//! The ramp: what of a trained head's locality is bought by logits that rise along the positions.
//!
//! Behind a causal mask the logits z_ij = c·j, of rank one, are local attention: softmax gives column j of row i a mass in
//! proportion to e^(−c(i−j)), whose mean lag is τ = 1/(e^c − 1) where the row is long. So c = ln(1 + 1/τ), and a row that
//! sees m columns has logits whose half-spread is (m − 1)/2 · ln(1 + 1/τ): it grows with the length, not with the rank.

use ndarray::{Array2, Axis};

use super::PredictError;
use super::head::{check_contiguous, check_finite, held_rows};
use super::positions::{Form, Nearest, SeenRows, Share};
use super::screen::{LAGS, spectrum_of_product};
use crate::fit::Outcome;
use crate::lm::HeadProbe;
use crate::pattern::{HeadKind, Visibility};

/// A head's logits and attention on some passages, over the rows that are held, against those of a ramp over positions.
///
/// Logits z are QKᵀ/√d: neither a softcap nor a slope over the lag that the head has beside them is in them, and both are in its
/// attention P. Shares are R² of logits less their row's mean over the columns seen, one fit for all rows of all passages,
/// every visible pair of the same weight; they are none where z is constant in each row. Divergences are mean over rows
/// of KL(P ‖ P̂), nats, P̂ the nearest attention of the form.
#[derive(Clone, Debug)]
pub struct Ramp {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// What it sees.
    pub kind: HeadKind,
    /// Tokens of a passage, n.
    pub tokens: usize,
    /// Rows of a passage that are held.
    pub rows: usize,
    /// The head dimension d.
    pub rank: usize,
    /// The slope m of what the head adds to its logits, m (j − i), nats a token, where it has one.
    pub given_slope: Option<f64>,
    /// max |z| over visible pairs, nats.
    pub max_abs_logit: f64,
    /// ½ max over rows of (max − min) of z, nats.
    pub half_spread: f64,
    /// Mean over rows of −Σ p ln p, nats.
    pub entropy_nats: f64,
    /// The effective rank of QKᵀ, hidden pairs among them, mean over passages.
    pub effective_rank_logits: f64,
    /// The same of QKᵀ less the mean of each row: 1 where the logits are a_i + b_i f(j).
    pub effective_rank_centred: f64,
    /// Σσ²/σ₁² of it (Rudelson and Vershynin 2007), mean over passages.
    pub stable_rank_centred: f64,
    /// τ = mean over rows of Σ_j p_ij (i − j), tokens.
    pub mean_lag: f64,
    /// The least lag within which lies half of the attention of all rows together, tokens.
    pub median_lag: usize,
    /// The mass on the last of [`LAGS`] tokens, mean over rows.
    pub mass_within: [f64; 4],
    /// [`ramp_half_spread`] of τ and the columns that a row sees at most, nats; none where τ is 0.
    pub formula: Option<f64>,
    /// The share of c·j.
    pub share_ramp: Option<f64>,
    /// The share of c_i j: a slope of its own for each row.
    pub share_lines: Option<f64>,
    /// The share of f(j), any function of the position.
    pub share_position: Option<f64>,
    /// The share of g(i − j), any function of the lag.
    pub share_lag: Option<f64>,
    /// The share of f(j) + g(i − j).
    pub share_position_and_lag: Option<f64>,
    /// The c of `share_ramp`, nats a token.
    pub slope: f64,
    /// The divergence of uniform attention to what each row sees.
    pub kl_uniform: f64,
    /// The divergence of the nearest softmax(c·j).
    pub kl_ramp: f64,
    /// The divergence of the nearest softmax(f(j)).
    pub kl_position: f64,
    /// The divergence of the nearest softmax(g(i − j)).
    pub kl_lag: f64,
    /// The c of `kl_ramp`, nats a token.
    pub slope_kl: f64,
    /// `Converged` where the least squares and the divergences all were brought to their tolerance; `StepLimit` where
    /// one was not, and its share is under its best or its divergence over.
    pub outcome: Outcome,
}

/// (m − 1)/2 · ln(1 + 1/τ), nats: the half-spread of a ramp of mean lag τ in a row that sees m columns; none where τ is 0,
/// which no ramp has.
pub fn ramp_half_spread(columns: usize, mean_lag: f64) -> Option<f64> {
    (mean_lag > 0.0).then(|| 0.5 * (columns as f64 - 1.0) * (1.0 / mean_lag).ln_1p())
}

/// τ = 1/(e^c − 1), tokens: the mean lag of a ramp of slope c in a long row; none where c ≤ 0, which is not local.
pub fn ramp_lag(slope: f64) -> Option<f64> {
    (slope > 0.0).then(|| 1.0 / slope.exp_m1())
}

/// The columns that a row of `tokens` sees at most.
pub fn reach(kind: HeadKind, tokens: usize) -> usize {
    kind.window().map_or(tokens, |window| window.min(tokens))
}

impl Ramp {
    /// Measures the head that `probes` are of, one a passage, all of one length. Of each passage all rows are held, or,
    /// where it is longer than `most` tokens, so many that lie evenly apart.
    ///
    /// # Errors
    /// No probe, a head of a two-dimensional window or that sees what comes after a token, logits that are not finite; `Decomposition` where
    /// LAPACK fails.
    pub fn of(probes: &[&HeadProbe], most: Option<usize>) -> Result<Self, PredictError> {
        let &first = probes.first().ok_or(PredictError::NoPassage)?;
        let HeadProbe { layer, head, kind, .. } = *first;
        check_contiguous(probes)?;
        check_finite(probes)?;
        if probes.iter().any(|probe| probe.visibility != Visibility::Causal) {
            return Err(PredictError::NotCausal { layer, head });
        }
        let tokens = first.queries.nrows();
        let held = held_rows(tokens, most);
        let seen = SeenRows::of(probes, &held);
        let Looks { max_abs_logit, half_spread, entropy_nats, mean_lag, median_lag, mass_within } =
            Looks::of(&seen);
        let [effective_rank_logits, effective_rank_centred, stable_rank_centred] =
            ranks(probes, &held)?;

        let forms = [Form::Ramp, Form::Position, Form::Lag, Form::PositionAndLag];
        let shares = forms.map(|form| seen.share_of(form));
        let formula = ramp_half_spread(reach(kind, tokens), mean_lag);
        // In long rows the nearest ramp is the one of the head's mean lag.
        let rise = ramp_half_spread(tokens, mean_lag).map_or(0.0, |half| 2.0 * half);
        let ramp = seen.nearest(Form::Ramp, vec![rise]);
        // A ramp is a member of both wider forms: what they find is nearer.
        let by_position: Vec<f64> =
            (0..tokens).map(|j| Form::slope(&ramp.theta, tokens) * j as f64).collect();
        let by_lag: Vec<f64> = by_position.iter().map(|z| -z).collect();
        let position = seen.nearest(Form::Position, by_position);
        let lag = seen.nearest(Form::Lag, by_lag);
        let converged = shares.iter().all(|share| share.converged)
            && [&ramp, &position, &lag].iter().all(|nearest| nearest.converged);
        let [line, of_position, of_lag, of_both] = &shares;
        let told = |share: &Share| share.of_variance;
        let nats = |nearest: &Nearest| nearest.kl_nats.max(0.0);
        Ok(Self {
            layer,
            head,
            kind,
            tokens,
            rows: held.len(),
            rank: first.queries.ncols(),
            given_slope: first.slope.map(f64::from),
            max_abs_logit,
            half_spread,
            entropy_nats,
            effective_rank_logits,
            effective_rank_centred,
            stable_rank_centred,
            mean_lag,
            median_lag,
            mass_within,
            formula,
            share_ramp: told(line),
            share_lines: seen.share_of_lines(),
            share_position: told(of_position),
            share_lag: told(of_lag),
            share_position_and_lag: told(of_both),
            slope: Form::slope(&line.theta, tokens),
            kl_uniform: seen.divergence_from_uniform().max(0.0),
            kl_ramp: nats(&ramp),
            kl_position: nats(&position),
            kl_lag: nats(&lag),
            slope_kl: Form::slope(&ramp.theta, tokens),
            outcome: if converged { Outcome::Converged } else { Outcome::StepLimit },
        })
    }
}

/// What one look at every row gives.
struct Looks {
    max_abs_logit: f64,
    half_spread: f64,
    entropy_nats: f64,
    mean_lag: f64,
    median_lag: usize,
    mass_within: [f64; 4],
}

impl Looks {
    fn of(seen: &SeenRows) -> Self {
        let (mut max_abs_logit, mut spread, mut entropy) = (0.0f64, 0.0f64, 0.0);
        let mut mass_at = vec![0.0; seen.tokens];
        for row in seen.each() {
            let [low, high] = row
                .logits
                .iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], &z| [l.min(z), h.max(z)]);
            max_abs_logit = max_abs_logit.max(low.abs()).max(high.abs());
            spread = spread.max(high - low);
            entropy -= row.attention.iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>();
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
        Self {
            max_abs_logit,
            half_spread: 0.5 * spread,
            entropy_nats: entropy / rows,
            mean_lag: mass_at.iter().enumerate().map(|(lag, p)| lag as f64 * p).sum::<f64>() / rows,
            median_lag: mass_at.iter().position(reaches_half).unwrap_or(0),
            mass_within: LAGS.map(within),
        }
    }
}

/// The effective rank of QKᵀ, and the effective and the stable rank of QKᵀ less its rows' means, over passages.
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
