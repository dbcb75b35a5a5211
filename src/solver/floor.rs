//! The full-rank floor: the error within a logit bound, and the logits for an error, with **no** limit on the rank.
//!
//! One row and one head: minimise KL(a ‖ p) over p = softmax(z), |zⱼ| ≤ L. Since a shift of z changes nothing, this is pⱼ/pₖ ≤
//! R = e^{2L} for all allowed j, k. The problem is convex, and its Karush–Kuhn–Tucker conditions give
//!
//! > pⱼ = min(max(aⱼ, u), u·R), with the one u for which Σⱼ pⱼ = 1:
//!
//! entries strictly between the bounds keep pⱼ = c·aⱼ with c = 1 (stationarity in u and Σp = 1 together allow no other c). The
//! sum is piecewise linear and increasing in u, so u is computed exactly.
//!
//! A layout of several heads: P = Σₕ yₕ with yₕ = πₕpₕ, each within the cone yₕⱼ ≤ R·yₕₖ over the allowed columns of its head.
//! KL is jointly convex in y, and expectation–maximisation converges to its optimum (its M-step is the closed form above, head
//! by head). The Frank–Wolfe gap ⟨∇f, y − s⟩ at any y bounds the distance to the optimum. The result is the certified lower
//! bound f − gap.

use std::ops::Range;

use ndarray::Array2;
use rayon::prelude::*;

use super::clamped_row::{SummedRow, ascending, clamp_level};
use super::problem::Problem;
use crate::targets::HeadKind;

/// Largest logit bound that is distinguished: e^{2L} must stay finite in float64.
const LARGEST_LOGIT: f64 = 340.0;
/// Expectation–maximisation stops at this gap, in nats, or after `ROUNDS` rounds.
const GAP: f64 = 1e-6;
const ROUNDS: usize = 400;
/// Rounds between two checks of the gap.
const REPORT_EVERY: usize = 5;
/// Number of rows per thread task.
const CHUNK_ROWS: usize = 256;
/// Fixed-point steps for a row's level before it is computed by sorting.
const GUESSES: usize = 12;
/// Bound on the rounding, in nats, of prefix sums compared with a sum over single entries.
const CERTAIN: f64 = 1e-12;
/// Bisection steps for L⁰(ε): below the float64 resolution of any L in use.
const HALVINGS: usize = 60;

/// The floors E⁰(L) and L⁰(ε) of one problem.
///
/// Example: of two tokens the second attends only to the first. The first row has no error and the second has ln(1 + e^(−2L)):
///
/// ```
/// use rank_study::solver::{Floor, Problem};
/// use rank_study::targets::{Family, Layout, Visibility};
///
/// let target = Family::PreviousToken { k: 1 }.build(2, 0, Visibility::Causal)?;
/// let problem = Problem::new(target, Layout::global(), 1)?;
/// let floor = Floor::new(&problem);
/// let kl_nats = 0.5 * f64::ln_1p(f64::exp(-2.0 * 3.0));
/// assert!((floor.kl_nats(3.0) - kl_nats).abs() < 1e-12);
/// assert!((floor.max_abs_logit(kl_nats).unwrap() - 3.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Floor<'p> {
    problem: &'p Problem,
    /// The distinct kinds of heads: two heads of one kind count as one, since their cones add up to the same cone.
    kinds: Vec<HeadKind>,
    covered: bool,
}

impl<'p> Floor<'p> {
    /// The floor of `problem`, at any rank.
    pub fn new(problem: &'p Problem) -> Self {
        let mut kinds = problem.layout().heads().to_vec();
        if problem.target().visibility() == crate::targets::Visibility::Causal {
            // A window as long as the sequence excludes nothing.
            kinds.iter_mut().for_each(|kind| {
                if matches!(kind, HeadKind::Local { window } if *window >= problem.n()) {
                    *kind = HeadKind::Global;
                }
            });
        }
        kinds.sort_unstable();
        kinds.dedup();
        Self { problem, kinds, covered: problem.covers_target() }
    }

    /// E⁰(L): no factors of any rank reach a smaller kl_nats with max_abs_logit ≤ `max_logit`. Infinite if the heads cannot
    /// attend to all of the target.
    pub fn kl_nats(&self, max_logit: f64) -> f64 {
        if !self.covered {
            return f64::INFINITY;
        }
        match self.mixture() {
            None => self.one_head(&self.ascending(), ratio(max_logit)),
            Some(mut mixture) => mixture.lower_bound(max_logit),
        }
    }

    /// L⁰(ε): the smallest max_abs_logit with which kl_nats ≤ `kl_nats` is possible at any rank. Returns `None` if the heads
    /// cannot attend to all of the target or no finite logits reach it.
    pub fn max_abs_logit(&self, kl_nats: f64) -> Option<f64> {
        if !self.covered || kl_nats.is_nan() || kl_nats <= 0.0 {
            return None;
        }
        self.problem.floor(kl_nats, || self.sought(kl_nats))
    }

