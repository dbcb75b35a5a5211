//! A study of training runs: what they share, and what each sets.

use std::borrow::Cow;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{
    Both, Preset, RawDefinition, check_keys, check_names_differ, check_run_name, check_study_name,
    fields_of, or_list, read_each, read_table, take_text,
};
use crate::lm::TrainDefinition;

/// Training runs that share a definition but for what each sets.
#[derive(Clone, Debug)]
pub struct TrainStudy {
    /// The runs.
    pub runs: Vec<StudyRun>,
    /// The runs that they are compared with.
    pub baseline: Option<Baseline>,
    /// The definition's file, beside which other studies are defined.
    pub(super) path: PathBuf,
    /// The size at which those are taken.
    pub(super) preset: Preset,
}

/// One run of a study, at each of its seeds.
#[derive(Clone, Debug)]
pub struct StudyRun {
    /// Its name.
    pub name: String,
    /// Its definition but for the seed.
    pub definition: TrainDefinition,
    /// Its seeds.
    pub seeds: Vec<u64>,
}

/// The table `[train]`: the keys that all runs share.
pub(crate) struct TrainKeys;

/// A table `[[run]]`.
pub(crate) struct RunKeys;

/// The keys of a run beside those of its training definition.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read one by one; here for their names and schema")]
struct OwnKeys {
    /// Name of the run.
    name: String,
}

impl JsonSchema for TrainKeys {
    fn schema_name() -> Cow<'static, str> {
        "Train".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = TrainDefinition::json_schema(generator);
        if let Some(keys) = schema.get_mut("properties").and_then(|keys| keys.as_object_mut()) {
            keys["seed"] = or_list(&keys["seed"]);
        }
        schema
    }
}

impl JsonSchema for RunKeys {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Both::<OwnKeys, TrainDefinition>::json_schema(generator);
        let keys = schema.get_mut("properties").and_then(|keys| keys.as_object_mut());
        for (key, value) in keys.into_iter().flatten() {
            // What a run leaves out it has from `[train]`.
            value.as_object_mut().and_then(|value| value.remove("default"));
            if !fields_of::<OwnKeys>().contains(&key.as_str()) {
                *value = or_list(value);
            }
        }
        schema
    }
}

/// The runs that the tables `[[run]]` make of what `[train]` says of all.
///
/// # Errors
/// A sentence that names the run and the key.
pub(crate) fn runs(raw: &RawDefinition) -> Result<Vec<StudyRun>, String> {
    let run = raw.tables("run")?;
    if run.is_empty() {
        return Err("a study of models needs at least one [[run]] with a name".to_owned());
    }
    let mut train = raw.table_or_empty("train")?;
    let shared_seeds = match train.get("seed") {
        Some(Value::Array(_)) => {
            Some(seeds(&mut train, &[]).map_err(|why| format!("train: {why}"))?)
        }
        _ => None,
    };
    let shared = TrainDefinition::from_table(&train).map_err(|e| format!("train: {e}"))?;
    let shared_seeds = shared_seeds.unwrap_or_else(|| vec![shared.seed]);
    let mut valid = fields_of::<TrainDefinition>().to_vec();
    valid.extend(fields_of::<OwnKeys>());
    let mut there: Vec<String> = Vec::new();
    let runs = read_each(&run, "run", |table| {
        check_keys(table, &valid, "")?;
        let mut table = table.clone();
        let name = take_text(&mut table, "name")?.ok_or("a [[run]] needs a name")?;
        let grid = grid(&name, table, &shared).into_iter();
        grid.map(|(name, mut table)| {
            check_run_name(&name)?;
            check_names_differ("run", &name, &there)?;
            there.push(name.clone());
            let of_run = |why: String| format!("run {name}: {why}");
            let seeds = seeds(&mut table, &shared_seeds).map_err(of_run)?;
            let mut definition = shared.clone();
            definition.merge(&table).map_err(|e| of_run(e.to_string()))?;
            Ok(StudyRun { name, definition, seeds })
        })
        .collect::<Result<Vec<_>, String>>()
    })?;
    Ok(runs.into_iter().flatten().collect())
}

/// The runs of a `[[run]]` in which keys that take one value have a list: one run per combination, the last key varying
/// fastest. Each is called `NAME-VALUE`, with a value per such key.
fn grid(name: &str, table: Table, shared: &TrainDefinition) -> Vec<(String, Table)> {
    let is_own = |key: &str| key == "seed" || fields_of::<OwnKeys>().contains(&key);
    let is_grid = |key: &str, value: &Value| {
        let alone = Table::from_iter([(key.to_owned(), value.clone())]);
        let is_flat = value.as_array().is_some_and(|all| !all.iter().any(Value::is_array));
        is_flat && !is_own(key) && shared.clone().merge(&alone).is_err()
    };
    let lists: Vec<(String, Vec<Value>)> = table
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_array()?.clone())))
        .filter(|(key, values)| !values.is_empty() && is_grid(key, &Value::Array(values.clone())))
        .collect();
    let mut runs = vec![(name.to_owned(), table)];
    for (key, values) in lists {
        let with = |(name, table): &(String, Table), value: &Value| {
            let mut table = table.clone();
            table.insert(key.clone(), value.clone());
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (format!("{name}-{value}"), table)
        };
        runs =
            runs.iter().flat_map(|run| values.iter().map(move |value| with(run, value))).collect();
    }
    runs
}

/// The seeds of a run, which are those of all where it has none of its own.
fn seeds(table: &mut Table, shared: &[u64]) -> Result<Vec<u64>, String> {
    let values = match table.remove("seed") {
        None => return Ok(shared.to_vec()),
        Some(Value::Array(values)) if !values.is_empty() => values,
        Some(value) => vec![value],
    };
    let mut seeds = Vec::new();
    for value in values {
        let seed: u64 = (value.clone().try_into())
            .map_err(|_| format!("seed must be a whole number of at least 0 ({value} found)"))?;
        if seeds.contains(&seed) {
            return Err(format!("seed {seed} is named twice; name each seed once"));
        }
        seeds.push(seed);
    }
    Ok(seeds)
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

/// Reads the table `[baseline]`.
pub(super) fn baseline(table: &Table) -> Result<Baseline, String> {
    let baseline: Baseline = read_table(table, "baseline")?;
    check_study_name("baseline.of", &baseline.of)?;
    match baseline.runs.is_empty() {
        true => Err("baseline.runs is empty; name at least one run".to_owned()),
        false => Ok(baseline),
    }
}
