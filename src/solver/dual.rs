//! Proof from multipliers that no logits X·C·Xᵀ of given inputs reach a bound.
//!
//! With a free C the problem is convex: kl_nats is convex in the logits, the logits are linear in C, and the logit bound is a
//! pair of linear bounds. So the descent finds the minimum, and its multipliers prove it. Let z₀ be logits of the inputs, G =
//! ∂Σkl/∂z there, and Λ any matrix with Xᵀ(G + Λ)X = 0. Then every other z of these inputs within |z| ≤ L has
//!
//! > Σkl(z) ≥ Σkl(z₀) + ⟨G, z − z₀⟩ = Σkl(z₀) − ⟨Λ, z − z₀⟩ ≥ Σkl(z₀) + ⟨Λ, z₀⟩ − L·Σ|Λ|,
//!
//! with sums over allowed pairs (weak duality: Boyd and Vandenberghe, *Convex Optimization*, section 5.2). So kl_nats ≤ ε needs
//!
//! > L ≥ (Σkl(z₀) + ⟨Λ, z₀⟩ − nε) / Σ|Λ|.
//!
//! Λ is the multipliers of the descent, corrected by least squares to satisfy the condition.

use ndarray::{Array2, Zip, s};

use super::budget::SolverBudget;
use super::factors::Factors;
use super::lagrangian::{Descent, Plan, Policy};
use super::objective::Objective;
use super::observer::FitState;
use super::parametrisation::AnyMatrix;
use super::penalty::Multipliers;
use super::precision::Precision;
use super::problem::{FitError, Problem};
use crate::numerics::product;

/// Number of stages of the augmented Lagrangian at the found bound, in which the multipliers converge.
const STAGES: usize = 24;
/// The most iterations of a stage.
const STAGE_ITERATIONS: usize = 300;
/// The search ends when upper and lower bound are within this relative distance.
const NEAR: f64 = 2e-3;
/// Conjugate gradients end at this share of the first residual; after `STEPS` steps they prove nothing.
const RESIDUAL: f64 = 1e-9;
const STEPS: usize = 10_000;

/// The largest proven lower bound on L for kl_nats ≤ `tolerance`, where the bound `cap` is reachable. Starts at the C of x and
/// runs stages at that bound until both bounds are near each other. Returns 0 if nothing is proven.
pub(super) fn lower_bound(
    problem: &Problem,
    any: &AnyMatrix,
    x: Vec<f64>,
    cap: f64,
    tolerance: f64,
    effort: SolverBudget,
) -> Result<f64, FitError> {
    let mut objective = Objective::varying(problem, Precision::F64, any);
    let from = FitState::at(x, cap, (problem.heads(), problem.rows()));
    let mut proof = Proof { problem, any, tolerance, effort, lower_bound: 0.0 };
    Descent::run(&mut objective, from, &mut proof, None)?;
    // Rounding can move the lower bound above the upper bound.
    Ok(proof.lower_bound.min(cap))
}

/// Keeps the logit bound fixed and tries every stage's multipliers as a proof.
struct Proof<'p> {
    problem: &'p Problem,
    any: &'p AnyMatrix,
    tolerance: f64,
    effort: SolverBudget,
    lower_bound: f64,
}

impl Policy for Proof<'_> {
    fn plan(&self) -> Plan {
        Plan {
            stages: STAGES,
            iterations: STAGES * STAGE_ITERATIONS,
            stage_iterations: STAGE_ITERATIONS,
            relative_decrease: 0.1 * self.effort.relative_decrease,
            early: 1.0,
            enough: f64::NEG_INFINITY,
            tolerated: f64::NEG_INFINITY,
        }
    }

    fn next_cap(
        &mut self,
        objective: &mut Objective<'_>,
        at: &Descent,
    ) -> Result<Option<f64>, FitError> {
        let dual = Dual::at(self.problem, self.any, &objective.factors(&at.x)?);
        let bound = dual.bound(&at.penalty.multipliers, self.tolerance);
        self.lower_bound = self.lower_bound.max(bound);
        Ok((self.lower_bound < (1.0 - NEAR) * at.penalty.cap).then_some(at.penalty.cap))
    }
}

/// Logits of the inputs and the quantities of the lower bound.
struct Dual<'p> {
    problem: &'p Problem,
    any: &'p AnyMatrix,
    /// z, (rows, n); 0 where the mask does not allow a pair.
    logits: Array2<f64>,
    /// ∂Σkl/∂z = softmax(z) − P.
    gradient: Array2<f64>,
    /// Σ over rows of kl.
    total_kl: f64,
}

