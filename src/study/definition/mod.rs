//! A study as its definition asks for it: a TOML file, checked key by key.

mod against;
mod expected;
mod study_definition;
#[cfg(test)]
mod tests;
mod view;

pub use against::{Baseline, PredictedExponent};
pub use expected::{Bound, Expected, Selection, Statistic};
pub use study_definition::StudyDefinition;
pub use view::View;
