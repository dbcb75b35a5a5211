//! What given inputs need at *any* rank: logits X·C·Xᵀ with C any matrix, from above and from below.
//!
//! With C free the problem is convex: kl_nats is convex in the logits, which are linear in C, and the cap is a
//! pair of linear bounds. So what descent finds is the minimum, and its multipliers prove it. For logits z₀ of
//! inputs, G = ∂Σkl/∂z there, and any Λ with Xᵀ(G + Λ)X = 0, every other z of these inputs within |z| ≤ L has
//!
//! > Σkl(z) ≥ Σkl(z₀) + ⟨G, z − z₀⟩ = Σkl(z₀) − ⟨Λ, z − z₀⟩ ≥ Σkl(z₀) + ⟨Λ, z₀⟩ − L·Σ|Λ|,
//!
//! sums over visible pairs (weak duality: Boyd and Vandenberghe, *Convex Optimization*, section 5.2). So kl_nats ≤ ε needs
//!
//! > L ≥ (Σkl(z₀) + ⟨Λ, z₀⟩ − nε) / Σ|Λ|.
//!
//! Λ is the descent's multipliers, moved by the least squares that make them meet the condition.

use ndarray::{Array2, Zip, s};

use super::capped;
use super::effort::Effort;
use super::lbfgs::Ending;
use super::needed::{Needed, needed_logit_tied};
use super::objective::{Objective, Precision};
use super::outcome::Outcome;
use super::penalty::{FIRST_SLOPE, Multipliers, Penalty};
use super::problem::{FitError, Problem};
use super::search::SearchOptions;
use super::tied::Tied;
use super::watch::Watch;
use crate::numerics::product;

/// Stages of the augmented Lagrangian, at the cap found, in which multipliers settle.
const STAGES: usize = 24;
/// Iterations of a stage at most.
const STAGE_ITERATIONS: usize = 300;
/// The bounds from above and from below are this near each other at best.
const NEAR: f64 = 2e-3;
/// Conjugate gradients end at this share of the first residual, or prove nothing after so many steps.
const RESIDUAL: f64 = 1e-9;
const STEPS: usize = 10_000;

/// The least max_abs_logit of inputs at any rank, from both sides.
#[derive(Clone, Debug)]
pub struct AnyRank {
    /// What was found: an upper bound, with its factors.
    pub needed: Needed,
    /// No C has a smaller max_abs_logit with kl_nats ≤ ε: proven, to what float64 sums leave. 0 where nothing is.
    pub lower_bound: f64,
}

impl AnyRank {
    /// The least max_abs_logit found with which ε was reached.
    pub fn max_abs_logit(&self) -> Option<f64> {
        let reached =
            self.needed.best.as_ref().filter(|_| self.needed.outcome != Outcome::Infeasible);
        reached.map(|best| best.solution.max_abs_logit)
    }
}

/// L^X(ε; P, ∞): the least max_abs_logit with which kl_nats ≤ `tolerance` by logits X·C·Xᵀ, C any matrix, and a
/// proof that it is not much smaller. `point` is where descent begins: one of `tied`, at its own rank. None where
/// queries and keys are normalised or turned, since then no such C makes them.
///
/// # Errors
/// As [`needed_logit_tied`].
pub fn needed_logit_at_any_rank(
    problem: &Problem,
    tied: &Tied,
    point: &[f64],
    tolerance: f64,
    options: SearchOptions,
    watch: &dyn Watch,
) -> Result<Option<AnyRank>, FitError> {
    let Some((linear, start)) = tied.linear(point) else { return Ok(None) };
    let problem = Problem::new(problem.target().clone(), problem.layout().clone(), linear.rank())?;
    let needed = needed_logit_tied(&problem, &linear, &[start], tolerance, options, watch)?;
    let best = needed.best.as_ref().filter(|best| best.solution.kl_nats <= tolerance);
    let Some((best, mut x)) =
        best.and_then(|best| Some((&best.solution, linear.matrix_of(&best.solution.factors)?)))
    else {
        return Ok(Some(AnyRank { needed, lower_bound: 0.0 }));
    };
    let cap = best.max_abs_logit;
    let mut objective = Objective::tied(&problem, Precision::F64, &linear);
    let mut penalty = Penalty::new(&problem, cap, FIRST_SLOPE / cap);
    let mut lower_bound = 0.0f64;
    let mut violation = f64::INFINITY;
    let Effort { relative_decrease, .. } = options.fine;
    for _ in 0..STAGES {
        let ends = (STAGE_ITERATIONS, 0.1 * relative_decrease, f64::NEG_INFINITY);
        let minimum = capped::descend(&mut objective, &x, &penalty, ends, &mut |_, _| true);
        if minimum.ending == Ending::NotFinite {
            break;
        }
        x = minimum.x;
        penalty.multipliers = objective.updated_multipliers(&x, &penalty);
        let bound = Dual::at(&problem, &linear, &x).bound(&penalty.multipliers, tolerance);
        lower_bound = lower_bound.max(bound);
        if lower_bound >= (1.0 - NEAR) * cap {
            break;
        }
        let reached = objective.measure(&x).max_abs_logit / cap - 1.0;
        penalty.raise_slope(reached, violation);
        violation = reached;
    }
    // A proof from above and one from below may cross by rounding.
    Ok(Some(AnyRank { lower_bound: lower_bound.min(cap), needed }))
}

