//! Lower bounds on L*(ε): what no factors of the rank can do, found or not.
//!
//! A fit bounds L*(ε) from above by its factors; here it is bounded from below by proofs, each in a
//! file of its own. The two together are a bracket.

mod blocks;
mod exponential;
mod lift;
mod log_rank;
mod lower;
mod packing;

pub use lower::{BoundKind, LowerBound, LowerBounds, lower_bound};
