//! Proven bounds on a whole spectrum from its leading singular values and ‖A‖_F.

use serde::Serialize;

use super::product::Transpose;
use crate::targets::Target;

/// Number of times that the point of the lower bound on the entropy is improved.
const IMPROVEMENTS: usize = 8;

/// A lower and an upper bound on a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds<T> {
    /// The lower bound.
    pub at_least: T,
    /// The upper bound.
    pub at_most: T,
}

impl<T> Bounds<T> {
    /// Bounds on f(x), for a non-decreasing f.
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Bounds<U> {
        Bounds { at_least: f(self.at_least), at_most: f(self.at_most) }
    }
}

/// Known facts of a spectrum σ₁ ≥ σ₂ ≥ …: σⱼ lies in \[aⱼ, bⱼ\] for the given j ≤ k, at most m values are above 0, and Σσⱼ² =
/// ‖A‖_F².
pub(super) struct Known {
    /// aⱼ, the computed values, without those beyond the m-th.
    at_least: Vec<f64>,
    /// bⱼ, for all k.
    pub at_most: Vec<f64>,
    /// The number of values beyond the k-th that may be above 0.
    others: usize,
    /// ‖A‖_F².
    energy: f64,
    /// Share of `energy` in the computed values beyond the k-th: a lower bound on the energy of the tail.
    beyond: f64,
    /// Σσⱼ⁴, if known.
    fourth_powers: Option<f64>,
}

impl Known {
    /// `values` are the singular values of QᵀA, of which `count` are requested.
    ///
    /// aⱼ: Q's columns are orthonormal, so no singular value of QᵀA exceeds that of A at the same index. bⱼ: AᵀA = (QᵀA)ᵀQᵀA +
    /// EᵀE with E = A − QQᵀA, so σⱼ² ≤ aⱼ² + ‖E‖² (Weyl) and ‖E‖² ≤ ‖E‖_F² = ‖A‖_F² − Σa². Also σ₁² ≤ ‖A‖₁·‖A‖_∞ with ‖A‖_∞ =
    /// 1, and j·σⱼ² ≤ ‖A‖_F².
    pub fn new(
        target: &Target,
        transpose: &Transpose,
        values: &[f64],
        count: usize,
        fourth_powers: Option<f64>,
    ) -> Self {
        let energy: f64 = (0..target.n()).map(|row| squares(target.row(row).1)).sum();
        let (columns, greatest_column) = transpose.columns_in_use();
        let missed = (energy - squares(values)).max(0.0);
        let at_most = |(j, &a): (usize, &f64)| {
            if j >= columns {
                return a;
            }
            let flat = energy / (j + 1) as f64;
            // A computed value exceeds the true one by rounding at most.
            a.max((a * a + missed).min(greatest_column).min(flat).sqrt())
        };
        let within = count.min(columns);
        Self {
            at_least: values[..within].to_vec(),
            at_most: values[..count].iter().enumerate().map(at_most).collect(),
            others: columns - within,
            energy,
            beyond: squares(&values[within..]),
            fourth_powers,
        }
    }

    /// Σ_{j>k} σⱼ².
    pub fn tail_energy(&self) -> Bounds<f64> {
        let at_most = (self.energy - squares(&self.at_least)).max(0.0);
        let least = (self.energy - squares(&self.at_most)).max(self.beyond);
        Bounds { at_least: least.min(at_most), at_most }
    }

    /// exp(H) with H = −Σ pⱼ log pⱼ and pⱼ = σⱼ/Σσ.
    pub fn effective_rank(&self) -> Bounds<f64> {
        let at_most = self.most_even().effective_rank();
        Bounds { at_least: self.least_effective_rank().min(at_most), at_most }
    }

