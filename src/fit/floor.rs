//! The full-rank floor: what capped logits cost, or how large they must be, with **no** rank limit.
//!
//! One row and one head: minimise KL(a ‖ p) over p = softmax(z), |zⱼ| ≤ L. Since a shift of z
//! changes nothing, that is pⱼ/pₖ ≤ R = e^{2L} for all visible j, k. The problem is convex, and its
//! conditions of Karush, Kuhn and Tucker give
//!
//! > pⱼ = min(max(aⱼ, u), u·R), with the one u for which Σⱼ pⱼ = 1:
//!
//! entries strictly between the bounds keep pⱼ = c·aⱼ with c = 1 (stationarity in u and Σp = 1
//! together leave no other c). The sum is piecewise linear and increasing in u, so u is exact.
//!
//! A layout of several heads: P = Σₕ yₕ with yₕ = πₕpₕ, each within the cone yₕⱼ ≤ R·yₕₖ on what its
//! head sees. KL is jointly convex in y, expectation–maximisation climbs to its optimum (its M-step
//! is the closed form above, head by head), and the Frank–Wolfe gap ⟨∇f, y − s⟩ at any y bounds the
//! distance to the optimum. What is reported is the certified lower bound f − gap.

use std::ops::Range;

use super::problem::Problem;
use crate::target::HeadKind;

/// Logits beyond this are not told apart: e^{2L} must stay finite in float64.
const LARGEST_LOGIT: f64 = 340.0;
/// Expectation–maximisation stops at this gap (nats) or after this many rounds.
const GAP: f64 = 1e-6;
const ROUNDS: usize = 400;
/// Rounds between two looks at the gap.
const REPORT_EVERY: usize = 5;
/// Halvings of the bracket of L⁰(ε): below float64 resolution of any L in use.
const HALVINGS: usize = 60;

/// The floors E⁰(L) and L⁰(ε) of one problem.
#[derive(Debug)]
pub struct Floor<'p> {
    problem: &'p Problem,
    /// The distinct kinds of heads: two that see the same are one, since their cones add up to it.
    kinds: Vec<HeadKind>,
    covered: bool,
}

impl<'p> Floor<'p> {
    /// The floor of `problem`, at any rank.
    pub fn new(problem: &'p Problem) -> Self {
        let mut kinds = problem.layout().heads().to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        if problem.target().visibility() == crate::target::Visibility::Causal {
            // A window as long as the sequence hides nothing.
            kinds.iter_mut().for_each(|kind| {
                if matches!(kind, HeadKind::Local { window } if *window >= problem.n()) {
                    *kind = HeadKind::Global;
                }
            });
            kinds.sort_unstable();
            kinds.dedup();
        }
        Self { problem, kinds, covered: problem.covers_target() }
    }

    /// E⁰(L): no factors of any rank reach less kl_nats with max_abs_logit ≤ `max_logit`.
    /// Infinite where the heads do not see all of the target.
    pub fn kl_nats(&self, max_logit: f64) -> f64 {
        if !self.covered {
            return f64::INFINITY;
        }
        match self.kinds.as_slice() {
            [kind] => self.one_head(*kind, ratio(max_logit)),
            _ => Mixture::new(self.problem, &self.kinds, ratio(max_logit)).lower_bound(),
        }
    }

