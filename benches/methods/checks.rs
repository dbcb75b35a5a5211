//! Checks before the comparison: curvature against finite differences of the library's gradient and against plain
//! loops, and descent of every method.

use std::time::Duration;

use anyhow::{Result, ensure};
use rank_study::solver::Problem;

use crate::Method;
use crate::adam::Moments;
use crate::curvature::{Curvature, Half};
use crate::newton::hessian_product;
use crate::problems::Case;
use crate::run::{Run, along, dot, norm_max};

/// A logit bound that some logits of the start exceed, and a weight of its penalty that matters beside the
/// probabilities.
const TIGHT: (f64, f64) = (1.5, 0.4);

/// Runs all checks on one case.
///
/// # Errors
/// A check fails.
pub fn check(case: &Case) -> Result<()> {
    let stage = case.stage(0)?.with_penalty(TIGHT);
    let mut evaluator = stage.evaluator()?;
    let x = evaluator.point().to_vec();
    let curvature = Curvature::at(&stage, &x);
    let plain = Plain { problem: &stage.problem, x: &x };
    let (n, d) = (stage.problem.n(), stage.problem.rank());
    // Directions drawn as the start of another seed.
    let only = |half: Half, seed: u64| -> Result<Vec<f64>> {
        let mut v = case.stage(seed)?.evaluator()?.point().to_vec();
        match half {
            Half::Queries => v[n * d..].fill(0.0),
            Half::Keys => v[..n * d].fill(0.0),
        }
        Ok(v)
    };

    // The logits are linear in each factor, so within one half the Gauss–Newton matrix equals the Hessian.
    let (queries, keys) = (only(Half::Queries, 1)?, only(Half::Keys, 2)?);
    for (v, part) in [(&queries, 0..n * d), (&keys, n * d..2 * n * d)] {
        let offset = 1e-6;
        let mut gradient = |step: f64| {
            evaluator.evaluate_at(&along(&x, step, v));
            evaluator.gradient().to_vec()
        };
        let difference = along(&gradient(offset), -1.0, &gradient(-offset));
        let difference: Vec<f64> = difference.iter().map(|v| v / (2.0 * offset)).collect();
        let product = curvature.product(v);
        let off = norm_max(&along(&product[part.clone()], -1.0, &difference[part.clone()]))
            / norm_max(&difference[part]);
        ensure!(off < 1e-6, "{}: a product is off by {off:e} of its size", case.name);
    }

    let both = along(&queries, 1.0, &keys);
    let form = dot(&both, &curvature.product(&both));
    let expected = plain.form(&both);
    ensure!((form / expected - 1.0).abs() < 1e-10, "{}: {form} for {expected}", case.name);

    let blocks = curvature.blocks();
    for unit in [3 * d + 1, n * d + 5 * d] {
        let mut v = vec![0.0; 2 * n * d];
        v[unit..unit / d * d + d].copy_from_slice(&both[unit..unit / d * d + d]);
        let form = dot(&v, &blocks.product(&v));
        let mut expected = dot(&v, &curvature.product(&v));
        if unit >= n * d {
            expected += plain.left_out(&v, unit / d - n);
        }
        ensure!((form / expected - 1.0).abs() < 1e-10, "{}: {form} for {expected}", case.name);
    }
    let damped = blocks.damped(1e-3);
    let Some(inverse) = damped.inverse() else {
        anyhow::bail!("{}: a damped block is not positive definite", case.name);
    };
    let off = norm_max(&along(&inverse.product(&damped.product(&both)), -1.0, &both));
    ensure!(off < 1e-8, "{}: inverses are off by {off:e}", case.name);

    let mut moved = x.clone();
    evaluator.evaluate_at(&x);
    Moments::zeros(x.len()).step(&mut moved, evaluator.gradient(), 0.01);
    for ((x, moved), g) in x.iter().zip(&moved).zip(evaluator.gradient()) {
        let off = x - moved - 0.01 * g.signum();
        ensure!(g.abs() < 1e-8 || off.abs() < 2e-4, "{}: Adam's first step: {off}", case.name);
    }

    // The full Hessian is symmetric, so both products between the halves agree.
    let mut run = Run::begin(&stage, Duration::from_secs(1))?;
    run.evaluator.evaluate_at(&x);
    let gradient = run.evaluator.gradient().to_vec();
    let there = dot(&keys, &hessian_product(&mut run, &x, &gradient, &queries));
    let back = dot(&queries, &hessian_product(&mut run, &x, &gradient, &keys));
    ensure!((there / back - 1.0).abs() < 1e-3, "{}: {there} and {back}", case.name);

    let stage = case.stage(0)?;
    let first = stage.evaluator()?.evaluate();
    for method in Method::all() {
        let value = method.run(&stage, Duration::from_millis(20))?.value;
        ensure!(value < 0.9 * first, "{}, {}: {value} from {first}", case.name, method.name());
    }
    Ok(())
}

/// The objective's definition, by plain loops.
struct Plain<'a> {
    problem: &'a Problem,
    x: &'a [f64],
}

impl Plain<'_> {
    /// Logits and probabilities of row i.
    fn row(&self, i: usize) -> (Vec<f64>, Vec<f64>) {
        let z: Vec<f64> = (0..=i).map(|j| self.inner(i, j, self.x, self.x)).collect();
        let sum: f64 = z.iter().map(|z| z.exp()).sum();
        let p = z.iter().map(|z| z.exp() / sum).collect();
        (z, p)
    }

    /// Inner product of the i-th query of one vector and the j-th key of another, over √d.
    fn inner(&self, i: usize, j: usize, queries: &[f64], keys: &[f64]) -> f64 {
        let (n, d) = (self.problem.n(), self.problem.rank());
        let terms = (0..d).map(|a| queries[i * d + a] * keys[(n + j) * d + a]);
        terms.sum::<f64>() / (d as f64).sqrt()
    }

    /// vᵀ·(Gauss–Newton)·v: the mean over rows of the variance of dz under p, plus the penalty's term.
    fn form(&self, v: &[f64]) -> f64 {
        let n = self.problem.n();
        let rows = (0..n).map(|i| {
            let (z, p) = self.row(i);
            let dz: Vec<f64> = (0..=i)
                .map(|j| self.inner(i, j, v, self.x) + self.inner(i, j, self.x, v))
                .collect();
            let mean: f64 = p.iter().zip(&dz).map(|(p, dz)| p * dz).sum();
            let held = |z: f64| if z.abs() > TIGHT.0 { TIGHT.1 } else { 0.0 };
            let terms = z.iter().zip(&p).zip(&dz);
            terms.map(|((&z, p), dz)| p * (dz - mean).powi(2) + held(z) * dz * dz).sum::<f64>()
        });
        rows.sum::<f64>() / n as f64
    }

    /// Excess of a key's block over its exact Hessian, as a quadratic form in v: Σᵢ (pᵢⱼ dzᵢⱼ)²/n.
    fn left_out(&self, v: &[f64], key: usize) -> f64 {
        let n = self.problem.n();
        let terms = (key..n).map(|i| (self.row(i).1[key] * self.inner(i, key, self.x, v)).powi(2));
        terms.sum::<f64>() / n as f64
    }
}
