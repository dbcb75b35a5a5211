//! The page of `diagnose`: a grid of a model's heads, a view of each head, and a list of suspicious heads.

mod look;
mod looking;
mod model;
mod page;
mod quantity;
#[cfg(test)]
mod tests;
mod worry;

pub use look::MOST_TOKENS;
pub use model::{DiagnosedHead, DiagnosedModel};
pub use page::{Diagnosis, READING};
pub(super) use worry::sentence;
