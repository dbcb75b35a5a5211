//! The full-rank floor: the error within a logit bound, and the logits for an error, with **no** limit on the rank.
//!
//! One row and one head: minimise KL(a ‖ p) over p = softmax(z), |zⱼ| ≤ L. Since a shift of z changes nothing, this is pⱼ/pₖ ≤
//! R = e^{2L} for all allowed j, k. The problem is convex, and its Karush–Kuhn–Tucker conditions give
//!
//! > pⱼ = min(max(aⱼ, u), u·R), with the one u for which Σⱼ pⱼ = 1:
//!
//! entries strictly between the bounds keep pⱼ = c·aⱼ with c = 1 (stationarity in u and Σp = 1 together allow no other c). The
//! sum is piecewise linear and increasing in u, so u is computed exactly.
//! [`floor_mixture`](super::floor_mixture) has layouts of several heads.

use ndarray::Array2;

use super::clamped_row::{LARGEST_LOGIT, SummedRow, ascending, clamp_level, ratio};
use super::floor_mixture::Mixture;
use super::problem::Problem;
use crate::targets::HeadKind;

/// Bound on the rounding, in nats, of prefix sums compared with a sum over single entries.
const CERTAIN: f64 = 1e-12;
/// The same for a sum over single entries.
const EXACT: f64 = 1e-16;
/// The most secant steps before L⁰(ε) is bisected.
const SECANTS: usize = 16;
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
        // By how much E⁰ exceeds the error, within CERTAIN, for one kind of heads.
        let excess = |max_logit: f64| {
            let ratio = ratio(max_logit);
            let total: f64 = summed.iter().map(|row| row.kl_nats(ratio)).sum();
            total / self.problem.rows() as f64 - kl_nats
        };
        let exact = |max_logit: f64| self.one_head(&ascending, ratio(max_logit)) - kl_nats;
        let mut exceeds = |max_logit: f64| match &mut mixture {
            None => match excess(max_logit) {
                nearly if nearly.abs() > CERTAIN => nearly > 0.0,
                _ => exact(max_logit) > 0.0,
            },
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
        let halvings = match self.kinds.len() {
            1 => {
                (low, high) = narrowed((low, high), CERTAIN, excess);
                (low, high) = narrowed((low, high), EXACT, exact);
                HALVINGS
            }
            _ => HALVINGS / 3,
        };
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

/// Narrows an interval around the root of a decreasing function that is known within `certain`, by the Illinois method (Dowell
/// and Jarratt 1971, doi:10.1007/BF01934364), and then by points on both sides of the root.
fn narrowed(
    (mut low, mut high): (f64, f64),
    certain: f64,
    excess: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let [mut above, mut below] = [excess(low), excess(high)];
    // An end that stays twice counts with half of its value, so that it moves too.
    let (mut shares, mut last) = ([1.0, 1.0], 0.0);
    let mut root = f64::NAN;
    for _ in 0..SECANTS {
        let (at_low, at_high) = (shares[0] * above, shares[1] * below);
        root = (low * at_high - high * at_low) / (at_high - at_low);
        if !(low < root && root < high) {
            break;
        }
        let found = excess(root);
        if found.abs() <= certain {
            break;
        }
        let share = if found.signum() == last { 0.5 } else { 1.0 };
        last = found.signum();
        if found > 0.0 {
            (low, above, shares) = (root, found, [1.0, share * shares[1]]);
        } else {
            (high, below, shares) = (root, found, [share * shares[0], 1.0]);
        }
    }
    let slope = (above - below) / (high - low);
    for side in [-1.0, 1.0] {
        let near = root + side * 8.0 * certain / slope;
        if low < near && near < high {
            match excess(near) {
                found if found > certain => low = near,
                found if found < -certain => high = near,
                _ => {}
            }
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_narrows_around_its_root() {
        for power in [0.3, 1.0, 7.0] {
            let root = 100f64.ln() / power;
            let around = (0.6 * root, 1.3 * root);
            let (low, high) = narrowed(around, 1e-12, |x| (-power * x).exp() - 0.01);
            assert!(low <= root && root <= high && high - low < 1e-6, "{power}: {low} to {high}");
        }
        assert_eq!(narrowed((0.0, 1.0), 1e-12, |_| 0.0), (0.0, 1.0));
        assert_eq!(narrowed((0.0, 1.0), 1e-12, |_| f64::NAN), (0.0, 1.0));
    }
}