    /// L⁰(ε): the least max_abs_logit with which kl_nats ≤ `kl_nats` is possible at any rank; none
    /// where the heads do not see all of the target or no finite logit reaches it.
    pub fn max_abs_logit(&self, kl_nats: f64) -> Option<f64> {
        if !self.covered || kl_nats.is_nan() || kl_nats <= 0.0 {
            return None;
        }
        if !self.exceeds(0.0, kl_nats) {
            return Some(0.0);
        }
        let (mut low, mut high) = (0.0, 1.0);
        while self.exceeds(high, kl_nats) {
            low = high;
            high *= 2.0;
            if high > LARGEST_LOGIT {
                return None;
            }
        }
        let halvings = if self.kinds.len() == 1 { HALVINGS } else { HALVINGS / 3 };
        for _ in 0..halvings {
            let middle = 0.5 * (low + high);
            if self.kl_nats(middle) > kl_nats { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// Whether E⁰(`max_logit`) > `kl_nats`, for certain: a layout's floor is followed only until its
    /// bounds decide.
    fn exceeds(&self, max_logit: f64, kl_nats: f64) -> bool {
        match self.kinds.as_slice() {
            [_] => self.kl_nats(max_logit) > kl_nats,
            _ => Mixture::new(self.problem, &self.kinds, ratio(max_logit)).exceeds(kl_nats),
        }
    }

    fn one_head(&self, kind: HeadKind, ratio: f64) -> f64 {
        let n = self.problem.n();
        let mut sorted = Vec::new();
        let total: f64 = (0..n)
            .map(|row| {
                let (_, a) = self.problem.target().row(row);
                let lowest =
                    clamp_level(a, self.problem.columns(kind, row).len(), ratio, &mut sorted);
                a.iter().map(|a| a * (a / a.max(lowest).min(lowest * ratio)).ln()).sum::<f64>()
            })
            .sum();
        // Rounding can leave −1e-17 where the target is met exactly.
        (total / n as f64).max(0.0)
    }
}

/// R = e^{2L}: how far apart two probabilities of a row may be.
fn ratio(max_logit: f64) -> f64 {
    (2.0 * max_logit.clamp(0.0, LARGEST_LOGIT)).exp()
}

/// The u for which Σⱼ min(max(aⱼ, u), u·R) = 1 over `visible` entries, of which `a` (Σ = 1) are the
/// ones above 0. Where every entry already lies within a ratio R of every other, any u that
/// clamps nothing: the least of them.
fn clamp_level(a: &[f64], visible: usize, ratio: f64, sorted: &mut Vec<f64>) -> f64 {
    sorted.clear();
    sorted.extend_from_slice(a);
    sorted.sort_unstable_by(f64::total_cmp);
    let zeros = (visible - sorted.len()) as f64;
    let greatest = sorted[sorted.len() - 1];
    if zeros == 0.0 && sorted[0] * ratio >= greatest {
        return sorted[0];
    }
    // Walk u upwards over the places where an entry changes side: (level at which entries ≤ u are
    // raised) and (level / R at which entries ≥ u·R are lowered). `raised` and `lowered` count them
    // with their sums; the root of raised·u − Σ raised = Σ lowered − lowered·u·R lies between two.
    let count = sorted.len();
    let (mut raised, mut raised_sum) = (0usize, 0.0);
    let (mut lowered, mut lowered_sum) = (count, sorted.iter().sum::<f64>());
    loop {
        let weight = raised as f64 + zeros + lowered as f64 * ratio;
        let u = (raised_sum + lowered_sum) / weight;
        let next_raise = sorted.get(raised).copied().unwrap_or(f64::INFINITY);
        let next_release = sorted.get(count - lowered).map_or(f64::INFINITY, |a| a / ratio);
        if u <= next_raise && u <= next_release {
            return u;
        }
        if next_raise <= next_release {
            raised += 1;
            raised_sum += next_raise;
        } else {
            lowered_sum -= sorted[count - lowered];
            lowered -= 1;
        }
    }
}

/// One row of one head: its probabilities at the target's entries, and the level of all others.
struct HeadRow {
    /// The target's entries that the head sees, as places in the target's row.
    places: Range<usize>,
    visible: usize,
    p: Vec<f64>,
}

/// Capped full-rank heads of several kinds, fitted together.
struct Mixture<'p> {
    problem: &'p Problem,
    ratio: f64,
    weights: Vec<f64>,
    /// By kind, then by row.
    heads: Vec<Vec<HeadRow>>,
}

impl<'p> Mixture<'p> {
    fn new(problem: &'p Problem, kinds: &[HeadKind], ratio: f64) -> Self {
        let heads = kinds
            .iter()
            .map(|&kind| {
                (0..problem.n())
                    .map(|row| {
                        let seen = problem.columns(kind, row);
                        let (columns, _) = problem.target().row(row);
                        let first = columns.partition_point(|&j| (j as usize) < seen.start);
                        let last = columns.partition_point(|&j| (j as usize) < seen.end);
                        let p = vec![1.0 / seen.len() as f64; last - first];
                        HeadRow { places: first..last, visible: seen.len(), p }
                    })
                    .collect()
            })
            .collect();
        Self { problem, ratio, weights: vec![1.0 / kinds.len() as f64; kinds.len()], heads }
    }

    /// f − gap after the last round: no mixture of these heads reaches less.
    fn lower_bound(mut self) -> f64 {
        let mut best = 0.0f64;
        self.climb(|value, bound| {
            best = best.max(bound);
            value - bound <= GAP
        });
        best
    }

    /// Whether the lower bound passes `kl_nats` before the value falls under it.
    fn exceeds(mut self, kl_nats: f64) -> bool {
        let mut passed = false;
        self.climb(|value, bound| {
            passed = bound > kl_nats;
            passed || value <= kl_nats
        });
        passed
    }

    /// Rounds of expectation–maximisation until `enough`, which sees f and f − gap now and then.
    fn climb(&mut self, mut enough: impl FnMut(f64, f64) -> bool) {
        for round in 1..=ROUNDS {
            let report = round % REPORT_EVERY == 0;
            let (value, gap) = self.round(report);
            if report && enough(value, value - gap) {
                return;
            }
        }
    }

    /// One round of expectation–maximisation; returns kl_nats before it and, if asked, the gap.
    fn round(&mut self, with_gap: bool) -> (f64, f64) {
        let n = self.problem.n();
        let mut value = 0.0;
        let mut usage = vec![0.0; self.heads.len()];
        let mut slack = vec![0.0; self.heads.len()];
        let (mut mixed, mut shares, mut sorted) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..n {
            let (_, a) = self.problem.target().row(row);
            self.mix(row, a.len(), &mut mixed);
            value += a.iter().zip(&mixed).map(|(a, p)| a * (a / p).ln()).sum::<f64>();
            for (head, rows) in self.heads.iter_mut().enumerate() {
                let head_row = &mut rows[row];
                if with_gap {
                    let slopes = head_row.places.clone().map(|place| a[place] / mixed[place]);
                    slack[head] += best_response(slopes, head_row.visible, self.ratio, &mut sorted);
                }
                shares.clear();
                shares.extend(
                    head_row
                        .places
                        .clone()
                        .zip(&head_row.p)
                        .map(|(place, p)| a[place] * self.weights[head] * p / mixed[place]),
                );
                usage[head] += maximise(head_row, &mut shares, self.ratio, &mut sorted);
            }
        }
        self.weights = usage.iter().map(|u| u / n as f64).collect();
        let gap = slack.iter().map(|s| s / n as f64).fold(f64::NEG_INFINITY, f64::max) - 1.0;
        (value / n as f64, gap)
    }

    /// P at the target's entries of one row.
    fn mix(&self, row: usize, entries: usize, mixed: &mut Vec<f64>) {
        mixed.clear();
        mixed.resize(entries, 0.0);
        for (rows, weight) in self.heads.iter().zip(&self.weights) {
            for (place, p) in rows[row].places.clone().zip(&rows[row].p) {
                mixed[place] += weight * p;
            }
        }
    }
}

/// The M-step of one row of one head: the closed form at its shares of the target, normalised.
/// Returns their sum.
fn maximise(head: &mut HeadRow, shares: &mut Vec<f64>, ratio: f64, sorted: &mut Vec<f64>) -> f64 {
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    shares.iter_mut().for_each(|share| *share /= sum);
    let level = clamp_level(shares, head.visible, ratio, sorted);
    for (p, share) in head.p.iter_mut().zip(shares) {
        *p = share.max(level).min(level * ratio);
    }
    sum
}

/// max Σⱼ cⱼsⱼ over distributions s on `visible` entries with sⱼ/sₖ ≤ R: the greatest t of the
/// slopes c take R times the weight of the rest, for the best t.
fn best_response(
    slopes: impl Iterator<Item = f64>,
    visible: usize,
    ratio: f64,
    sorted: &mut Vec<f64>,
) -> f64 {
    sorted.clear();
    sorted.extend(slopes);
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
