//! Fits of low-rank logits to a target within a logit bound, and the exact minimum at any rank.
//!
//! A [`Problem`] holds the target, the heads and the rank.
//!
//! | question | found at rank d | proven lower bound at rank d | at any rank, exact for one head |
//! |---|---|---|---|
//! | the smallest error within a logit bound | [`frontier`] | | [`Floor::kl_nats`] |
//! | the smallest max \|logit\| for an error ε | [`needed_logit`] | [`lower_bound`] | [`Floor::max_abs_logit`] |
//! | the same, for given inputs | [`needed_logit_tied`] | | |
//!
//! Solutions carry their [`Factors`], so that [`Measured::of`] can check them. [`SearchOptions`] set the effort of a search. A
//! [`FitObserver`] follows a search, and can stop it so that it can be resumed. [`constructions`] are factors known in closed
//! form. [`Evaluator`] is the objective.

mod block_inverses;
mod bounds;
mod clamped_row;
mod construct;
mod curvature;
mod error;
mod evaluator;
mod factors;
mod feasible;
mod floor;
mod floor_mixture;
mod frontier;
mod kernel;
mod lagrangian;
mod lbfgs;
mod logit_bound_search;
mod needed;
mod objective;
mod observer;
mod parametrisation;
mod penalty;
mod problem;
mod search;
mod side_curvature;
mod solution;
mod start;

pub use bounds::{BoundKind, LowerBound, LowerBounds, lower_bound};
pub use construct::{constructions, fourier_features, moment_curve, random_codes};
pub use error::FitError;
pub use evaluator::Evaluator;
pub use factors::{Factors, norm_product, read_factors, write_factors};
pub use floor::Floor;
pub use frontier::frontier;
pub use kernel::Measured;
pub use lagrangian::SolverBudget;
pub use needed::{Needed, needed_logit, needed_logit_from, needed_logit_tied};
pub use observer::{FitObserver, FitProgress, FitState, Kept};
pub use parametrisation::{Inputs, Normalisation, SharedProjection};
pub use penalty::{Multiplier, Multipliers, Penalty};
pub use problem::{LARGEST_CAP, Precision, Problem, check_cap, check_tolerance};
pub use search::SearchOptions;
pub use solution::{Candidate, FrontierPoint, Outcome, Solution};
