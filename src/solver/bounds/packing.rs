//! Lower bound by packing: keys that rows distinguish by a margin need space, and rank d has little.
//!
//! **Statement.** Let m rows have distinct greatest columns c(i), and let one of the two rows of each pair i ≠ j distinguish
//! them: zᵢ,c(i) − zᵢ,c(j) ≥ Δ > 0, or the same with i and j exchanged, on allowed pairs. Then at rank d
//!
//! > norm_product ≥ Δ(m^{1/d} − 1)/2,
//!
//! and if all of these rows may attend to all of these columns, max_abs_logit has the same lower bound.
//!
//! **Proof.** In a norm N on keys with |zᵢⱼ| ≤ N(kⱼ), the m keys are Δ apart and lie in the ball of radius R = max N(kⱼ). So m
//! balls of radius Δ/2 fit without overlap into one of radius R + Δ/2. The volume of a ball is proportional to the d-th power
//! of its radius: m(Δ/2)^d ≤ (R + Δ/2)^d. With N(k) = maxᵢ‖qᵢ‖·‖k‖/√d, R is norm_product. With N(k) = maxᵢ |⟨qᵢ, k⟩|/√d over
//! the m rows, which depends neither on norms nor on the choice of Q·M and K·M⁻ᵀ, R is max_abs_logit, *if* every one of those
//! pairs is allowed. (If N is 0 on a subspace, take the quotient: the exponent 1/d only grows.) ∎
//!
//! With a causal mask the second form does not hold: zᵢⱼ = c^{j−i} has rank 1, lies in (0, 1] for j ≤ i and separates the
//! diagonal from all earlier columns by 1 − 1/c at any n. Its norms grow as c^n.
//!
//! **The margin.** kl_nats ≤ ε leaves at most nε/κ rows with KLᵢ > κ. In any other row, with a = α at c(i) and at most β
//! elsewhere, s = α + β, let Δ be the log-ratio of the two probabilities. The smallest KL of all p with that log-ratio is
//! s·kl(α/s ‖ 1/(1 + e^{−Δ})) with the binary divergence kl. It decreases as Δ grows to log(α/β), and increases as β decreases.
//! So the row has at least the Δ at which this equals κ; for β = 0, Δ = −log(e^{κ/α} − 1).

use crate::solver::problem::Problem;
use crate::targets::{HeadKind, Visibility};

/// Number of thresholds κ, geometric between ε and the largest that leaves any margin.
const THRESHOLDS: usize = 40;
/// Bisection steps for a margin.
const HALVINGS: usize = 40;

/// The largest entries of the rows of one problem with one global head.
#[derive(Debug)]
pub(super) struct Packing {
    rank: f64,
    n: f64,
    all_visible: bool,
    rows: Vec<Peak>,
}

/// A row's greatest entry α in column c, and its second greatest β.
#[derive(Debug)]
struct Peak {
    column: usize,
    alpha: f64,
    beta: f64,
}

/// The lower bounds by packing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Packed {
    pub norm_product: f64,
    /// 0 if the mask forbids some pair.
    pub max_abs_logit: f64,
}

impl Packing {
    /// Returns `None` for a local head, for several sequences or for sampled rows: distant rows may then have no key in common.
    pub fn new(problem: &Problem) -> Option<Self> {
        let one_sequence =
            problem.target().sequence() == problem.n() && problem.rows() == problem.n();
        if problem.layout().heads() != [HeadKind::Global] || !one_sequence {
            return None;
        }
        let peak = |row| {
            let (columns, a) = problem.target().row(row);
            let mut best = Peak { column: 0, alpha: 0.0, beta: 0.0 };
            for (&column, &a) in columns.iter().zip(a) {
                if a > best.alpha {
                    best = Peak { column: column as usize, alpha: a, beta: best.alpha };
                } else {
                    best.beta = best.beta.max(a);
                }
            }
            best
        };
        Some(Self {
            rank: problem.rank() as f64,
            n: problem.n() as f64,
            all_visible: problem.target().visibility() == Visibility::Bidirectional,
            rows: (0..problem.n()).map(peak).collect(),
        })
    }

