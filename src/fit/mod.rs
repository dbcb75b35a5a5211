//! What low rank can do: the best low-rank logits for a target, capped, and the floor beneath them.

mod any_rank;
mod bounds;
mod capped;
mod construct;
mod curvature;
mod evaluator;
mod factors;
mod floor;
mod frontier;
mod kernel;
mod lbfgs;
mod needed;
mod objective;
mod penalty;
mod problem;
mod search;
mod start;
mod tied;
mod watch;

pub use any_rank::{AnyRank, needed_logit_at_any_rank};
pub use bounds::{BoundKind, LowerBound, LowerBounds, lower_bound};
pub use capped::{Effort, Outcome, Solution, norm_product};
pub use construct::{constructions, fourier_features, moment_curve, random_codes};
pub use evaluator::{Evaluator, InitialHessian, Measured};
pub use factors::{Factors, FactorsError};
pub use floor::Floor;
pub use frontier::{FrontierPoint, frontier};
pub use needed::{LARGEST_CAP, Needed, needed_logit, needed_logit_from, needed_logit_tied};
pub use objective::Precision;
pub use penalty::{Multiplier, Multipliers};
pub use problem::{FitError, Problem, check_cap, check_tolerance};
pub use search::{Candidate, SearchOptions};
pub use tied::{Normalisation, Tied};
pub use watch::{FitName, FitProgress, FitState, Kept, Watch};
