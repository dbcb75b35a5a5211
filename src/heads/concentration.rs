//! Concentration: the number of tokens and of dimensions on which a trained head's attention lies.
//!
//! Attention P, (T, T), is sparse if each row's mass is on few columns. It is low-rank if all rows together are near a matrix
//! of few dimensions. Neither implies the other: the identity is sparse and of full rank; uniform attention is dense and, apart
//! from the mask, of rank one. Both are measured for whole rows and for their far part, the columns beyond a window.

use std::time::Instant;

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
use crate::record::{record, to_milliseconds};
use crate::targets::{HeadKind, TargetError, Visibility};

/// The numbers k of largest entries whose mass in a row is reported.
const TOP: [usize; 3] = [4, 16, 64];
/// Tolerance of a share for rounding.
const ROUNDING: f64 = 1e-12;

record! {
    /// The number of tokens and of dimensions on which a trained head's attention P lies on a group of passages. Far columns
    /// are those at a relative distance of the model's `window` or more, except the first. Rows from max(n/2, window + n/4) on
    /// are measured. Token counts are means over rows, ranks are means over passages.
    pub struct ConcentrationMeasurement {
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
        /// the head dimension d
        #[range = Counted]
        rank: usize,
        /// the columns to which a row may attend
        columns: f64,
        /// the far columns to which a row may attend
        far_columns: f64,
        /// attention on the first column
        sink_mass: f64,
        /// attention on the far columns
        far_mass: f64,
        /// exp(H) of a row, H its entropy
        effective_tokens: f64,
        /// the smallest k such that the k largest entries of a row hold 0.9
        tokens_90: f64,
        /// attention on the 4 largest entries of a row
        top_4: f64,
        /// attention on the 16 largest entries of a row
        top_16: f64,
        /// attention on the 64 largest entries of a row
        top_64: f64,
        /// the smallest r with ‖P − P_r‖_F² ≤ 0.1 ‖P‖_F², P_r the best approximation of rank r
        rank_90: f64,
        /// the smallest r with ‖P − P_r‖_F² ≤ 0.01 ‖P‖_F²
        rank_99: f64,
        /// stable rank ‖P‖_F²/σ₁²
        stable_rank: f64,
        /// the same for the far columns; empty if a row has no mass there
        far: Option<FarConcentration>,
        /// the time of the head
        #[unit = "s"]
        wall_time_s: f64,
    }
}

record! {
    /// The same measurements of P with all but its far columns set to 0.
    pub struct FarConcentration {
        /// exp(H) of the far part of a row, normalised
        far_effective_tokens: f64,
        /// the smallest k such that the k largest entries hold 0.9 of the far part
        far_tokens_90: f64,
        /// share of the 4 largest entries in the far part
        far_top_4: f64,
        /// share of the 16 largest entries in the far part
        far_top_16: f64,
        /// share of the 64 largest entries in the far part
        far_top_64: f64,
        /// the smallest r with ‖F − F_r‖_F² ≤ 0.1 ‖F‖_F², F the far part
        far_rank_90: f64,
        /// the smallest r with ‖F − F_r‖_F² ≤ 0.01 ‖F‖_F²
        far_rank_99: f64,
        /// stable rank ‖F‖_F²/σ₁²
        far_stable_rank: f64,
        /// far_rank_90 with each row's far entries in random order
        shuffled_rank_90: f64,
        /// far_rank_99 with each row's far entries in random order
        shuffled_rank_99: f64,
        /// far_stable_rank with each row's far entries in random order
        shuffled_stable_rank: f64,
    }
}

/// Concentration of the rows of some matrices, each row divided by its sum, and ranks of the matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Dispersion {
    /// exp(H) of a row, H = −Σ p ln p, mean over rows; it is m for a row that is uniform over m columns.
    pub effective_tokens: f64,
    /// The smallest k such that the k largest entries hold 0.9 of a row, mean over rows.
    pub tokens_90: f64,
    /// The mass of the k largest entries of a row for each k of [`TOP`], mean over rows.
    pub top: [f64; 3],
    /// The ranks of the matrices.
    pub ranks: Ranks,
}

/// Measures of the rank of a matrix M with singular values σ, as means over passages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ranks {
    /// The smallest r with ‖M − M_r‖_F² = Σ_{k>r} σ_k² ≤ 0.1 ‖M‖_F² (Eckart and Young 1936): no matrix of a lower rank is as
    /// near.
    pub rank_90: f64,
    /// The smallest r with ‖M − M_r‖_F² ≤ 0.01 ‖M‖_F².
    pub rank_99: f64,
    /// ‖M‖_F²/σ₁² (Rudelson and Vershynin 2007).
    pub stable_rank: f64,
}

