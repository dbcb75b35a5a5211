//! Predictions and baselines of a training study.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{check_study_name, read_table};
use crate::system::nearest::nearest;

/// A predicted exponent for a variant, fixed before the measurement, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedExponent {
    /// The variant.
    pub arm: String,
    /// The lower end of the predicted interval.
    pub low: f64,
    /// The expected value.
    pub exponent: f64,
    /// The upper end of the predicted interval.
    pub high: f64,
}

/// The runs that a study's other runs are compared with; they are runs of another study on the same text, or of the
/// study itself.
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

/// Reads the table `[predicted]` of a study with runs of `arms`: for each variant the lower end, the expected value and
/// the upper end.
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

/// Reads the table `[baseline]`.
pub(super) fn baseline(table: &Table) -> Result<Baseline, String> {
    let baseline: Baseline = read_table(table, "baseline")?;
    check_study_name("baseline.of", &baseline.of)?;
    match baseline.runs.is_empty() {
        true => Err("baseline.runs is empty; name at least one run".to_owned()),
        false => Ok(baseline),
    }
}
