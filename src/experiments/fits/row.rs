//! The rows of fits: what a frontier or a search for L*(ε) found.

use crate::experiments::target_columns::TargetColumns;
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row, record, to_microseconds};
use crate::solver::{
    BoundKind, Candidate, FrontierPoint, LARGEST_CAP, LowerBound, LowerBounds, Needed, Outcome,
    Problem, Solution, norm_product,
};
use crate::targets::{Layout, Visibility};

/// How far beyond an error that was asked for a fit may end, as a share: a solver stops a hair to either side.
const SLACK: f64 = 0.01;

record! {
    /// What was asked of a fit.
    pub struct FitAsked {
        /// the target in words
        target: String,
        /// the sequence length
        #[range = Counted]
        n: usize,
        /// d, the rank of each head's QKᵀ
        #[range = Counted]
        rank: usize,
        /// the heads
        layout: Layout,
        /// the seed of target and starts; in a `frontier.csv`, the start that won
        seed: Option<u64>,
    }
}

record! {
    /// The terms on which it was asked.
    pub struct FitTerms {
        /// ε, the error within which the least max |logit| was searched
        #[unit = "nats"]
        #[range = Positive]
        tolerance: Option<f64>,
        /// the mask: causal or bidirectional
        visibility: Visibility,
    }
}

record! {
    /// What tells one cell of a study of fits from others.
    pub struct FitKey {
        /// the target
        of: TargetColumns,
        /// what was asked
        asked: FitAsked,
        /// on which terms
        terms: FitTerms,
    }
}

impl FitKey {
    /// The target as people read it: `dirichlet-band, w = 32`.
    pub fn label(&self) -> String {
        self.of.label(self.terms.visibility)
    }
}

record! {
    /// The logits of the factors found.
    pub struct Reached {
        /// max |z| over pairs that the mask allows
        #[unit = "nats"]
        max_abs_logit: f64,
        /// logit range: max over rows of max − min of allowed logits
        #[unit = "nats"]
        logit_spread: f64,
        /// max ‖q‖·‖k‖/√d over all pairs, at least max_abs_logit
        norm_product: f64,
    }
}

impl From<&Solution> for Reached {
    fn from(solution: &Solution) -> Self {
        Self {
            max_abs_logit: solution.max_abs_logit,
            logit_spread: solution.logit_spread,
            norm_product: norm_product(&solution.factors),
        }
    }
}

record! {
    /// What every factors of this rank have at least.
    pub struct Proven {
        /// a proven lower bound on L*
        #[unit = "nats"]
        lower_bound_max_abs_logit: f64,
        /// the argument that proves it
        lower_bound_by: BoundKind,
    }
}

impl From<LowerBound> for Proven {
    fn from(bound: LowerBound) -> Self {
        Self { lower_bound_max_abs_logit: bound.max_abs_logit, lower_bound_by: bound.by }
    }
}

record! {
    /// A point of E*(L), or L*(ε).
    #[derive(Default)]
    pub struct FitMeasurement {
        /// L, the bound on max |logit|; with a tolerance, the least that reached it
        #[unit = "nats"]
        cap: Option<f64>,
        /// the error: mean over rows of KL(A‖P); the least found where the tolerance was not reached
        #[unit = "nats"]
        kl_nats: Option<f64>,
        /// with which logits, where the tolerance, if any, was reached
        reached: Option<Reached>,
        /// E⁰(cap), the least error without a rank limit
        #[unit = "nats"]
        floor_kl_nats: Option<f64>,
        /// L⁰, the full-rank minimum of max |logit|
        #[unit = "nats"]
        floor_max_abs_logit: Option<f64>,
        /// rank penalty: max_abs_logit / floor_max_abs_logit
        inflation: Option<f64>,
        /// how the fit ended
        outcome: Outcome,
        /// L-BFGS iterations
        iterations: Option<usize>,
        /// evaluations of objective and gradient
        evaluations: Option<usize>,
        /// the row's share of the search time
        #[unit = "s"]
        wall_time_s: f64,
        /// the folder of the queries and keys, if they were kept
        factors: Option<String>,
        /// the largest gradient entry at the end
        gradient_norm: Option<f64>,
        /// what cannot be gone under
        proven: Option<Proven>,
        /// where the tolerance was not reached: max |logit| at the least error found
        #[unit = "nats"]
        unreached_max_abs_logit: Option<f64>,
    }
}

