//! Logits needed from given inputs at *any* rank: X·C·Xᵀ with C any matrix, bounded from above and below.

use super::dual;
use super::evaluator::Measured;
use super::factors::Factors;
use super::needed::{Needed, needed_logit_varying};
use super::observer::FitObserver;
use super::outcome::Outcome;
use super::parametrisation::{AnyMatrix, SharedProjection};
use super::problem::{FitError, Problem};
use super::search::SearchOptions;

/// L^X(ε; P, ∞), the smallest max |logit| for given inputs at any rank, bounded from both sides.
#[derive(Clone, Debug)]
pub struct AnyRank {
    /// The fit: an upper bound with its factors. Its queries are X·C and its keys X, (1, n, r) each, in coordinates in which
    /// the r independent columns of X are orthogonal.
    pub needed: Needed,
    /// Proven lower bound up to rounding of float64 sums: no C has a smaller max_abs_logit with kl_nats ≤ ε. 0 if nothing is
    /// proven.
    pub lower_bound: f64,
}

impl AnyRank {
    /// The smallest max_abs_logit that reached ε; `None` if the fit did not reach ε.
    pub fn max_abs_logit(&self) -> Option<f64> {
        let reached =
            self.needed.best.as_ref().filter(|_| self.needed.outcome != Outcome::Infeasible);
        reached.map(|best| best.solution.max_abs_logit)
    }
}

