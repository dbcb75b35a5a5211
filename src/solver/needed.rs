//! L*(ε): the smallest max_abs_logit that reaches a given kl_nats.
//!
//! Each start is one solve instead of a scan over logit bounds; `logit_bound_search.rs` explains how the bound moves.

use super::error::FitError;
use super::factors::Factors;
use super::feasible::within_cap;
use super::floor::Floor;
use super::lagrangian::SolverBudget;
use super::logit_bound_search::{Caps, FAR_BELOW, LogitBoundSearch, Sparing, just_above};
use super::objective::Objective;
use super::observer::{FitObserver, FitState};
use super::parametrisation::SharedProjection;
use super::problem::{Problem, check_tolerance};
use super::search::{Search, SearchOptions};
use super::solution::{Candidate, Outcome, Solution};

/// The first logit bound of a solve, relative to the full-rank floor.
const FIRST_CAP: f64 = 1.25;

/// The result of a search for L*(ε).
#[derive(Clone, Debug)]
pub struct Needed {
    /// `Infeasible` if no logit bound up to `LARGEST_CAP`, or up to the largest logit of the given factors if that is larger,
    /// reached the tolerance. Then `best` has the smallest kl_nats found there, and is `None` if the heads cannot attend to all
    /// of the target.
    pub outcome: Outcome,
    /// The factors of smallest max_abs_logit found with kl_nats ≤ ε.
    pub best: Option<Candidate>,
    /// L-BFGS iterations of all starts together.
    pub iterations: usize,
    /// Evaluations of objective and gradient of all starts together.
    pub evaluations: usize,
}