/// The first measured row: max(n/2, W + n/4). So each row has at least half of the passage and a quarter of it far.
pub fn held_from(tokens: usize, window: usize) -> usize {
    (tokens / 2).max(window + tokens / 4)
}

impl ConcentrationMeasurement {
    /// Measures a head from `probes`, one per passage of the group `passage`, all of one length. Relative distances of `window`
    /// tokens or more are far. `seed` is the seed of the shuffled entries.
    ///
    /// # Errors
    /// No probe, a head without a causal mask, logits that are not finite, a window that leaves no row to measure;
    /// `Decomposition` if LAPACK fails.
    pub fn measure(
        probes: &[&HeadProbe],
        passage: usize,
        window: usize,
        seed: u64,
    ) -> Result<Self, PredictError> {
        let began = Instant::now();
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
        Ok(Self {
            layer,
            head,
            passage,
            rank: first.queries.ncols(),
            wall_time_s: to_milliseconds(began.elapsed().as_secs_f64()),
            ..found
        })
    }

    /// Measures uniform causal attention over `tokens`, for comparison.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn of_uniform(tokens: usize, window: usize) -> Result<Self, PredictError> {
        let first = held_from(tokens, window).min(tokens);
        let uniform = Array2::from_shape_fn((tokens - first, tokens), |(at, j)| {
            let row = first + at;
            if j <= row { 1.0 / (row + 1) as f64 } else { 0.0 }
        });
        Self::of_rows(&[uniform], HeadKind::Global, window, 0)
    }

    /// The number of measured rows of a passage, in a model of this window.
    pub fn rows(&self, window: usize) -> usize {
        self.n.saturating_sub(held_from(self.n, window))
    }

    /// Measures attention given as the measured rows of each passage, (rows, T).
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
            let part = Dispersion::of(&kept)?;
            let mut draws = ChaCha8Rng::seed_from_u64(seed);
            let shuffle = |mut p: Array2<f64>| {
                for at in 0..rows {
                    let mut entries = p.slice_mut(s![at, far(first + at)]);
                    let entries = entries.as_slice_mut().expect("a row lies in one piece");
                    entries.shuffle(&mut draws);
                }
                p
            };
            let shuffled = Ranks::of(&kept.into_iter().map(shuffle).collect::<Vec<_>>())?;
            let [far_top_4, far_top_16, far_top_64] = part.top;
            far_part = Some(FarConcentration {
                far_effective_tokens: part.effective_tokens,
                far_tokens_90: part.tokens_90,
                far_top_4,
                far_top_16,
                far_top_64,
                far_rank_90: part.ranks.rank_90,
                far_rank_99: part.ranks.rank_99,
                far_stable_rank: part.ranks.stable_rank,
                shuffled_rank_90: shuffled.rank_90,
                shuffled_rank_99: shuffled.rank_99,
                shuffled_stable_rank: shuffled.stable_rank,
            });
        }
        let Dispersion { effective_tokens, tokens_90, top, ranks } = Dispersion::of(attention)?;
        let [top_4, top_16, top_64] = top;
        Ok(Self {
            layer: 0,
            head: 0,
            kind,
            passage: 0,
            passages: attention.len(),
            n: tokens,
            rank: 0,
            columns: mean(&|row| seen(row).len() as f64),
            far_columns: mean(&|row| far(row).len() as f64),
            sink_mass: over_passages(&|p, row| p[[row - first, 0]]),
            far_mass: over_passages(&far_mass_of),
            effective_tokens,
            tokens_90,
            top_4,
            top_16,
            top_64,
            rank_90: ranks.rank_90,
            rank_99: ranks.rank_99,
            stable_rank: ranks.stable_rank,
            far: far_part,
            wall_time_s: 0.0,
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

/// σ² of a nonzero matrix, the largest first, as the eigenvalues of M·Mᵀ. Their error is of the order of float64's ε times σ₁²,
/// far below the requested shares.
fn energies(matrix: &Array2<f64>) -> Result<Vec<f64>, TargetError> {
    let gram = product(matrix.view(), matrix.t());
    let mut energies = on_one_thread(|| gram.eigvalsh(UPLO::Lower))
        .map_err(|error| TargetError::Decomposition(error.to_string()))?
        .to_vec();
    energies.reverse();
    energies.iter_mut().for_each(|energy| *energy = energy.max(0.0));
    Ok(energies)
}

/// The smallest r such that the `energies` after the r-th, in descending order, are at most `share` of their sum.
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
