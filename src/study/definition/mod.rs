//! Study definitions: TOML files, checked key by key.

mod expected;
mod schema;
mod study_definition;
#[cfg(test)]
mod tests;

pub use expected::{Expected, Statistic, selects};
pub use schema::{EXPECTED, MODELS, OWN_KEYS, schema};
pub use study_definition::StudyDefinition;
