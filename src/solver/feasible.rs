//! Scales logits so that factors satisfy a logit bound exactly or reach ε exactly.

use super::error::FitError;
use super::factors::{Factors, norm_product};
use super::kernel::Measured;
use super::objective::Objective;
use super::solution::{Outcome, Solution};

/// The solution at point x, scaled to the bound `cap`, with this gradient norm; its iterations and evaluations are 0.
pub(super) fn feasible(
    objective: &mut Objective<'_>,
    x: &[f64],
    cap: f64,
    gradient_norm: f64,
) -> Result<Solution, FitError> {
    let factors = objective.factors(x)?;
    let (factors, measured) = within_cap(objective, factors, cap);
    let Measured { kl_nats, max_abs_logit, logit_spread } = measured;
    Ok(Solution {
        factors,
        kl_nats,
        max_abs_logit,
        logit_spread,
        outcome: Outcome::StepLimit,
        gradient_norm,
        iterations: 0,
        evaluations: 0,
    })
}

/// A scaled point may stay below ε by this share.
const SHORT: f64 = 1e-3;
/// The most scales that are tried, ...
const SCALES: usize = 4;
/// ... each at most this factor, as a logarithm, from the last: further away the point is not near the frontier.
const LARGEST_SCALE: f64 = 0.3;
/// The smallest slope that is plausible for a point near the frontier.
const LEAST_SLOPE: f64 = 0.5;

/// Scales the logits of `here` until kl_nats is between (1 − [`SHORT`])ε and ε, or returns the best point that was tried. It is
/// a secant method for log kl_nats as a function of the logarithm of the scale, with the frontier's `slope` as its first slope.
///
/// At a minimum within a logit bound, moving the bound and scaling the point change kl_nats equally to first order: E(s·z) has
/// the slope ⟨∂E/∂z, z⟩ = −Σ|λ|·L in log s, by stationarity, which is the frontier's slope in log L.
pub(super) fn reaching(
    objective: &mut Objective<'_>,
    here: Solution,
    tolerance: f64,
    slope: f64,
) -> Solution {
    let is_there = |s: &Solution| s.kl_nats <= tolerance && s.kl_nats >= (1.0 - SHORT) * tolerance;
    let aim = (1.0 - 0.5 * SHORT) * tolerance;
    let mut slope = slope.max(LEAST_SLOPE);
    let mut best = here.clone();
    let mut last = here;
    for _ in 0..SCALES {
        if is_there(&best) || last.max_abs_logit == 0.0 {
            break;
        }
        // Limits the step if the target is already met, where log(error) is −∞.
        let error = last.kl_nats.max(SHORT * tolerance);
        let step = ((error / aim).ln() / slope).clamp(-LARGEST_SCALE, LARGEST_SCALE);
        let factors = last.factors.clone().scaled(step.exp());
        let Measured { kl_nats, max_abs_logit, logit_spread } = objective.measure_factors(&factors);
        let secant = (error / kl_nats).ln() / step;
        if secant.is_finite() && secant > 0.0 {
            slope = secant.max(LEAST_SLOPE);
        }
        last = Solution { factors, kl_nats, max_abs_logit, logit_spread, ..last };
        if last.preferred(&best, tolerance).is_lt() {
            best = last.clone();
        }
    }
    best
}

/// Scales all logits down until the largest is within the bound, with a margin for rounding when the factors are multiplied
/// again. Returns the scaled factors and what was measured of them.
pub(super) fn within_cap(
    objective: &mut Objective,
    mut factors: Factors,
    cap: f64,
) -> (Factors, Measured) {
    loop {
        let measured = objective.measure_factors(&factors);
        let (reached, room) = (measured.max_abs_logit, rounding(&factors));
        if reached + room <= cap || reached == 0.0 {
            return (factors, measured);
        }
        factors = factors.scaled(((cap - 2.0 * room) / reached).min(1.0 - f64::EPSILON));
    }
}

/// A bound on the rounding of one dot product in any order: d·ε·max‖q‖·max‖k‖/√d.
fn rounding(factors: &Factors) -> f64 {
    (factors.rank() + 2) as f64 * f64::EPSILON * norm_product(factors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::problem::Problem;
    use crate::solver::{Precision, SearchOptions, needed_logit};
    use crate::targets::{Family, Visibility};

    fn band(window: usize, rank: usize) -> Problem {
        let family = Family::DirichletBand { window, alpha: 1.0 };
        let target = family.build(24, 1, Visibility::Causal).unwrap();
        Problem::new(target, "global".parse().unwrap(), rank).unwrap()
    }

    /// From a minimum at another error, with a slope that is too steep, right or too flat, scaling reaches ε. The logits are
    /// hardly larger than the smallest that a search finds there.
    #[test]
    fn scaled_logits_reach_the_error_asked_for() {
        let problem = band(6, 6);
        let options = SearchOptions { starts: 6, passes: 1, ..SearchOptions::default() };
        let least = |tolerance| {
            needed_logit(&problem, tolerance, options, &()).unwrap().best.unwrap().solution
        };
        let mut objective = Objective::new(&problem, Precision::F64);
        for (from, tolerance) in [(0.05, 0.06), (0.06, 0.05)] {
            let here = least(from);
            for slope in [0.0, 1.5, 20.0] {
                let found = reaching(&mut objective, here.clone(), tolerance, slope);
                let reached = found.kl_nats / tolerance;
                assert!((0.99..=1.0).contains(&reached), "{from}, slope {slope}: {reached}");
                let scale = found.max_abs_logit / here.max_abs_logit;
                assert_eq!(scale < 1.0, from < tolerance, "{scale}");
                let needed = least(tolerance).max_abs_logit;
                assert!(found.max_abs_logit <= 1.05 * needed, "{found:?} {needed}");
            }
        }
    }

    /// Logits that are wrong at any scale are returned, no worse than before.
    #[test]
    fn what_no_scale_mends_is_given_back() {
        let problem = band(3, 2);
        let mut objective = Objective::new(&problem, Precision::F64);
        for scale in [0.0, 1.0] {
            let x: Vec<f64> = (0..2 * 24 * 2).map(|i| scale * f64::from(i * 7 % 5)).collect();
            let here = feasible(&mut objective, &x, 10.0, 0.0).unwrap();
            let found = reaching(&mut objective, here.clone(), 1e-6, f64::NAN);
            assert!(found.kl_nats <= here.kl_nats && found.kl_nats > 1e-6);
        }
    }
}