    /// The possible spectrum of largest entropy.
    ///
    /// Moving energy from a larger σ to the smallest raises H: with dσ₁ = −σ₂ε and dσ₂ = σ₁ε, dH is ε·(Σσ)⁻¹·\[σ₁(log 1/p₂ − H)
    /// − σ₂(log 1/p₁ − H)\] ≥ 0, because p₂ is the smallest p, hence log 1/p₂ ≥ H, and p₁ ≥ p₂. So at the largest H all σ above
    /// their aⱼ have one common value, the smallest of all.
    fn most_even(&self) -> Moments {
        let mut given = self.at_least.len();
        let (mut level_count, mut level_energy) = (self.others, self.tail_energy().at_most);
        while let Some(&last) = self.at_least[..given].last() {
            if level_energy <= level_count as f64 * last * last {
                break;
            }
            given -= 1;
            level_count += 1;
            level_energy += last * last;
        }
        let mut moments = Moments::default();
        self.at_least[..given].iter().for_each(|&sigma| moments.add(1.0, sigma));
        if level_count > 0 {
            moments.add(level_count as f64, (level_energy / level_count as f64).sqrt());
        }
        moments
    }

    /// A lower bound on exp(H) over all possible spectra: the larger of two.
    ///
    /// ‖A‖_F⁴/Σσ⁴ is sharp for flat spectra: e^H ≥ S²/‖A‖_F² for S = Σσ (H is no less than Rényi's entropy of order 2), and S²
    /// ≥ ‖A‖_F⁶/Σσ⁴ (Hölder).
    fn least_effective_rank(&self) -> f64 {
        let flat = self.fourth_powers.map_or(1.0, |fourth| self.energy.powi(2) / fourth);
        self.least_by_values().max(flat)
    }

    /// A lower bound on exp(H) that is tight if the given values have most of the energy.
    ///
    /// For any c, e^H ≥ e^{1−c}·Σψ(σⱼ) with ψ(σ) = σ(c − log σ), since S log S is convex in S = Σσ; equality holds at c = 1 +
    /// Σσ log σ/S. ψ is concave, so over \[aⱼ, bⱼ\] its minimum is at an end. The other values are at most b = bₖ and have Σψ ≥
    /// (energy/b²)·ψ(b) if c ≥ log b. Every c gives a bound; the loop searches for the best.
    fn least_by_values(&self) -> f64 {
        let largest_other = self.at_most.last().copied().unwrap_or(0.0);
        let (least_c, count_others) = if self.others > 0 && largest_other > 0.0 {
            (largest_other.ln(), self.tail_energy().at_least / largest_other.powi(2))
        } else {
            (f64::NEG_INFINITY, 0.0)
        };
        let mut ends = Moments::default();
        self.at_least.iter().for_each(|&sigma| ends.add(1.0, sigma));
        ends.add(count_others, largest_other);
        let mut best: f64 = 1.0;
        for _ in 0..IMPROVEMENTS {
            let c = (1.0 + ends.mean_log()).max(least_c);
            let psi = |sigma: f64| if sigma > 0.0 { sigma * (c - sigma.ln()) } else { 0.0 };
            ends = Moments::default();
            for (&a, &b) in self.at_least.iter().zip(&self.at_most) {
                ends.add(1.0, if psi(a) < psi(b) { a } else { b });
            }
            ends.add(count_others, largest_other);
            best = best.max((1.0 - c).exp() * (c * ends.sum - ends.sum_of_logs));
        }
        best
    }
}

/// Σσ and Σσ log σ, which determine the effective rank.
#[derive(Default)]
struct Moments {
    sum: f64,
    sum_of_logs: f64,
}

impl Moments {
    /// Adds `count` values of `sigma`; values of 0 add nothing.
    fn add(&mut self, count: f64, sigma: f64) {
        if sigma > 0.0 {
            self.sum += count * sigma;
            self.sum_of_logs += count * sigma * sigma.ln();
        }
    }

    fn mean_log(&self) -> f64 {
        self.sum_of_logs / self.sum
    }

    /// exp(log S − Σσ log σ/S).
    fn effective_rank(&self) -> f64 {
        (self.sum.ln() - self.mean_log()).exp()
    }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}