impl<'p> Dual<'p> {
    fn at(problem: &'p Problem, any: &'p AnyMatrix, factors: &Factors) -> Self {
        let (rows, n) = (problem.rows(), problem.n());
        let (q, k) = factors.head(0);
        let scale = 1.0 / (problem.rank() as f64).sqrt();
        let mut logits = product(q.slice(s![..rows, ..]), k.t()) * scale;
        let mut gradient = Array2::zeros((rows, n));
        let mut total_kl = 0.0;
        for row in 0..rows {
            let seen = problem.seen(0, row);
            let mut z = logits.row_mut(row);
            for column in (0..seen.start).chain(seen.end..n) {
                z[column] = 0.0;
            }
            let largest = seen.clone().map(|j| z[j]).fold(f64::NEG_INFINITY, f64::max);
            let log_sum = largest + seen.clone().map(|j| (z[j] - largest).exp()).sum::<f64>().ln();
            let mut g = gradient.row_mut(row);
            for j in seen {
                g[j] = (z[j] - log_sum).exp();
            }
            let (columns, a) = problem.target().row(row);
            for (&column, &a) in columns.iter().zip(a) {
                let j = column as usize;
                g[j] -= a;
                total_kl += a * (a.ln() - (z[j] - log_sum));
            }
        }
        Self { problem, any, logits, gradient, total_kl }
    }

    /// The largest L that the multipliers prove necessary for kl_nats ≤ `tolerance`.
    fn bound(&self, multipliers: &Multipliers, tolerance: f64) -> f64 {
        let mut lambda = Array2::zeros(self.logits.raw_dim());
        for (row, of_row) in multipliers[0].iter().enumerate() {
            for &(column, value) in of_row {
                lambda[[row, column as usize]] = value;
            }
        }
        // The smallest change on allowed pairs that gives Xᵀ(G + Λ)X = 0: the logits of some C of these inputs.
        let residual = self.pulled_back(&(&self.gradient + &lambda));
        let Some(c) = self.solved(residual) else { return 0.0 };
        lambda -= &self.seen(&c);
        let size: f64 = lambda.iter().map(|l| l.abs()).sum();
        let along: f64 = Zip::from(&lambda).and(&self.logits).fold(0.0, |sum, l, z| sum + l * z);
        let rows = self.problem.rows() as f64;
        let bound = (self.total_kl + along - rows * tolerance) / size;
        if bound.is_finite() { bound.max(0.0) } else { 0.0 }
    }

    /// The matrix C whose logits, pulled back, are `residual`, by conjugate gradients. Returns `None` if they do not converge.
    fn solved(&self, residual: Array2<f64>) -> Option<Array2<f64>> {
        let dot = |a: &Array2<f64>, b: &Array2<f64>| -> f64 {
            Zip::from(a).and(b).fold(0.0, |sum, a, b| sum + a * b)
        };
        let mut c = Array2::zeros(residual.raw_dim());
        let mut left = residual;
        let mut direction = left.clone();
        let first = dot(&left, &left);
        let mut size = first;
        for _ in 0..STEPS {
            if size <= RESIDUAL * RESIDUAL * first {
                return Some(c);
            }
            let image = self.pulled_back(&self.seen(&direction));
            let step = size / dot(&direction, &image);
            c.scaled_add(step, &direction);
            left.scaled_add(-step, &image);
            let next = dot(&left, &left);
            direction *= next / size;
            direction += &left;
            size = next;
        }
        None
    }

    /// X·C·Xᵀ on allowed pairs, 0 elsewhere.
    fn seen(&self, c: &Array2<f64>) -> Array2<f64> {
        let (rows, n) = self.logits.dim();
        let queries = product(self.any.inputs.of_side(0).view(), c.view());
        let mut all = product(queries.view(), self.any.inputs.of_side(1).t());
        for row in 0..rows {
            let seen = self.problem.seen(0, row);
            for column in (0..seen.start).chain(seen.end..n) {
                all[[row, column]] = 0.0;
            }
        }
        all
    }

    /// Xᵀ·H·X.
    fn pulled_back(&self, h: &Array2<f64>) -> Array2<f64> {
        let right = product(h.view(), self.any.inputs.of_side(1).view());
        product(self.any.inputs.of_side(0).t(), right.view())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::any_rank::tests::{at_any_rank, made_of, wave};
    use crate::solver::parametrisation::SharedProjection;

    /// The bound holds for any multipliers.
    #[test]
    fn poor_multipliers_prove_less_and_nothing_false() {
        let inputs = wave(24, 6, 0.5);
        let epsilon = 0.05;
        let target = made_of(&inputs, 12.0);
        let needed = at_any_rank(target.clone(), &inputs, epsilon).needed.best.unwrap().solution;
        let problem = Problem::new(target, "global".parse().unwrap(), 6).unwrap();
        let tied = SharedProjection::new(inputs.view(), 6, None, None).unwrap();
        let x = tied.point(wave(24, 6, 1.0).view(), wave(24, 6, 2.0).view(), None);
        let (any, matrix) = tied.any_matrix(&x).unwrap();
        let factors = Objective::varying(&problem, Precision::F64, &any).factors(&matrix).unwrap();
        for shift in 0..4 {
            let value = |row: usize, column: usize| ((row * 5 + column * 3 + shift) as f64).sin();
            let of_row = |row: usize| {
                problem.seen(0, row).map(|j| (j as u32, value(row, j))).collect::<Vec<_>>()
            };
            let multipliers = vec![(0..24).map(of_row).collect()];
            let bound = Dual::at(&problem, &any, &factors).bound(&multipliers, epsilon);
            assert!(bound <= needed.max_abs_logit, "{bound} over {}", needed.max_abs_logit);
        }
    }
}
