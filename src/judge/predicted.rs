//! What a study's definition predicts of its rows, written before they were measured.

use std::path::{Path, PathBuf};

use toml::Value;

use crate::run::Manifest;
use crate::study::StudyError;
use crate::study::on_the_same_text;

/// An exponent predicted for an arm, and the interval that it was said to lie in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PredictedExponent {
    pub arm: String,
    pub low: f64,
    pub exponent: f64,
    pub high: f64,
}

/// The table `[predicted.exponent]` of the definition that the rows in `folder` were measured by: for each arm
/// [low, exponent, high]. Empty where it predicts none.
///
/// # Errors
/// A manifest that cannot be read.
pub(crate) fn exponents(folder: &Path) -> Result<Vec<PredictedExponent>, StudyError> {
    let definition = definition(folder)?;
    let table = definition.get("predicted").and_then(|predicted| predicted.get("exponent"));
    let Some(table) = table.and_then(Value::as_table) else { return Ok(Vec::new()) };
    let one = |(arm, numbers): (&String, &Value)| {
        let numbers: Vec<f64> = numbers.as_array()?.iter().filter_map(Value::as_float).collect();
        let &[low, exponent, high] = numbers.as_slice() else { return None };
        Some(PredictedExponent { arm: arm.clone(), low, exponent, high })
    };
    Ok(table.iter().filter_map(one).collect())
}

/// Runs that others are held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Baseline {
    /// The folder of their study, on the same text; none where it has no rows.
    pub folder: Option<PathBuf>,
    /// Their names.
    pub runs: Vec<String>,
}

/// What the runs in `folder` are held against: the table `[baseline]` of their definition. Empty where there is none.
///
/// # Errors
/// A manifest that cannot be read.
pub(crate) fn baseline(folder: &Path) -> Result<Baseline, StudyError> {
    let definition = definition(folder)?;
    let Some(table) = definition.get("baseline") else { return Ok(Baseline::default()) };
    let beside = || {
        let of = table.get("of")?.as_str()?;
        let own = definition.get("study")?.as_str()?;
        let beside = on_the_same_text(folder, own, of)?;
        beside.join("rows.csv").is_file().then_some(beside)
    };
    let runs = table.get("runs").and_then(Value::as_array).into_iter().flatten();
    let runs = runs.filter_map(|run| run.as_str().map(str::to_owned)).collect();
    Ok(Baseline { folder: beside(), runs })
}

/// The definition in a study's manifest; empty where there is none.
fn definition(folder: &Path) -> Result<toml::Table, StudyError> {
    let path = folder.join("manifest.toml");
    if !path.is_file() {
        return Ok(toml::Table::new());
    }
    let manifest = Manifest::read(&path)?;
    Ok(manifest.text("definition").parse().unwrap_or_default())
}