/// Searches for L*(ε), the smallest max_abs_logit with kl_nats ≤ `tolerance` at the problem's rank.
///
/// Every start is solved roughly, and the best few are refined. The best of all is solved again from fits at twice and at half
/// its logit bound, as long as that helps. If the target is within ε of uniform attention over the allowed columns, no logits
/// are needed and the factors are zero.
///
/// ```
/// use rank_study::solver::{Measured, Problem, SearchOptions, needed_logit};
/// use rank_study::targets::{Family, Layout, Visibility};
///
/// let target = Family::DirichletBand { window: 4, alpha: 1.0 }.build(12, 0, Visibility::Causal)?;
/// let problem = Problem::new(target, Layout::global(), 2)?;
/// let options = SearchOptions { starts: 2, passes: 0, ..SearchOptions::default() };
/// let needed = needed_logit(&problem, 0.2, options, &())?;
/// let found = needed.best.expect("a global head sees all of the target").solution;
/// assert!(found.kl_nats <= 0.2);
/// // The factors are a certificate.
/// assert_eq!(Measured::of(&problem, &found.factors)?.max_abs_logit, found.max_abs_logit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A wrong tolerance, `NoStarts`.
pub fn needed_logit(
    problem: &Problem,
    tolerance: f64,
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Needed, FitError> {
    needed_logit_from(problem, tolerance, &[], options, watch)
}

/// Searches for L*(ε) as [`needed_logit`] does, with `given` factors as the first starts, such as those from which the target
/// was computed. Each starts at its own largest logit; if it has kl_nats ≤ ε, the result is never larger than that.
/// `options.starts` more starts follow; this may be 0.
///
/// # Errors
/// A wrong tolerance, `NoStarts`; `OtherFactors` if some factors do not fit this problem.
pub fn needed_logit_from(
    problem: &Problem,
    tolerance: f64,
    given: &[Factors],
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Needed, FitError> {
    check_tolerance(tolerance)?;
    given.iter().try_for_each(|factors| problem.check_factors(factors))?;
    if given.is_empty() && options.starts == 0 {
        return Err(FitError::NoStarts);
    }
    let search = Search::new(problem, options, 1, watch)?;
    let Some(floor) = Floor::new(problem).max_abs_logit(tolerance) else {
        return Ok(Needed::NOTHING);
    };
    let own: Vec<f64> = {
        let mut objective = search.objective();
        given.iter().map(|factors| objective.measure_factors(factors).max_abs_logit).collect()
    };
    let caps = own.iter().fold(Caps::above(floor), |caps, &own| caps.with(own));
    let first_cap = (FIRST_CAP * floor).max(0.1);
    let far_below = if given.is_empty() { 0.0 } else { FAR_BELOW };
    let sparing = options.sparing.map(Sparing::to);
    let solve =
        |name: String, effort: SolverBudget, start: &dyn Fn() -> Result<FitState, FitError>| {
            let to = LogitBoundSearch { tolerance, caps, effort, far_below, sparing, best: None };
            let attendance = search.attendance(name, effort);
            search.kept_or(&attendance, |underway| {
                let from = underway.map_or_else(start, Ok)?;
                to.fit(&mut search.objective(), from, &attendance)
            })
        };
    let starts: Vec<usize> = (0..given.len() + options.starts).collect();
    let rough: Vec<Candidate> = search
        .each(&starts, |&start| {
            if start > 0 && search.has_ended() {
                return Ok(None);
            }
            let from = || {
                let Some(factors) = given.get(start) else {
                    let factors = search.start(start - given.len(), first_cap)?;
                    return Ok(FitState::new(&factors, problem, caps.clamp(first_cap)));
                };
                Ok(beginning_at(factors.to_vector(), own[start], problem, caps, sparing))
            };
            // Given factors are near the result, so no rough fit is needed to choose among them.
            let effort = if options.sparing.is_some() { options.fine } else { options.rough };
            let solution = solve(format!("rough-{start}"), effort, &from)?;
            Ok(Some(Candidate { start, solution }))
        })?
        .into_iter()
        .flatten()
        .collect();
    let mut ranked: Vec<&Candidate> = rough.iter().collect();
    ranked.sort_by(|a, b| a.solution.preferred(&b.solution, tolerance));
    let is_over = search.has_ended() || options.sparing.is_some();
    ranked.truncate(if is_over { 0 } else { options.polished.max(1) });
    let fine: Vec<Candidate> = search.each(&ranked, |Candidate { start, solution: rough }| {
        let cap = caps.clamp(rough.max_abs_logit);
        let from = || Ok(FitState::new(&rough.factors, problem, cap));
        let solution = solve(format!("fine-{start}"), options.fine, &from)?;
        Ok(Candidate { start: *start, solution })
    })?;
    let mut all: Vec<Candidate> = rough.into_iter().chain(fine).collect();
    let best_of = |all: &[Candidate]| {
        all.iter().min_by(|a, b| a.solution.preferred(&b.solution, tolerance)).cloned()
    };
    // A minimum at twice or half the bound often leads out of a worse one here.
    for pass in 0..options.passes {
        let Some(before) = best_of(&all).filter(|_| !search.has_ended()) else { break };
        let cap = caps.clamp(before.solution.max_abs_logit);
        let found = search.each(&[2.0, 0.5], |factor| {
            let name = format!("away-{pass}-by-{factor}");
            let away = caps.clamp(factor * cap);
            let start = |objective: &mut Objective<'_>| {
                Ok(within_cap(objective, before.solution.factors.clone(), away).0)
            };
            let away = search.fit(&mut search.objective(), name, away, options.fine, start)?;
            let from = || Ok(FitState::new(&away.factors, problem, cap));
            let back = solve(format!("back-{pass}-by-{factor}"), options.fine, &from)?;
            Ok([away, back].map(|solution| Candidate { start: before.start, solution }))
        })?;
        all.extend(found.into_iter().flatten());
        if best_of(&all).is_none_or(|after| !after.solution.is_news_to(&before.solution, tolerance))
        {
            break;
        }
    }
    Ok(Needed::of(&all, tolerance))
}

/// Searches for L^X(ε), the smallest max_abs_logit with kl_nats ≤ `tolerance` of factors that are projections of inputs. Starts
/// are the points `starts` of `tied` ([`SharedProjection::length`] numbers each). Each starts at its own largest logit; if it
/// has kl_nats ≤ ε, the result is never larger than that. The result is an upper bound that more starts may lower.
///
/// # Errors
/// A wrong tolerance, `NoStarts`, a point or inputs of another problem, or a problem of several heads.
pub fn needed_logit_tied(
    problem: &Problem,
    tied: &SharedProjection,
    starts: &[Vec<f64>],
    tolerance: f64,
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Needed, FitError> {
    tied.check(problem, starts)?;
    check_tolerance(tolerance)?;
    if starts.is_empty() {
        return Err(FitError::NoStarts);
    }
    let Some(floor) = Floor::new(problem).max_abs_logit(tolerance) else {
        return Ok(Needed::NOTHING);
    };
    let search = Search::new(problem, options, 1, watch)?;
    let numbered: Vec<(usize, &Vec<f64>)> = starts.iter().enumerate().collect();
    let from = |&(start, point): &(usize, &Vec<f64>)| {
        let objective = Objective::varying(problem, options.precision, tied);
        let mut objective = objective.sparing(options.sparing.is_some());
        let own = objective.measure(point).max_abs_logit;
        let caps = Caps::above(floor).with(own);
        let sparing = options.sparing.map(Sparing::to);
        let from = beginning_at(point.clone(), own, problem, caps, sparing);
        let attendance = search.attendance(format!("tied-{start}"), options.fine);
        let (effort, far_below) = (options.fine, FAR_BELOW);
        let to = LogitBoundSearch { tolerance, caps, effort, far_below, sparing, best: None };
        Ok(Candidate { start, solution: to.fit(&mut objective, from, &attendance)? })
    };
    let all = match options.sparing {
        None => search.each(&numbered, from)?,
        Some(_) => {
            let mut objective = Objective::varying(problem, options.precision, tied);
            let least = starts
                .iter()
                .map(|point| objective.measure(point))
                .filter(|of_start| of_start.kl_nats <= tolerance)
                .fold(f64::INFINITY, |least, of_start| least.min(of_start.max_abs_logit));
            let mut all: Vec<Candidate> = Vec::new();
            for one in &numbered {
                all.push(from(one)?);
                let Solution { kl_nats, max_abs_logit, .. } = all[all.len() - 1].solution;
                if kl_nats <= tolerance && max_abs_logit <= least {
                    break;
                }
            }
            all
        }
    };
    Ok(Needed::of(&all, tolerance))
}

/// A descent from x, whose largest logit is `own`; it keeps x until it finds a better point. Its logit bound is that of x, or
/// with `sparing` one near the expected result.
fn beginning_at(
    x: Vec<f64>,
    own: f64,
    problem: &Problem,
    caps: Caps,
    sparing: Option<Sparing>,
) -> FitState {
    let cap = just_above(own).min(sparing.map_or(f64::INFINITY, |s| s.first_cap()));
    FitState { best: Some(x.clone()), ..FitState::at(x, problem, caps.clamp(cap)) }
}

impl Needed {
    /// The best of several candidates.
    fn of(all: &[Candidate], tolerance: f64) -> Self {
        let total = |count: fn(&Solution) -> usize| all.iter().map(|c| count(&c.solution)).sum();
        let best = all.iter().min_by(|a, b| a.solution.preferred(&b.solution, tolerance)).cloned();
        let reached = best.as_ref().filter(|best| best.solution.kl_nats <= tolerance);
        Self {
            outcome: reached.map_or(Outcome::Infeasible, |best| best.solution.outcome),
            iterations: total(|s| s.iterations),
            evaluations: total(|s| s.evaluations),
            best,
        }
    }

    /// The result if no factors can reach the tolerance.
    const NOTHING: Self =
        Self { outcome: Outcome::Infeasible, best: None, iterations: 0, evaluations: 0 };
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, Array3, Axis};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::solver::{Inputs, LARGEST_CAP, Measured};
    use crate::targets::{HeadKind, Layout, Target, Visibility};

    const N: usize = 48;
    const D: usize = 4;

    /// The attention of factors, sequence by sequence, as a target.
    fn attention(q: &Array2<f64>, k: &Array2<f64>, kind: HeadKind) -> Target {
        let part = |first: usize| {
            let rows = (0..N).map(|i| {
                let seen = kind.columns(i, N, Visibility::Causal);
                let z = |j: usize| q.row(first + i).dot(&k.row(first + j)) / (D as f64).sqrt();
                let e: Vec<f64> = seen.clone().map(|j| z(j).exp()).collect();
                let sum: f64 = e.iter().sum();
                seen.zip(e).map(|(j, e)| (j, e / sum)).collect()
            });
            Target::from_rows(rows.collect(), Visibility::Causal).unwrap()
        };
        Target::packed(&[part(0), part(N)]).unwrap()
    }

    fn factors(q: &Array2<f64>, k: &Array2<f64>) -> Factors {
        let one = |m: &Array2<f64>| -> Array3<f64> { m.clone().insert_axis(Axis(0)) };
        Factors::new(one(q), one(k), Array1::ones(1)).unwrap()
    }

    fn options() -> SearchOptions {
        let effort =
            SolverBudget { iterations: 2000, relative_decrease: 1e-5, ..SolverBudget::default() };
        SearchOptions {
            starts: 0,
            polished: 1,
            passes: 0,
            rough: effort,
            fine: effort,
            ..SearchOptions::default()
        }
    }

    /// A head with its attention as a target, its own factors, and the point that its inputs make of them.
    struct Head {
        problem: Problem,
        own: Factors,
        /// Largest logit and error of its own factors.
        actual: Measured,
        tied: SharedProjection,
        point: Vec<f64>,
    }

    impl Head {
        /// The inputs of two sequences, projected by two matrices. A larger `drift` shifts the logits of each row further.
        fn new(drift: f64, size: f64, kind: HeadKind) -> Self {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let mut normal = |rows: usize, columns: usize| -> Array2<f64> {
                Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut rng))
            };
            let mut x = normal(2 * N, 12);
            x.column_mut(11).fill(1.0);
            let [q, k] = [(); 2].map(|()| {
                let mut weights = normal(12, D) * 0.5;
                // This channel is equal in every query and key: it adds drift²/√d to every logit.
                weights.column_mut(0).fill(0.0);
                weights[[11, 0]] = drift;
                x.dot(&weights) * size
            });
            let layout: Layout = kind.to_string().parse().unwrap();
            let problem = Problem::new(attention(&q, &k, kind), layout, D).unwrap();
            let own = factors(&q, &k);
            let actual = Objective::new(&problem, Default::default()).measure_factors(&own);
            let inputs = Inputs::new(x.view()).unwrap();
            let tied = SharedProjection::new(inputs, D, None, None).unwrap();
            let point = tied.point(q.view(), k.view(), None);
            Self { problem, own, actual, tied, point }
        }

        fn tied(&self, tolerance: f64, options: SearchOptions) -> Needed {
            let starts = std::slice::from_ref(&self.point);
            needed_logit_tied(&self.problem, &self.tied, starts, tolerance, options, &()).unwrap()
        }
    }

    #[test]
    fn floor_free_tied_and_own_logits_ascend() {
        for kind in [HeadKind::Global, HeadKind::Local { window: 9 }] {
            let head = Head::new(2.0, 1.0, kind);
            let Head { problem, own, actual, .. } = &head;
            assert!(actual.kl_nats < 1e-12, "own factors give the attention: {}", actual.kl_nats);
            for tolerance in [0.1, 1e-3] {
                let floor = Floor::new(problem).max_abs_logit(tolerance).unwrap();
                let tied_best = head.tied(tolerance, options()).best.unwrap().solution;
                let given = [own.clone(), tied_best.factors.clone()];
                let free = needed_logit_from(problem, tolerance, &given, options(), &()).unwrap();
                let free_best = free.best.unwrap().solution;
                assert!(free_best.kl_nats <= tolerance && tied_best.kl_nats <= tolerance);
                let ascending =
                    [floor, free_best.max_abs_logit, tied_best.max_abs_logit, actual.max_abs_logit];
                assert!(ascending.is_sorted(), "{kind} at {tolerance}: {ascending:?}");
                // The attention does not need the shift of drift²/√d = 2.
                let spared = actual.max_abs_logit - tied_best.max_abs_logit;
                assert!(spared > 1.0, "{kind} at {tolerance}: {ascending:?}");
            }
        }
    }

    /// Own logits larger than any bound that a search without given factors tries: the result is never worse than the given
    /// factors.
    #[test]
    fn a_head_above_the_largest_cap_keeps_what_it_has() {
        let head = Head::new(2.0, 6.0, HeadKind::Global);
        let actual = head.actual.max_abs_logit;
        assert!(actual > LARGEST_CAP, "{actual}");
        // Its logits scaled down to LARGEST_CAP are far from the tolerance.
        let tolerance = 1e-9;
        let fine = SolverBudget { iterations: 20, ..SolverBudget::default() };
        let by_inputs = head.tied(tolerance, SearchOptions { fine, ..options() });
        let short = SearchOptions { rough: fine, fine, ..options() };
        let free = needed_logit_from(&head.problem, tolerance, &[head.own], short, &()).unwrap();
        for found in [by_inputs, free] {
            assert_ne!(found.outcome, Outcome::Infeasible);
            let reached = found.best.unwrap().solution;
            assert!(reached.kl_nats <= tolerance, "{}", reached.kl_nats);
            assert!(reached.max_abs_logit <= actual * (1.0 + 1e-8), "{}", reached.max_abs_logit);
        }
    }

    /// A search that stops early does not stop at a bound that leaves the error far below ε, unless it is enough.
    #[test]
    fn an_early_stop_reaches_the_error_asked_for() {
        for (drift, size, tolerance) in [(1.0, 0.7, 1e-6), (2.0, 1.0, 1e-6), (3.0, 0.7, 1e-5)] {
            let Head { problem, own, .. } = Head::new(drift, size, HeadKind::Global);
            let floor = Floor::new(&problem).max_abs_logit(tolerance).unwrap();
            // Stages are short, so a bound that comes down slowly takes many of them.
            let fine = SolverBudget { iterations: 4500, ..options().fine };
            let sparing = SearchOptions { sparing: Some(1.005 * floor), fine, ..options() };
            let found = needed_logit_from(&problem, tolerance, &[own], sparing, &()).unwrap();
            let best = found.best.unwrap().solution;
            let is_enough = best.max_abs_logit <= 1.005 * floor;
            let reached = best.kl_nats / tolerance;
            assert_eq!(found.outcome, Outcome::Converged);
            assert!(is_enough || (0.99..=1.0).contains(&reached), "{drift}, {size}: {reached}");
        }
    }

    #[test]
    fn what_is_tied_stays_tied() {
        let head = Head::new(1.0, 1.0, HeadKind::Global);
        let found = head.tied(0.01, options()).best.unwrap().solution.factors;
        // Least squares on the inputs leave no residual.
        let again = head.tied.at(&head.tied.nearest(&found).unwrap());
        let off = found.queries().iter().zip(again.queries()).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f64::max) < 1e-8);
    }

    #[test]
    fn a_row_sees_its_own_sequence_and_other_factors_or_none_are_refused() {
        let Head { problem, .. } = Head::new(0.0, 1.0, HeadKind::Global);
        for row in 0..2 * N {
            let first = row / N * N;
            assert_eq!(problem.seen(0, row), first..row + 1);
        }
        let wrong = factors(&Array2::ones((N, D)), &Array2::ones((N, D)));
        let found = needed_logit_from(&problem, 0.1, &[wrong], options(), &());
        assert!(matches!(found, Err(FitError::OtherFactors { .. })));
        let found = needed_logit_from(&problem, 0.1, &[], options(), &());
        assert!(matches!(found, Err(FitError::NoStarts)));
    }
}