impl FitMeasurement {
    /// A point of E*(L), with the lower bound on L*(ε) at ε = its kl_nats. `wall_time_s` is its share of the search.
    pub fn at_cap(point: &FrontierPoint, bounds: &mut LowerBounds<'_>, wall_time_s: f64) -> Self {
        let floor_kl_nats = bounds.floor_kl_nats(point.cap);
        let found = Self {
            cap: Some(point.cap),
            floor_kl_nats: floor_kl_nats.is_finite().then_some(floor_kl_nats),
            ..Self::nothing(Outcome::Infeasible, wall_time_s)
        };
        let Some(Candidate { solution, .. }) = &point.best else { return found };
        let bound = bounds.at(solution.kl_nats);
        Self {
            inflation: inflation(solution.max_abs_logit, bound),
            floor_max_abs_logit: bound.map(|bound| bound.floor),
            proven: bound.map(Proven::from),
            outcome: solution.outcome,
            iterations: Some(solution.iterations),
            evaluations: Some(solution.evaluations),
            ..found.with(solution)
        }
    }

    /// L*(ε). `floor_max_abs_logit` is L⁰(ε), and `inflation` L*(ε)/L⁰(ε). Where ε was not reached there is neither cap, logit
    /// nor inflation; `kl_nats` is then the least error found, `unreached_max_abs_logit` its max |logit|, and `floor_kl_nats`
    /// E⁰ of that. The lower bound is on L*(ε), reached or not.
    pub fn needed(problem: &Problem, tolerance: f64, found: &Needed, wall_time_s: f64) -> Self {
        let mut bounds = LowerBounds::new(problem);
        let bound = bounds.at(tolerance);
        let mut row = Self {
            floor_max_abs_logit: bound.map(|bound| bound.floor),
            proven: bound.map(Proven::from),
            iterations: Some(found.iterations),
            evaluations: Some(found.evaluations),
            ..Self::nothing(found.outcome, wall_time_s)
        };
        if let Some(Candidate { solution, .. }) = &found.best {
            let logit = solution.max_abs_logit;
            row = row.with(solution);
            row.floor_kl_nats = Some(bounds.floor_kl_nats(logit));
            if found.outcome == Outcome::Infeasible {
                row.reached = None;
                row.unreached_max_abs_logit = Some(logit);
            } else {
                row.cap = Some(logit);
                row.inflation = inflation(logit, bound);
            }
        }
        row
    }

    fn nothing(outcome: Outcome, wall_time_s: f64) -> Self {
        Self { outcome, wall_time_s: to_microseconds(wall_time_s), ..Self::default() }
    }

    fn with(self, solution: &Solution) -> Self {
        let norm = solution.gradient_norm;
        Self {
            kl_nats: Some(solution.kl_nats),
            reached: Some(solution.into()),
            gradient_norm: norm.is_finite().then_some(norm),
            ..self
        }
    }

    /// max_abs_logit of what was found.
    pub fn max_abs_logit(&self) -> Option<f64> {
        self.reached.as_ref().map(|reached| reached.max_abs_logit)
    }

    /// Whether the fit ended by itself within `tolerance`.
    pub fn has_reached(&self, tolerance: f64) -> bool {
        matches!(self.outcome, Outcome::Converged | Outcome::StepLimit)
            && self.kl_nats.is_some_and(|kl| kl <= tolerance * (1.0 + SLACK))
    }
}

fn inflation(reached: f64, bound: Option<LowerBound>) -> Option<f64> {
    // A floor of 0 is met by no logits at all: there is nothing to divide by.
    let floor = bound.map(|bound| bound.floor).filter(|&floor| floor > 0.0)?;
    Some(reached / floor)
}

record! {
    /// A row of the `frontier.csv` that one fit writes.
    pub struct FrontierRow {
        /// what was asked
        asked: FitAsked,
        /// what was found
        found: FitMeasurement,
        /// on which terms
        terms: FitTerms,
    }
}

impl FrontierRow {
    /// The row of a fit of `problem`, whose target is called `target`. `best` has the factors that were found, if any.
    pub fn of(
        problem: &Problem,
        target: &str,
        tolerance: Option<f64>,
        found: FitMeasurement,
        best: Option<&Candidate>,
    ) -> Self {
        let asked = FitAsked {
            target: target.to_owned(),
            n: problem.n(),
            rank: problem.rank(),
            layout: problem.layout().clone(),
            seed: best.map(|best| best.start as u64),
        };
        let terms = FitTerms { tolerance, visibility: problem.target().visibility() };
        Self { asked, found, terms }
    }
}

