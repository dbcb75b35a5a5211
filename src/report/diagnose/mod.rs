//! A model's heads on one page: a grid of them, what each looks like, and those most worth worrying about.

mod data;
mod detail;
#[cfg(test)]
mod fixture;
mod look;
mod looking;
mod model;
mod page;
mod quantity;
mod worry;

pub use look::MOST_TOKENS;
pub use model::{DiagnosedHead, DiagnosedModel};
pub use page::{Diagnosis, READING};
