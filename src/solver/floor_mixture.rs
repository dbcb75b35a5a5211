//! The full-rank floor of a layout of several heads: P = Σₕ yₕ with yₕ = πₕpₕ, each within the cone yₕⱼ ≤ R·yₕₖ over the allowed
//! columns of its head.
//!
//! KL is jointly convex in y, and expectation–maximisation converges to its optimum (its M-step is the closed form of one head
//! in [`floor`](super::floor), head by head). The Frank–Wolfe gap ⟨∇f, y − s⟩ at any y bounds the distance to the optimum. The
//! result is the certified lower bound f − gap.

use std::ops::Range;

use rayon::prelude::*;

use super::clamped_row::{ascending, clamp_level, ratio};
use super::problem::Problem;
use crate::targets::HeadKind;

/// Expectation–maximisation stops at this gap, in nats, or after `ROUNDS` rounds.
const GAP: f64 = 1e-6;
const ROUNDS: usize = 400;
/// Rounds between two checks of the gap.
const REPORT_EVERY: usize = 5;
/// Number of rows per thread task.
const CHUNK_ROWS: usize = 256;
/// Fixed-point steps for a row's level before it is computed by sorting.
const GUESSES: usize = 12;

/// As [`clamp_level`], from a guess of u. If the guess clamps entries whose sum equals the sum that it assigns to them, it is
/// exact; otherwise that sum gives the next guess.
fn clamp_level_near(a: &[f64], visible: usize, ratio: f64, guess: f64) -> f64 {
    let zeros = (visible - a.len()) as f64;
    let mut u = guess;
    for _ in 0..GUESSES {
        let (mut raised, mut lowered, mut sum) = (zeros, 0.0, 0.0);
        let high = u * ratio;
        for &a in a {
            let (low, above) = (a < u, a > high);
            raised += f64::from(low);
            lowered += f64::from(above);
            sum += if low || above { a } else { 0.0 };
        }
        let weight = raised + lowered * ratio;
        let next = if weight > 0.0 { sum / weight } else { u };
        if next == u {
            return u;
        }
        u = next;
    }
    clamp_level(&ascending(a), visible, ratio)
}

/// One row of one head: its probabilities at the target's entries, and the common probability of all others.
#[derive(Debug)]
struct HeadRow {
    /// The target's entries that the head may attend to, as places in the target's row.
    places: Range<usize>,
    visible: usize,
    p: Vec<f64>,
    level: f64,
}

/// Full-rank heads of several kinds within a logit bound, fitted together.
#[derive(Debug)]
pub(super) struct Mixture<'p> {
    problem: &'p Problem,
    weights: Vec<f64>,
    /// Per row, one entry per kind.
    rows: Vec<Vec<HeadRow>>,
}

/// Sums over a range of rows in one round; value and slack are computed only if the gap is requested.
#[derive(Clone)]
struct Sums {
    value: f64,
    usage: Vec<f64>,
    slack: Vec<f64>,
}

/// kl_nats before a round, and the lower bound f − gap for any mixture of these heads.
struct Report {
    value: f64,
    bound: f64,
}

impl<'p> Mixture<'p> {
    pub fn new(problem: &'p Problem, kinds: &[HeadKind]) -> Self {
        let head_row = |kind, row: usize| {
            let seen = problem.target().seen(kind, row);
            let (columns, _) = problem.target().row(row);
            let first = columns.partition_point(|&j| (j as usize) < seen.start);
            let last = columns.partition_point(|&j| (j as usize) < seen.end);
            let level = 1.0 / seen.len() as f64;
            HeadRow {
                places: first..last,
                visible: seen.len(),
                p: vec![level; last - first],
                level,
            }
        };
        let rows = (0..problem.rows())
            .map(|row| kinds.iter().map(|&kind| head_row(kind, row)).collect())
            .collect();
        Self { problem, weights: vec![1.0 / kinds.len() as f64; kinds.len()], rows }
    }

    /// The largest f − gap of the rounds: no mixture of these heads reaches a smaller error.
    pub fn lower_bound(&mut self, max_logit: f64) -> f64 {
        let mut best = 0.0f64;
        self.climb(max_logit, |report| {
            best = best.max(report.bound);
            report.value - report.bound <= GAP
        });
        best
    }

    /// Whether E⁰(`max_logit`) > `kl_nats` is proven. Rounds continue from the last call and end as soon as the bounds decide.
    pub fn exceeds(&mut self, max_logit: f64, kl_nats: f64) -> bool {
        let mut passed = false;
        self.climb(max_logit, |report| {
            passed = report.bound > kl_nats;
            passed || report.value <= kl_nats
        });
        passed
    }

