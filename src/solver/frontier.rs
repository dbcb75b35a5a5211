//! E*(L): the smallest kl_nats found within each of several logit bounds.

use super::error::FitError;
use super::observer::FitObserver;
use super::problem::{Problem, check_cap};
use super::search::{Search, SearchOptions};
use super::solution::{Candidate, FrontierPoint, NEWS, best_of};

/// Computes E*(L), the smallest kl_nats found with max_abs_logit ≤ L at the problem's rank, for each bound L of `caps`.
///
/// Points are in ascending order of L. kl_nats never increases along them: factors within a bound are also within every larger
/// bound and are kept there if no better ones are found. `watch` receives every iteration and improvement and may end the
/// search; the points are then the best so far. If the heads cannot attend to all of the target, no factors exist and `best` is
/// `None`.
///
/// ```
/// use rank_study::solver::{Floor, Problem, SearchOptions, frontier};
/// use rank_study::targets::{Family, Layout, Visibility};
///
/// let target = Family::DirichletBand { window: 4, alpha: 1.0 }.build(12, 0, Visibility::Causal)?;
/// let problem = Problem::new(target, Layout::global(), 2)?;
/// let options = SearchOptions { starts: 2, passes: 0, ..SearchOptions::default() };
/// for point in frontier(&problem, &[1.0, 4.0], options, &())? {
///     let solution = point.best.expect("a global head sees all of the target").solution;
///     assert!(solution.max_abs_logit <= point.cap);
///     assert!(solution.kl_nats >= Floor::new(&problem).kl_nats(point.cap));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// No bounds, `Cap`, `NoStarts`, `TooLarge`.
pub fn frontier(
    problem: &Problem,
    caps: &[f64],
    options: SearchOptions,
    watch: &dyn FitObserver,
) -> Result<Vec<FrontierPoint>, FitError> {
    let mut caps = caps.to_vec();
    caps.iter().try_for_each(|&cap| check_cap(cap))?;
    caps.sort_by(f64::total_cmp);
    caps.dedup();
    if caps.is_empty() {
        return Err(FitError::Other(
            "no logit bound given; give at least one, such as 8".to_owned(),
        ));
    }
    if options.starts == 0 {
        return Err(FitError::NoStarts);
    }
    let search = Search::new(problem, options, caps.len(), watch)?;
    if !problem.covers_target() {
        return Ok(caps.iter().map(|&cap| FrontierPoint { cap, best: None }).collect());
    }
    let rough = search.rough_paths(&caps)?;
    let mut points: Vec<FrontierPoint> = caps
        .iter()
        .zip(&rough)
        .map(|(&cap, found)| FrontierPoint { cap, best: best_of(found, 1).pop() })
        .collect();
    carry_upwards(&mut points);
    watch.improved(&points);
    let mut ladder = Ladder {
        search: &search,
        points,
        news: vec![0; caps.len()],
        taken: vec![[0; 2]; caps.len()],
    };
    // Downwards: from the best rough fits at each bound, and from the result at the next larger bound, scaled down.
    for place in (0..caps.len()).rev() {
        ladder.improve("down", place, best_of(&rough[place], options.polished))?;
    }
    // Upwards and downwards again, as long as neighbours improve each other: a minimum at one bound often leads out of a worse
    // one at the next.
    for pass in 0..options.passes {
        let before = ladder.news.clone();
        let name = format!("pass-{pass}");
        for step in 0..caps.len() {
            let place = if pass % 2 == 0 { step } else { caps.len() - 1 - step };
            ladder.improve(&name, place, Vec::new())?;
        }
        if ladder.news == before {
            break;
        }
    }
    let mut points = ladder.points;
    carry_upwards(&mut points);
    watch.improved(&points);
    Ok(points)
}

/// The logit bounds in ascending order, each with the best solution so far.
struct Ladder<'s, 'p> {
    search: &'s Search<'p>,
    points: Vec<FrontierPoint>,
    /// The number of significant improvements of each point.
    news: Vec<usize>,
    /// For the next smaller and the next larger bound: the value of `news` from which each point last started a fit.
    taken: Vec<[usize; 2]>,
}

impl Ladder<'_, '_> {
    /// Fits finely at one bound from `candidates` and from both neighbours, if those have improved since the last fit.
    fn improve(
        &mut self,
        pass: &str,
        place: usize,
        mut candidates: Vec<Candidate>,
    ) -> Result<(), FitError> {
        let sides = [place.checked_sub(1), Some(place + 1).filter(|&p| p < self.points.len())];
        for (side, neighbour) in sides.into_iter().enumerate() {
            let Some(neighbour) = neighbour.filter(|&p| self.news[p] > self.taken[place][side])
            else {
                continue;
            };
            self.taken[place][side] = self.news[neighbour];
            candidates.extend(self.points[neighbour].best.clone());
        }
        if self.search.has_ended() || candidates.is_empty() {
            return Ok(());
        }
        let point = &mut self.points[place];
        let found = self.search.polish(pass, &candidates, point.cap)?;
        let before = point.kl_nats();
        point.offer(found);
        if point.kl_nats() < (1.0 - NEWS) * before || self.news[place] == 0 {
            self.news[place] += 1;
        }
        self.search.watch.improved(&self.points);
        Ok(())
    }
}

fn carry_upwards(points: &mut [FrontierPoint]) {
    for place in 1..points.len() {
        let below = points[place - 1].best.clone();
        points[place].offer(below);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array3};

    use super::*;
    use crate::solver::factors::Factors;
    use crate::solver::solution::{Outcome, Solution};

    #[test]
    fn factors_within_a_bound_are_kept_at_larger_bounds_without_better_ones() {
        let solution = |kl_nats| Solution {
            factors: Factors::new(
                Array3::zeros((1, 2, 1)),
                Array3::zeros((1, 2, 1)),
                Array1::ones(1),
            )
            .unwrap(),
            kl_nats,
            max_abs_logit: 0.0,
            logit_spread: 0.0,
            outcome: Outcome::Converged,
            gradient_norm: 0.0,
            iterations: 0,
            evaluations: 0,
        };
        let errors = [None, Some(0.3), Some(0.5), None, Some(0.2), Some(0.4)];
        let candidate = |kl_nats| Candidate { start: 0, solution: solution(kl_nats) };
        let mut points = errors.map(|found| FrontierPoint { cap: 1.0, best: found.map(candidate) });
        carry_upwards(&mut points);
        assert_eq!(points.map(|point| point.kl_nats()), [f64::INFINITY, 0.3, 0.3, 0.3, 0.2, 0.2]);
    }
}