/// Logits of inputs, and what a bound from below is made of.
struct Dual<'p> {
    problem: &'p Problem,
    linear: &'p Tied,
    /// z, (rows, n); 0 where a row does not see a column.
    logits: Array2<f64>,
    /// ∂Σkl/∂z = softmax(z) − P.
    gradient: Array2<f64>,
    /// Σ over rows of kl.
    total_kl: f64,
}

impl<'p> Dual<'p> {
    fn at(problem: &'p Problem, linear: &'p Tied, x: &[f64]) -> Self {
        let (rows, n) = (problem.rows(), problem.n());
        let factors = linear.at(x);
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
        Self { problem, linear, logits, gradient, total_kl }
    }

    /// The largest L that multipliers prove to be needed for kl_nats ≤ `tolerance`.
    fn bound(&self, multipliers: &Multipliers, tolerance: f64) -> f64 {
        let mut lambda = Array2::zeros(self.logits.raw_dim());
        for (row, of_row) in multipliers[0].iter().enumerate() {
            for &(column, value) in of_row {
                lambda[[row, column as usize]] = value;
            }
        }
        // The least change, over visible pairs, with which Xᵀ(G + Λ)X = 0: that of a z of these inputs.
        let residual = self.pulled_back(&(&self.gradient + &lambda));
        let Some(c) = self.solved(residual) else { return 0.0 };
        lambda -= &self.seen(&c);
        let size: f64 = lambda.iter().map(|l| l.abs()).sum();
        let along: f64 = Zip::from(&lambda).and(&self.logits).fold(0.0, |sum, l, z| sum + l * z);
        let rows = self.problem.rows() as f64;
        let bound = (self.total_kl + along - rows * tolerance) / size;
        if bound.is_finite() { bound.max(0.0) } else { 0.0 }
    }

    /// The matrix C for which the logits of C, pulled back, are `residual`: conjugate gradients. None where they do not
    /// come near.
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

    /// X·C·Xᵀ where a row sees a column, 0 elsewhere.
    fn seen(&self, c: &Array2<f64>) -> Array2<f64> {
        let (rows, n) = self.logits.dim();
        let queries = product(self.linear.made_of(0).view(), c.view());
        let mut all = product(queries.view(), self.linear.made_of(1).t());
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
        let right = product(h.view(), self.linear.made_of(1).view());
        product(self.linear.made_of(0).t(), right.view())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Effort, Floor, Measured, needed_logit_tied};
    use crate::pattern::{Family, Parameters, Target, Visibility};

    fn target(visibility: Visibility) -> Target {
        let band = Parameters { window: Some(4), ..Parameters::default() };
        let family = Family::from_parameters("dirichlet-band", &band).unwrap();
        Target::packed(&[0, 1].map(|seed| family.build(12, seed, visibility).unwrap())).unwrap()
    }

    fn options() -> SearchOptions {
        let fine = Effort { iterations: 4000, relative_decrease: 1e-7, ..Effort::default() };
        SearchOptions { fine, ..SearchOptions::default() }
    }

    /// Causal attention by logits of up to `largest` that the inputs make, on two passages of 12.
    fn made_of(inputs: &Array2<f64>, largest: f64) -> Target {
        let c = wave(inputs.ncols(), inputs.ncols(), 0.3);
        let mut z = inputs.dot(&c).dot(&inputs.t());
        z *= largest / z.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let part = |first: usize| {
            let rows = (first..first + 12).map(|i| {
                let e: Vec<f64> = (first..=i).map(|j| z[[i, j]].exp()).collect();
                let sum: f64 = e.iter().sum();
                e.into_iter().map(|e| e / sum).enumerate().collect()
            });
            Target::from_rows(rows.collect(), Visibility::Causal).unwrap()
        };
        Target::packed(&[part(0), part(12)]).unwrap()
    }

