//! Concentration: on how few tokens a trained head's attention lies, and in how few dimensions.
//!
//! Attention P, (T, T), is sparse where each row's mass lies on few columns, and low-rank where all rows together are near to
//! a matrix of few dimensions. Neither says the other: the identity is sparse and of full rank, uniform attention dense and, but
//! for the mask, of rank one. Both are told of whole rows and of their far part, what lies beyond a window, by itself.

use ndarray::{Array2, s};
use ndarray_linalg::{EigValsh, UPLO};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::PredictError;
use super::far::far_columns;
use super::head::check_finite;
use crate::lm::HeadProbe;
use crate::numerics::blas::on_one_thread;
use crate::numerics::product;
use crate::pattern::{HeadKind, TargetError, Visibility};

/// The k of the mass that a row's k largest entries hold.
pub const TOP: [usize; 3] = [4, 16, 64];
/// What rounding may take from a share.
const ROUNDING: f64 = 1e-12;

/// How concentrated a head's attention is on some passages, over the rows that are held: [`held_from`] on to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Concentration {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// What it sees.
    pub kind: HeadKind,
    /// Tokens of a passage, T.
    pub tokens: usize,
    /// The head dimension d.
    pub rank: usize,
    /// Columns that a row sees, mean over rows.
    pub columns: f64,
    /// Columns of its far part, mean over rows: those at a lag of the window or more, but for the first.
    pub far_columns: f64,
    /// p_i0, the mass of the first column, mean over rows.
    pub sink_mass: f64,
    /// Σ p_ij over far columns j, mean over rows.
    pub far_mass: f64,
    /// Of P.
    pub whole: Dispersion,
    /// Of P with all but its far part set to 0; none where a row has no mass there.
    pub far: Option<Dispersion>,
    /// The ranks of the same with each row's far entries in random order: what such entries take without structure in common.
    pub shuffled: Option<Ranks>,
}

/// How widely a matrix's rows, each divided by its sum, and the matrix itself are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// exp(H) of a row, H = −Σ p ln p, mean over rows: m of a row that is uniform over m columns.
    pub effective_tokens: f64,
    /// The least k whose largest entries hold 0.9 of a row, mean over rows.
    pub tokens_90: f64,
    /// What the k largest entries of a row hold, k of [`TOP`], mean over rows.
    pub top: [f64; 3],
    /// Of the matrix.
    pub ranks: Ranks,
}

/// How many dimensions a matrix M takes, σ its singular values: means over passages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ranks {
    /// The least r with ‖M − M_r‖_F² = Σ_{k>r} σ_k² ≤ 0.1 ‖M‖_F² (Eckart and Young 1936): no matrix of a lower rank is as near.
    pub rank_90: f64,
    /// The same with 0.01.
    pub rank_99: f64,
    /// ‖M‖_F²/σ₁² (Rudelson and Vershynin 2007).
    pub stable_rank: f64,
}

/// The first row that is held: max(n/2, W + n/4), so that each row sees half of the passage or more and a quarter of it far.
pub fn held_from(tokens: usize, window: usize) -> usize {
    (tokens / 2).max(window + tokens / 4)
}

impl Concentration {
    /// Measures the head that `probes` are of, one a passage, all of one length; what is `window` tokens back or more is far.
    /// `seed` is that of the shuffled entries.
    ///
    /// # Errors
    /// No probe, a head that sees what comes after a token, logits that are not finite, a window that leaves no row to
    /// hold; `Decomposition` where LAPACK fails.
    pub fn of(probes: &[&HeadProbe], window: usize, seed: u64) -> Result<Self, PredictError> {
        let &first = probes.first().ok_or(PredictError::NoPassage)?;
        let HeadProbe { layer, head, kind, .. } = *first;
        check_finite(probes)?;
        if probes.iter().any(|probe| probe.visibility != Visibility::Causal) {
            return Err(PredictError::NotCausal { layer, head });
        }
        let tokens = first.queries.nrows();
        let rows: Vec<usize> = (held_from(tokens, window)..tokens).collect();
        let attention: Vec<Array2<f64>> =
            probes.iter().map(|probe| probe.attention_of(&rows)).collect();
        let found = Self::of_rows(&attention, kind, window, seed)?;
        Ok(Self { layer, head, rank: first.queries.ncols(), ..found })
    }

    /// Of a head that sees all of `tokens` and attends to all alike: what the numbers of others are beside.
    ///
    /// # Errors
    /// As of a trained head.
    pub fn of_uniform(tokens: usize, window: usize) -> Result<Self, PredictError> {
        let first = held_from(tokens, window).min(tokens);
        let uniform = Array2::from_shape_fn((tokens - first, tokens), |(at, j)| {
            let row = first + at;
            if j <= row { 1.0 / (row + 1) as f64 } else { 0.0 }
        });
        Self::of_rows(&[uniform], HeadKind::Global, window, 0)
    }