impl Measurement for FitMeasurement {
    type Key = FitKey;

    const NAME: &'static str = "fit";
    const VERSION: u32 = 4;

    fn outcome(&self) -> String {
        self.outcome.name().to_owned()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (terms, found) = (&row.of.terms, &row.found);
        let feasible = found.outcome != Outcome::Infeasible;
        let searched = terms.tolerance.is_some();
        check.at_least("wall_time_s", found.wall_time_s, 0.0);
        check.there("iterations", found.iterations.as_ref(), feasible || searched);
        check.there("evaluations", found.evaluations.as_ref(), feasible || searched);
        let counted = |count: Option<usize>| count.map(|count| count as f64);
        if feasible || searched {
            // A search of one direction evaluates at least once.
            let (iterations, evaluations) = (counted(found.iterations), counted(found.evaluations));
            check.at_most("evaluations are fewer than iterations", iterations, evaluations, 0.0);
        }
        if let Some(norm) = found.gradient_norm {
            check.at_least("gradient_norm", norm, 0.0);
        }
        if let Some(kl_nats) = found.kl_nats {
            // A target that is met exactly leaves what rounding does.
            check.at_least("kl_nats", kl_nats, -1e-9);
            let floor = found.floor_kl_nats;
            check.at_most("kl_nats is under its floor", floor, kl_nats, ROUNDING);
        }
        let unreached = found.unreached_max_abs_logit;
        let has_nearest = !feasible && searched && found.kl_nats.is_some();
        check.there("unreached_max_abs_logit", unreached.as_ref(), has_nearest);
        if let Some(logit) = unreached {
            check.within("unreached_max_abs_logit", logit, 0.0, LARGEST_CAP);
        }
        check.there("kl_nats", found.kl_nats.as_ref(), feasible || has_nearest);
        check.holds(feasible == found.reached.is_some(), || {
            "a fit has max_abs_logit if it is infeasible, or none if it is not".into()
        });
        let floor = found.floor_max_abs_logit;
        let proven = found.proven.as_ref().map(|proven| proven.lower_bound_max_abs_logit);
        // The bounds are of the tolerance, reached or not.
        if found.kl_nats.is_some() {
            check.at_most("the proven bound is under the floor", floor, proven, ROUNDING);
            if found.proven.as_ref().is_some_and(|proven| proven.lower_bound_by == BoundKind::Floor)
            {
                check.equal("the bound by the floor is not the floor", proven, floor, 0.0);
            }
        }
        let Some(reached) = &found.reached else {
            check.there("cap", found.cap.as_ref(), !searched);
            check.there("inflation", found.inflation.as_ref(), false);
            return;
        };
        let logit = reached.max_abs_logit;
        check.at_most("max_abs_logit exceeds its cap", logit, found.cap, 1e-12);
        if searched {
            check.equal("cap is not the least that reached", logit, found.cap, 0.0);
        }
        let product = reached.norm_product;
        check.at_most("max_abs_logit exceeds the norms' product", logit, product, ROUNDING);
        let spread = reached.logit_spread;
        check.at_least("logit_spread", spread, 0.0);
        check.at_most("logit_spread exceeds twice max_abs_logit", spread, 2.0 * logit, ROUNDING);
        let has_floor = floor.is_some_and(|floor| floor > 0.0);
        check.there("inflation", found.inflation.as_ref(), has_floor);
        if let Some(tolerance) = terms.tolerance {
            check.at_most("kl_nats exceeds the tolerance", found.kl_nats, tolerance, SLACK);
        }
        check.at_most("max_abs_logit is under its proven bound", proven, logit, SLACK);
        check.at_most("max_abs_logit is under its floor", floor, logit, SLACK);
        if let Some(inflation) = found.inflation {
            let ratio = floor.map(|floor| logit / floor);
            check.equal("inflation is not the ratio", inflation, ratio, ROUNDING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_reaches_an_error_if_it_ended_by_itself_and_within_it() {
        for (outcome, kl_nats, expected) in [
            (Outcome::Converged, Some(0.01), true),
            (Outcome::StepLimit, Some(0.009), true),
            (Outcome::Converged, Some(0.011), false),
            (Outcome::Stopped, Some(0.009), false),
            (Outcome::Infeasible, None, false),
        ] {
            let found = FitMeasurement { outcome, kl_nats, ..FitMeasurement::default() };
            assert_eq!(found.has_reached(0.01), expected, "{outcome:?} at {kl_nats:?}");
        }
    }
}
