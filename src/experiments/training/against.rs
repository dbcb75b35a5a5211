//! Predictions and baselines of a training study.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{check_study_name, read_table};
use crate::system::nearest::nearest;

/// An exponent predicted of an arm before it was measured, and the interval that it was said to lie in.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedExponent {
    /// The arm.
    pub arm: String,
    /// The least that it was said to be.
    pub low: f64,
    /// What it was said to be.
    pub exponent: f64,
    /// The most that it was said to be.
    pub high: f64,
}

/// Runs of another study on the same text, or of the study itself, that its others are held against.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The study.
    pub of: String,
    /// The names of its runs.
    pub runs: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Predicted {
    /// Per variant `[low, expected, high]`: the exponent of n/d in peak max |logit|.
    #[schemars(with = "std::collections::BTreeMap<String, [f64; 3]>")]
    exponent: Table,
}

/// The table `[predicted]` of a study with runs of `arms`: per arm a list of the least, the expected and the greatest.
pub(super) fn predicted(table: &Table, arms: &[&str]) -> Result<Vec<PredictedExponent>, String> {
    let Predicted { exponent } = read_table(table, "predicted")?;
    let one = |(arm, value): (&String, &Value)| {
        let key = format!("predicted.exponent.{arm}");
        if !arms.contains(&arm.as_str()) {
            let near = nearest(arm, arms);
            return Err(format!(
                "{key}: the study has no run of this variant; did you mean {near:?}?"
            ));
        }
        match value.clone().try_into::<[f64; 3]>() {
            Ok([low, exponent, high]) if low <= exponent && exponent <= high => {
                Ok(PredictedExponent { arm: arm.clone(), low, exponent, high })
            }
            _ => Err(format!(
                "{key} is {value}; it must be [low, exponent, high], three ascending numbers"
            )),
        }
    };
    exponent.iter().map(one).collect()
}

/// The table `[baseline]`.
pub(super) fn baseline(table: &Table) -> Result<Baseline, String> {
    let baseline: Baseline = read_table(table, "baseline")?;
    check_study_name("baseline.of", &baseline.of)?;
    match baseline.runs.is_empty() {
        true => Err("baseline.runs is empty; name at least one run".to_owned()),
        false => Ok(baseline),
    }
}