    /// The lower bounds for kl_nats ≤ `kl_nats`.
    ///
    /// With a causal mask the later row of a pair may attend to both columns, so it distinguishes them.
    pub fn at(&self, kl_nats: f64) -> Packed {
        let greatest = self.rows.iter().map(|row| row.alpha).fold(0.0, f64::max);
        let last = greatest * std::f64::consts::LN_2;
        if kl_nats >= last {
            return Packed::default();
        }
        let best = (1..THRESHOLDS)
            .map(|i| kl_nats * (last / kl_nats).powf(i as f64 / THRESHOLDS as f64))
            .map(|threshold| self.at_threshold(kl_nats, threshold))
            .fold(0.0, f64::max);
        Packed { norm_product: best, max_abs_logit: if self.all_visible { best } else { 0.0 } }
    }

    fn at_threshold(&self, kl_nats: f64, threshold: f64) -> f64 {
        let mut by_column = vec![0.0f64; self.rows.len()];
        for row in &self.rows {
            let best = &mut by_column[row.column];
            *best = best.max(margin(row.alpha, row.beta, threshold));
        }
        by_column.sort_unstable_by(|a, b| b.total_cmp(a));
        // Any of the rows may be among those whose KL is above the threshold.
        let lost = (self.n * kl_nats / threshold * (1.0 + 1e-12)).floor();
        by_column
            .iter()
            .enumerate()
            .map(|(place, margin)| {
                let keys = (place + 1) as f64 - lost;
                0.5 * margin * (keys.max(1.0).powf(1.0 / self.rank) - 1.0)
            })
            .fold(0.0, f64::max)
    }
}

/// The smallest Δ ≥ 0 with which a row's KL can be at most `threshold`; 0 if none is forced.
fn margin(alpha: f64, beta: f64, threshold: f64) -> f64 {
    let cost = |delta: f64| {
        // −log of the two shares 1/(1 + e^{−Δ}) and 1/(1 + e^{Δ}).
        let top = (-delta).exp().ln_1p();
        let share = |a: f64, minus_log: f64| {
            if a > 0.0 { a * ((a / (alpha + beta)).ln() + minus_log) } else { 0.0 }
        };
        share(alpha, top) + share(beta, delta + top)
    };
    if cost(0.0) <= threshold {
        return 0.0;
    }
    // At log(α/β) the cost is 0; for β = 0 it is negligible at 700.
    let (mut low, mut high) = (0.0, if beta > 0.0 { (alpha / beta).ln() } else { 700.0 });
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if cost(middle) > threshold { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_of_a_certain_row_is_in_closed_form() {
        for threshold in [0.01f64, 0.1, 0.6] {
            let expected = -f64::ln_1p(threshold.exp() - 2.0);
            let found = margin(1.0, 0.0, threshold);
            assert!((found - expected).abs() < 1e-8, "{threshold}: {found}, not {expected}");
        }
        assert_eq!(margin(1.0, 0.0, 0.7), 0.0, "above log 2 both may be equal");
    }

    #[test]
    fn rows_of_smaller_kl_have_at_least_the_margin() {
        // Three entries, p on a grid: every p with KL ≤ κ has log p₀/p₁ ≥ Δ.
        let (a, threshold) = ([0.7, 0.2, 0.1], 0.05);
        let margin = margin(a[0], a[1], threshold);
        let mut least = f64::INFINITY;
        for i in 1..400 {
            for j in 1..400 - i {
                let p = [i as f64 / 400.0, j as f64 / 400.0, (400 - i - j) as f64 / 400.0];
                let kl: f64 = a.iter().zip(p).map(|(a, p)| a * (a / p).ln()).sum();
                if kl <= threshold {
                    least = least.min((p[0] / p[1]).ln());
                }
            }
        }
        assert!(margin <= least && least < margin + 0.05, "margin {margin}, least found {least}");
    }
}