    /// Of the held rows of each passage, (rows, T).
    fn of_rows(
        attention: &[Array2<f64>],
        kind: HeadKind,
        window: usize,
        seed: u64,
    ) -> Result<Self, PredictError> {
        let (rows, tokens) = attention.first().ok_or(PredictError::NoPassage)?.dim();
        if rows == 0 {
            return Err(PredictError::NoFarPart { tokens, window });
        }
        let first = tokens - rows;
        let mean =
            |value: &dyn Fn(usize) -> f64| (first..tokens).map(value).sum::<f64>() / rows as f64;
        let seen = |row: usize| kind.columns(row, tokens, Visibility::Causal);
        let far = |row: usize| match seen(row).start {
            0 => far_columns(row, window),
            _ => 0..0,
        };
        let over_passages = |value: &dyn Fn(&Array2<f64>, usize) -> f64| {
            let of_passage = |p: &Array2<f64>| mean(&|row| value(p, row));
            attention.iter().map(of_passage).sum::<f64>() / attention.len() as f64
        };
        let far_mass_of = |p: &Array2<f64>, row: usize| p.slice(s![row - first, far(row)]).sum();
        let is_there = |p: &Array2<f64>| (first..tokens).all(|row| far_mass_of(p, row) > 0.0);
        let mut far_part = None;
        let mut shuffled = None;
        if attention.iter().all(is_there) {
            let kept: Vec<Array2<f64>> = attention
                .iter()
                .map(|p| {
                    let mut kept = Array2::zeros(p.dim());
                    for at in 0..rows {
                        let columns = s![at, far(first + at)];
                        kept.slice_mut(columns).assign(&p.slice(columns));
                    }
                    kept
                })
                .collect();
            far_part = Some(Dispersion::of(&kept)?);
            let mut draws = ChaCha8Rng::seed_from_u64(seed);
            let shuffle = |mut p: Array2<f64>| {
                for at in 0..rows {
                    let mut entries = p.slice_mut(s![at, far(first + at)]);
                    let entries = entries.as_slice_mut().expect("a row lies in one piece");
                    entries.shuffle(&mut draws);
                }
                p
            };
            shuffled = Some(Ranks::of(&kept.into_iter().map(shuffle).collect::<Vec<_>>())?);
        }
        Ok(Self {
            layer: 0,
            head: 0,
            kind,
            tokens,
            rank: 0,
            columns: mean(&|row| seen(row).len() as f64),
            far_columns: mean(&|row| far(row).len() as f64),
            sink_mass: over_passages(&|p, row| p[[row - first, 0]]),
            far_mass: over_passages(&far_mass_of),
            whole: Dispersion::of(attention)?,
            far: far_part,
            shuffled,
        })
    }
}

impl Dispersion {
    fn of(matrices: &[Array2<f64>]) -> Result<Self, TargetError> {
        let (mut effective_tokens, mut tokens_90, mut top) = (0.0, 0.0, [0.0; 3]);
        let mut rows = 0.0;
        for row in matrices.iter().flat_map(|matrix| matrix.rows()) {
            let sum = row.sum();
            let mut entries: Vec<f64> = row.iter().map(|p| p / sum).filter(|&p| p > 0.0).collect();
            entries.sort_unstable_by(|a, b| b.total_cmp(a));
            effective_tokens += (-entries.iter().map(|p| p * p.ln()).sum::<f64>()).exp();
            let mut held = 0.0;
            let within = |p: &f64| {
                held += p;
                held >= 0.9 - ROUNDING
            };
            tokens_90 += entries.iter().position(within).map_or(entries.len(), |at| at + 1) as f64;
            for (top, k) in top.iter_mut().zip(TOP) {
                *top += entries.iter().take(k).sum::<f64>();
            }
            rows += 1.0;
        }
        Ok(Self {
            effective_tokens: effective_tokens / rows,
            tokens_90: tokens_90 / rows,
            top: top.map(|top| top / rows),
            ranks: Ranks::of(matrices)?,
        })
    }
}

impl Ranks {
    fn of(matrices: &[Array2<f64>]) -> Result<Self, TargetError> {
        let mut mean = Self::default();
        for matrix in matrices {
            let energies = energies(matrix)?;
            let count = matrices.len() as f64;
            mean.rank_90 += rank_within(&energies, 0.1) as f64 / count;
            mean.rank_99 += rank_within(&energies, 0.01) as f64 / count;
            mean.stable_rank += energies.iter().sum::<f64>() / energies[0] / count;
        }
        Ok(mean)
    }
}

/// σ² of a matrix that is not 0, the largest first: the eigenvalues of M·Mᵀ, whose error is of the order of float64's ε times
/// σ₁², far beneath the shares that are asked for.
fn energies(matrix: &Array2<f64>) -> Result<Vec<f64>, TargetError> {
    let gram = product(matrix.view(), matrix.t());
    let mut energies = on_one_thread(|| gram.eigvalsh(UPLO::Lower))
        .map_err(|error| TargetError::Decomposition(error.to_string()))?
        .to_vec();
    energies.reverse();
    energies.iter_mut().for_each(|energy| *energy = energy.max(0.0));
    Ok(energies)
}

/// The least r that leaves at most `share` of the sum of `energies`, the largest first, to those past it.
fn rank_within(energies: &[f64], share: f64) -> usize {
    let most = (share + ROUNDING) * energies.iter().sum::<f64>();
    let mut left = 0.0;
    let mut rank = energies.len();
    while rank > 0 && left + energies[rank - 1] <= most {
        rank -= 1;
        left += energies[rank];
    }
    rank
}

#[cfg(test)]
mod tests;
