//! E*(L), the least kl_nats within each of some caps.

use super::problem::{FitError, Problem, check_cap};
use super::search::{Candidate, Search, SearchOptions, best_of};
use super::watch::Watch;

/// The best factors found at one cap.
#[derive(Clone, Debug)]
pub struct FrontierPoint {
    /// The bound on |z|.
    pub cap: f64,
    /// The best factors within it; none where the heads do not see all of the target.
    pub best: Option<Candidate>,
}

/// E*(L): the least kl_nats found with max_abs_logit ≤ L at the problem's rank, for each cap.
///
/// Returned in ascending order of the caps. kl_nats never rises along them: factors within a cap are
/// within every larger one, and are kept where nothing better was found. `watch` is
/// told of every iteration and improvement, and may end the search; the points are then the best so
/// far.
/// Where the heads do not see all of the target there are no factors, and `best` is none.
///
/// # Errors
/// `NoCaps`, `Cap`, `NoStarts`.
pub fn frontier(
    problem: &Problem,
    caps: &[f64],
    options: SearchOptions,
    watch: &dyn Watch,
) -> Result<Vec<FrontierPoint>, FitError> {
    let mut caps = caps.to_vec();
    caps.iter().try_for_each(|&cap| check_cap(cap))?;
    caps.sort_by(f64::total_cmp);
    caps.dedup();
    if caps.is_empty() {
        return Err(FitError::NoCaps);
    }
    let search = Search::new(problem, options, watch)?;
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
    // Down: the best of each cap, and what the next larger cap found, scaled into this one.
    for place in (0..caps.len()).rev() {
        let mut candidates = best_of(&rough[place], options.polished);
        candidates.extend(points.get(place + 1).and_then(|above| above.best.clone()));
        improve(&search, "down", &mut points[place], &candidates)?;
        watch.improved(&points);
    }
    // Up: from what the next smaller cap found by then.
    for place in 1..caps.len() {
        let below: Vec<Candidate> = points[place - 1].best.clone().into_iter().collect();
        improve(&search, "up", &mut points[place], &below)?;
        watch.improved(&points);
    }
    carry_upwards(&mut points);
    watch.improved(&points);
    Ok(points)
}

fn improve(
    search: &Search,
    pass: &str,
    point: &mut FrontierPoint,
    candidates: &[Candidate],
) -> Result<(), FitError> {
    if search.has_ended() {
        return Ok(());
    }
    let found = search.polish(pass, candidates, point.cap)?;
    point.best = match (point.best.take(), found) {
        (Some(old), Some(new)) => Some(old.better(new)),
        (old, new) => new.or(old),
    };
    Ok(())
}

fn carry_upwards(points: &mut [FrontierPoint]) {
    for place in 1..points.len() {
        let below = points[place - 1].best.clone();
        let here = &mut points[place].best;
        *here = match (here.take(), below) {
            (Some(here), Some(below)) => Some(here.better(below)),
            (here, below) => here.or(below),
        };
    }
}