    /// Runs rounds of expectation–maximisation until `enough` returns true; it is called every few rounds.
    fn climb(&mut self, max_logit: f64, mut enough: impl FnMut(Report) -> bool) {
        for round in 1..=ROUNDS {
            let with_report = round % REPORT_EVERY == 0;
            let report = self.round(ratio(max_logit), with_report);
            if with_report && enough(report) {
                return;
            }
        }
    }

    /// One round of expectation–maximisation.
    fn round(&mut self, ratio: f64, with_report: bool) -> Report {
        let n = self.problem.rows() as f64;
        let (problem, weights) = (self.problem, &self.weights);
        let work = |(chunk, rows): (usize, &mut [Vec<HeadRow>])| {
            round_of_rows(problem, weights, chunk * CHUNK_ROWS, rows, ratio, with_report)
        };
        let chunks: Vec<Sums> = match self.rows.len() <= CHUNK_ROWS {
            true => vec![work((0, &mut self.rows))],
            false => self.rows.par_chunks_mut(CHUNK_ROWS).enumerate().map(work).collect(),
        };
        let add = |to: &mut Vec<f64>, from: Vec<f64>| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from)
        };
        let mut total = Sums::new(weights.len());
        for chunk in chunks {
            total.value += chunk.value;
            add(&mut total.usage, chunk.usage);
            add(&mut total.slack, chunk.slack);
        }
        self.weights = total.usage.iter().map(|u| u / n).collect();
        let gap = total.slack.iter().map(|s| s / n).fold(f64::NEG_INFINITY, f64::max) - 1.0;
        Report { value: total.value / n, bound: total.value / n - gap }
    }
}

impl Sums {
    fn new(kinds: usize) -> Self {
        Self { value: 0.0, usage: vec![0.0; kinds], slack: vec![0.0; kinds] }
    }
}

/// The share of a round for the rows from `first` on.
fn round_of_rows(
    problem: &Problem,
    weights: &[f64],
    first: usize,
    rows: &mut [Vec<HeadRow>],
    ratio: f64,
    with_report: bool,
) -> Sums {
    let mut sums = Sums::new(weights.len());
    let (mut mixed, mut shares, mut sorted) = (Vec::new(), Vec::new(), Vec::new());
    for (row, heads) in (first..).zip(rows) {
        let (_, a) = problem.target().row(row);
        mix(heads, weights, a.len(), &mut mixed);
        if with_report {
            sums.value += a.iter().zip(&mixed).map(|(a, p)| a * (a / p).ln()).sum::<f64>();
        }
        // From here on `mixed` holds the slopes a/P.
        mixed.iter_mut().zip(a).for_each(|(p, a)| *p = a / *p);
        for (head, row) in heads.iter_mut().enumerate() {
            let slopes = &mixed[row.places.clone()];
            if with_report {
                sums.slack[head] += best_response(slopes, row.visible, ratio, &mut sorted);
            }
            shares.clear();
            shares.extend(slopes.iter().zip(&row.p).map(|(slope, p)| slope * weights[head] * p));
            sums.usage[head] += maximise(row, &mut shares, ratio);
        }
    }
    sums
}

/// P at the target's entries of one row.
fn mix(heads: &[HeadRow], weights: &[f64], entries: usize, mixed: &mut Vec<f64>) {
    mixed.clear();
    mixed.resize(entries, 0.0);
    for (row, weight) in heads.iter().zip(weights) {
        for (mixed, p) in mixed[row.places.clone()].iter_mut().zip(&row.p) {
            *mixed += weight * p;
        }
    }
}

/// The M-step of one row of one head: the closed form for its shares of the target, normalised. Returns the sum of the shares.
fn maximise(head: &mut HeadRow, shares: &mut [f64], ratio: f64) -> f64 {
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    shares.iter_mut().for_each(|share| *share /= sum);
    head.level = clamp_level_near(shares, head.visible, ratio, head.level);
    for (p, share) in head.p.iter_mut().zip(shares) {
        *p = share.max(head.level).min(head.level * ratio);
    }
    sum
}

/// max Σⱼ cⱼsⱼ over distributions s on `visible` entries with sⱼ/sₖ ≤ R: the t largest slopes c get R times the weight of the
/// rest, for the best t.
fn best_response(slopes: &[f64], visible: usize, ratio: f64, sorted: &mut Vec<f64>) -> f64 {
    sorted.clear();
    sorted.extend_from_slice(slopes);
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().sum();
    let mut top = 0.0;
    let mut best = total / visible as f64;
    for (t, c) in sorted.iter().enumerate() {
        top += c;
        let weight = (t + 1) as f64 * ratio + (visible - t - 1) as f64;
        best = best.max((ratio * top + total - top) / weight);
    }
    best
}