    fn wave(rows: usize, columns: usize, shift: f64) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| (0.7 * (i * (j + 1)) as f64 + shift).sin())
    }

    fn at_any_rank(target: Target, inputs: &Array2<f64>, epsilon: f64) -> AnyRank {
        let problem = Problem::new(target, "global".parse().unwrap(), 3).unwrap();
        let tied = Tied::new(inputs.view(), 3, None, None).unwrap();
        let n = inputs.nrows();
        let point = tied.point(wave(n, 3, 1.0).view(), wave(n, 3, 2.0).view(), None);
        needed_logit_at_any_rank(&problem, &tied, &point, epsilon, options(), &()).unwrap().unwrap()
    }

    /// Inputs that can make any logits need what attention of any rank does, which is known exactly.
    #[test]
    fn inputs_of_full_rank_need_the_floor() {
        for visibility in [Visibility::Causal, Visibility::Bidirectional] {
            let target = target(visibility);
            let problem = Problem::new(target.clone(), "global".parse().unwrap(), 3).unwrap();
            for epsilon in [0.1, 0.01] {
                let floor = Floor::new(&problem).max_abs_logit(epsilon).unwrap();
                let found = at_any_rank(target.clone(), &Array2::eye(24), epsilon);
                let needed = found.needed.best.unwrap().solution.max_abs_logit;
                assert!((1.0..1.01).contains(&(needed / floor)), "{needed} over {floor}");
                let share = found.lower_bound / floor;
                assert!((0.99..1.0 + 1e-9).contains(&share), "{share} of {floor}");
            }
        }
    }

    #[test]
    fn few_inputs_need_more_than_the_floor_and_no_rank_less_than_the_bound() {
        let inputs = wave(24, 6, 0.5);
        let epsilon = 0.05;
        let target = made_of(&inputs, 12.0);
        let found = at_any_rank(target.clone(), &inputs, epsilon);
        let best = found.needed.best.as_ref().expect("ε is reached").solution.clone();
        assert!(best.kl_nats <= epsilon);
        let needed = best.max_abs_logit;
        let share = found.lower_bound / needed;
        assert!(needed < 12.0 && (0.98..=1.0).contains(&share), "{share} of {needed}");
        let problem = Problem::new(target, "global".parse().unwrap(), 6).unwrap();
        assert!(Measured::of(&problem, &best.factors).unwrap().kl_nats <= epsilon);
        let floor = Floor::new(&problem).max_abs_logit(epsilon).unwrap();
        assert!(floor < 0.9 * found.lower_bound, "{floor} against {}", found.lower_bound);
        // W_q and W_k of any width, wherever they begin.
        for rank in [3, 6] {
            let problem =
                Problem::new(problem.target().clone(), problem.layout().clone(), rank).unwrap();
            let tied = Tied::new(inputs.view(), rank, None, None).unwrap();
            let start = |shift| {
                tied.point(wave(24, rank, shift).view(), wave(24, rank, shift + 1.0).view(), None)
            };
            let starts = [start(1.0), start(5.0)];
            let by = needed_logit_tied(&problem, &tied, &starts, epsilon, options(), &()).unwrap();
            let Some(by) = by.best.filter(|best| best.solution.kl_nats <= epsilon) else {
                continue;
            };
            let reached = by.solution.max_abs_logit;
            assert!(reached >= found.lower_bound, "rank {rank}: {reached} under the bound");
        }
    }

    /// Whatever multipliers a bound is made from, it holds.
    #[test]
    fn poor_multipliers_prove_less_and_nothing_false() {
        let inputs = wave(24, 6, 0.5);
        let epsilon = 0.05;
        let target = made_of(&inputs, 12.0);
        let needed = at_any_rank(target.clone(), &inputs, epsilon).needed.best.unwrap().solution;
        let problem = Problem::new(target, "global".parse().unwrap(), 6).unwrap();
        let tied = Tied::new(inputs.view(), 6, None, None).unwrap();
        let x = tied.point(wave(24, 6, 1.0).view(), wave(24, 6, 2.0).view(), None);
        let (linear, matrix) = tied.linear(&x).unwrap();
        for shift in 0..4 {
            let value = |row: usize, column: usize| ((row * 5 + column * 3 + shift) as f64).sin();
            let of_row = |row: usize| {
                problem.seen(0, row).map(|j| (j as u32, value(row, j))).collect::<Vec<_>>()
            };
            let multipliers = vec![(0..24).map(of_row).collect()];
            let bound = Dual::at(&problem, &linear, &matrix).bound(&multipliers, epsilon);
            assert!(bound <= needed.max_abs_logit, "{bound} over {}", needed.max_abs_logit);
        }
    }
}
