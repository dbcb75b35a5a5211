//! Proven lower bounds on L*(ε): the max |logit| that all factors of the rank need.
//!
//! A fit bounds L*(ε) from above by its factors; the proofs here, one per file, bound it from below. Together they bracket
//! L*(ε).

mod blocks;
mod exponential;
mod lift;
mod lower;

pub use lower::{BoundKind, LowerBound, LowerBounds, lower_bound};