    fn sought(&self, kl_nats: f64) -> Option<f64> {
        let mut mixture = self.mixture();
        // Sorted once for all values of L.
        let ascending = if mixture.is_none() { self.ascending() } else { Vec::new() };
        let summed: Vec<SummedRow<'_>> = (0..ascending.len())
            .map(|row| {
                let visible = self.problem.target().seen(self.kinds[0], row).len();
                SummedRow::of(&ascending[row], visible)
            })
            .collect();
        let mut exceeds = |max_logit: f64| match &mut mixture {
            None => {
                let ratio = ratio(max_logit);
                let nearly = summed.iter().map(|row| row.kl_nats(ratio)).sum::<f64>()
                    / self.problem.rows() as f64;
                match (nearly - kl_nats).abs() > CERTAIN {
                    true => nearly > kl_nats,
                    false => self.one_head(&ascending, ratio) > kl_nats,
                }
            }
            Some(mixture) => mixture.exceeds(max_logit, kl_nats),
        };
        if !exceeds(0.0) {
            return Some(0.0);
        }
        let (mut low, mut high) = (0.0, 1.0);
        while exceeds(high) {
            low = high;
            high *= 2.0;
            if high > LARGEST_LOGIT {
                return None;
            }
        }
        let halvings = if self.kinds.len() == 1 { HALVINGS } else { HALVINGS / 3 };
        for _ in 0..halvings {
            let middle = 0.5 * (low + high);
            if middle == low || middle == high {
                break;
            }
            if exceeds(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// The logits of one head that reach E⁰(`max_logit`), n × n, each row shifted so that its smallest is 0: log(pⱼ/m) with p
    /// the row's optimum and m its smallest probability. Pairs that the mask forbids are 0 too. Returns `None` for a layout of
    /// several kinds of heads, or one that cannot attend to all of the target.
    pub fn logits(&self, max_logit: f64) -> Option<Array2<f64>> {
        let &[kind] = self.kinds.as_slice() else { return None };
        if !self.covered {
            return None;
        }
        let (n, ratio) = (self.problem.n(), ratio(max_logit));
        let mut logits = Array2::zeros((n, n));
        for row in 0..self.problem.rows() {
            let (columns, a) = self.problem.target().row(row);
            let visible = self.problem.target().seen(kind, row).len();
            let lowest = clamp_level(&ascending(a), visible, ratio);
            for (&column, &a) in columns.iter().zip(a) {
                logits[[self.problem.target().position(row), column as usize]] =
                    (a.max(lowest).min(lowest * ratio) / lowest).ln();
            }
        }
        Some(logits)
    }

    /// The joint fit of the heads, if there is more than one kind.
    fn mixture(&self) -> Option<Mixture<'p>> {
        (self.kinds.len() > 1).then(|| Mixture::new(self.problem, &self.kinds))
    }

    /// The entries of each row of the target in ascending order.
    fn ascending(&self) -> Vec<Vec<f64>> {
        (0..self.problem.rows()).map(|row| ascending(self.problem.target().row(row).1)).collect()
    }

    /// E⁰ for heads of one kind; `sorted` are the target's rows in ascending order.
    fn one_head(&self, sorted: &[Vec<f64>], ratio: f64) -> f64 {
        let kind = self.kinds[0];
        let n = self.problem.rows();
        let total: f64 = (0..n)
            .map(|row| {
                let (_, a) = self.problem.target().row(row);
                let visible = self.problem.target().seen(kind, row).len();
                let lowest = clamp_level(&sorted[row], visible, ratio);
                let highest = lowest * ratio;
                // Entries that are not clamped add ln 1 = 0.
                let clamped = a.iter().filter(|&&a| a < lowest || a > highest);
                clamped.map(|a| a * (a / a.max(lowest).min(highest)).ln()).sum::<f64>()
            })
            .sum();
        // Rounding can give −1e-17 if the target is met exactly.
        (total / n as f64).max(0.0)
    }
}

/// R = e^{2L}: the largest ratio of two probabilities of a row.
fn ratio(max_logit: f64) -> f64 {
    (2.0 * max_logit.clamp(0.0, LARGEST_LOGIT)).exp()
}

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
struct Mixture<'p> {
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
    fn new(problem: &'p Problem, kinds: &[HeadKind]) -> Self {
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
    fn lower_bound(&mut self, max_logit: f64) -> f64 {
        let mut best = 0.0f64;
        self.climb(max_logit, |report| {
            best = best.max(report.bound);
            report.value - report.bound <= GAP
        });
        best
    }

    /// Whether E⁰(`max_logit`) > `kl_nats` is proven. Rounds continue from the last call and end as soon as the bounds decide.
    fn exceeds(&mut self, max_logit: f64, kl_nats: f64) -> bool {
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
