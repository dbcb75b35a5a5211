//! The baseline of a training study.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use crate::experiment::{check_study_name, read_table};

/// The runs that a study's other runs are compared with; they are runs of another study on the same text, or of the
/// study itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The study.
    pub of: String,
    /// The names of its runs.
    pub runs: Vec<String>,
}

/// Reads the table `[baseline]`.
pub(super) fn baseline(table: &Table) -> Result<Baseline, String> {
    let baseline: Baseline = read_table(table, "baseline")?;
    check_study_name("baseline.of", &baseline.of)?;
    match baseline.runs.is_empty() {
        true => Err("baseline.runs is empty; name at least one run".to_owned()),
        false => Ok(baseline),
    }
}