/// Computes L^X(ε; P, ∞), the smallest max_abs_logit with kl_nats ≤ ε of logits Z = X·C·Xᵀ for any matrix C, with a lower
/// bound:
///
/// > L^X(ε; P, ∞) = min over C of max |zᵢⱼ| over allowed pairs, subject to KL(P ‖ softmax Z) ≤ ε, mean over rows.
///
/// X, (n, C), are the inputs of `tied`, which must fit `problem`: one head, the same n and rank. The descent starts at `point`,
/// a point of `tied` ([`SharedProjection::length`] numbers). ε is `tolerance`, in nats. Returns `None` if queries and keys are
/// normalised or rotated (RoPE), because such logits are not of the form X·C·Xᵀ.
///
/// # Errors
/// `Tolerance`; `Inputs` if `point` or `tied` belong to another problem.
pub fn needed_logit_at_any_rank(
    problem: &Problem,
    tied: &SharedProjection,
    point: &[f64],
    tolerance: f64,
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Option<AnyRank>, FitError> {
    let points = [point.to_vec()];
    tied.check(problem, &points)?;
    let Some((any, start)) = tied.any_matrix(point) else { return Ok(None) };
    let problem = of_any_rank(problem, &any)?;
    let needed = needed_logit_varying(&problem, &any, &[start], tolerance, options, watch)?;
    let best = needed.best.as_ref().filter(|best| best.solution.kl_nats <= tolerance);
    let Some((best, x)) =
        best.and_then(|best| Some((&best.solution, any.matrix_of(&best.solution.factors)?)))
    else {
        return Ok(Some(AnyRank { needed, lower_bound: 0.0 }));
    };
    let cap = best.max_abs_logit;
    let lower_bound = dual::lower_bound(&problem, &any, x, cap, tolerance, options.fine)?;
    Ok(Some(AnyRank { needed, lower_bound }))
}

/// As [`needed_logit_at_any_rank`] from `given` factors, (1, n, r) of any rank r, or from the nearest ones that the inputs can
/// produce. The result needs no larger logits than those of `given` that the inputs can produce and that reach ε. It has no
/// lower bound; [`lower_bound_at_any_rank`] computes one.
///
/// # Errors
/// `Tolerance`, `NoStarts`; `Inputs` if `tied` belongs to another problem.
pub fn needed_logit_at_any_rank_from(
    problem: &Problem,
    tied: &SharedProjection,
    given: &[Factors],
    tolerance: f64,
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Option<Needed>, FitError> {
    tied.check(problem, &[])?;
    let Some(any) = tied.any() else { return Ok(None) };
    let problem = of_any_rank(problem, &any)?;
    let starts: Vec<Vec<f64>> = given.iter().filter_map(|start| any.matrix_of(start)).collect();
    needed_logit_varying(&problem, &any, &starts, tolerance, options, watch).map(Some)
}

/// Lower bound for every C, as [`AnyRank::lower_bound`], from the multipliers at the end of a descent at the max |logit| of
/// `found`. Returns 0 if `found`, of any rank, does not reach ε. Returns `None` if queries and keys are normalised or rotated.
///
/// # Errors
/// `Inputs` if `tied` belongs to another problem.
pub fn lower_bound_at_any_rank(
    problem: &Problem,
    tied: &SharedProjection,
    found: &Factors,
    tolerance: f64,
    options: SearchOptions,
) -> Result<Option<f64>, FitError> {
    tied.check(problem, &[])?;
    let Some(any) = tied.any() else { return Ok(None) };
    let of_found = Problem::new(problem.target().clone(), problem.layout().clone(), found.rank())?;
    let Measured { kl_nats, max_abs_logit, .. } = Measured::of(&of_found, found)?;
    match any.matrix_of(found).filter(|_| kl_nats <= tolerance) {
        None => Ok(Some(0.0)),
        Some(x) => {
            let problem = of_any_rank(problem, &any)?;
            dual::lower_bound(&problem, &any, x, max_abs_logit, tolerance, options.fine).map(Some)
        }
    }
}

/// The same target for factors whose rank is the dimension of the inputs.
fn of_any_rank(problem: &Problem, any: &AnyMatrix) -> Result<Problem, FitError> {
    let rank = any.inputs.dimension();
    Problem::new(problem.target().clone(), problem.layout().clone(), rank)
}

#[cfg(test)]
pub(super) mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::solver::{Floor, Measured, SolverBudget, needed_logit_tied};
    use crate::targets::{Family, Parameters, Target, Visibility};

    fn target(visibility: Visibility) -> Target {
        let band = Parameters { window: Some(4), ..Parameters::default() };
        let family = Family::from_parameters("dirichlet-band", &band).unwrap();
        Target::packed(&[0, 1].map(|seed| family.build(12, seed, visibility).unwrap())).unwrap()
    }

    fn options() -> SearchOptions {
        let fine =
            SolverBudget { iterations: 4000, relative_decrease: 1e-7, ..SolverBudget::default() };
        SearchOptions { fine, ..SearchOptions::default() }
    }

    /// Causal attention on two passages of 12 tokens, from logits of up to `largest` that the inputs can produce.
    pub fn made_of(inputs: &Array2<f64>, largest: f64) -> Target {
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

    pub fn wave(rows: usize, columns: usize, shift: f64) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| (0.7 * (i * (j + 1)) as f64 + shift).sin())
    }

    pub fn at_any_rank(target: Target, inputs: &Array2<f64>, epsilon: f64) -> AnyRank {
        let problem = Problem::new(target, "global".parse().unwrap(), 3).unwrap();
        let tied = SharedProjection::new(inputs.view(), 3, None, None).unwrap();
        let n = inputs.nrows();
        let point = tied.point(wave(n, 3, 1.0).view(), wave(n, 3, 2.0).view(), None);
        needed_logit_at_any_rank(&problem, &tied, &point, epsilon, options(), &()).unwrap().unwrap()
    }

    /// Inputs that can produce any logits need exactly the floor.
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
        // W_q and W_k of any width, from several starts.
        for rank in [3, 6] {
            let problem =
                Problem::new(problem.target().clone(), problem.layout().clone(), rank).unwrap();
            let tied = SharedProjection::new(inputs.view(), rank, None, None).unwrap();
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

    /// Logits with RoPE are Σ over pairs of channels of xᵢᵀA xⱼ·cos θ(i − j) + xᵢᵀB xⱼ·sin θ(i − j). With any matrices A and B
    /// this can be any logits if there are as many entries as pairs, although the inputs alone produce few.
    #[test]
    fn turned_inputs_make_any_logits_at_any_rank_where_they_have_as_many_entries_as_pairs() {
        const TOKENS: usize = 16;
        let dimension = |width: usize, thetas: &[f64]| -> usize {
            let x = Array2::from_shape_fn((TOKENS, width), |(i, j)| {
                (1.37 * (3 * i * i + 7 * i * j + 5 * j * j + i) as f64).sin()
            });
            let pairs = || (0..TOKENS).flat_map(|i| (0..=i).map(move |j| (i, j)));
            let features: Vec<Vec<f64>> = pairs()
                .map(|(i, j)| {
                    let lag = (i - j) as f64;
                    let turns = thetas.iter().flat_map(|t| [(t * lag).cos(), (t * lag).sin()]);
                    let turns: Vec<f64> =
                        if thetas.is_empty() { vec![1.0] } else { turns.collect() };
                    let products =
                        x.row(i).into_iter().flat_map(|a| x.row(j).into_iter().map(move |b| a * b));
                    products.flat_map(|ab| turns.iter().map(move |t| ab * t)).collect()
                })
                .collect();
            let columns = features[0].len();
            let all = Array2::from_shape_fn((features.len(), columns), |(r, c)| features[r][c]);
            crate::targets::Spectrum::of_matrix(&all).unwrap().numerical_rank
        };
        let pairs = TOKENS * (TOKENS + 1) / 2;
        assert_eq!(dimension(4, &[]), 16, "entries of one matrix");
        assert_eq!(dimension(4, &[1.0]), 32, "of two");
        assert_eq!(dimension(6, &[1.0, 0.1, 2.3]), pairs, "216 entries for 136 pairs");
    }
}
