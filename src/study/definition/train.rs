//! A study of training runs: what they share, and what each sets.

use toml::{Table, Value};

use super::Top;
use crate::lm::TrainDefinition;

/// Training runs that share a definition but for what each sets.
#[derive(Clone, Debug)]
pub struct TrainStudy {
    /// Each run's name, its definition but for the seed, and its seeds.
    pub runs: Vec<Run>,
}

type Run = (String, TrainDefinition, Vec<u64>);

pub(super) fn read(top: &Top) -> Result<TrainStudy, String> {
    Ok(TrainStudy { runs: runs(top)? })
}

/// Each run's name, its definition but for the seed, and its seeds.
pub(super) fn runs(top: &Top) -> Result<Vec<Run>, String> {
    if top.run.is_empty() {
        return Err("a study of models needs at least one [[run]] with a name".to_owned());
    }
    let shared = TrainDefinition::from_table(&top.train).map_err(|e| e.to_string())?;
    let mut runs: Vec<Run> = Vec::new();
    for table in &top.run {
        let mut table = table.clone();
        let Some(Value::String(name)) = table.remove("name") else {
            return Err("a [[run]] needs a name".to_owned());
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("run {name:?}: use letters, digits, - and _ in its name"));
        }
        if runs.iter().any(|(other, ..)| *other == name) {
            return Err(format!("two runs are called {name:?}"));
        }
        let seeds = seeds(&mut table, shared.seed).map_err(|why| format!("run {name}: {why}"))?;
        let mut definition = shared.clone();
        definition.merge(&table).map_err(|e| format!("run {name}: {e}"))?;
        runs.push((name, definition, seeds));
    }
    Ok(runs)
}

fn seeds(table: &mut Table, default: u64) -> Result<Vec<u64>, String> {
    let values = match table.remove("seed") {
        None => return Ok(vec![default]),
        Some(Value::Array(values)) if !values.is_empty() => values,
        Some(value) => vec![value],
    };
    values
        .into_iter()
        .map(|v| v.clone().try_into().map_err(|_| format!("seed {v} is no whole number ≥ 0")))
        .collect()
}
