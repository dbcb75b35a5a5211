//! The tables `[[target]]`, and the grid's lengths and seeds.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use super::keys;
use super::names::{check_names_differ, check_target_name};
use super::schema::Both;
use crate::targets::{Family, Parameters, UnknownName, Visibility};

/// One target of a study.
#[derive(Clone, Debug)]
pub struct StudyTarget {
    /// The first part of its cells' keys: its name, or the family's.
    pub name: String,
    /// The family, with its parameters.
    pub family: Family,
    /// The pairs that may have weight.
    pub visibility: Visibility,
}

/// The keys of a `[[target]]`.
pub(crate) type TargetKeys = Both<OwnKeys, Parameters>;

/// The keys of a target beside its family's parameters.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "read one by one; here for their names and schema")]
pub(crate) struct OwnKeys {
    /// Name of the target in rows; default the family.
    name: Option<String>,
    /// Family of the attention matrix.
    #[schemars(extend("enum" = Family::NAMES))]
    family: String,
    /// Mask: `causal` or `bidirectional`; default that of the grid.
    visibility: Option<Visibility>,
}

/// The targets of a study, whose pairs are those of the grid's `visibility` unless they say which.
pub(crate) fn targets(
    tables: &[Table],
    visibility: Option<&str>,
) -> Result<Vec<StudyTarget>, String> {
    if tables.is_empty() {
        return Err("this study needs at least one [[target]] with a family".to_owned());
    }
    let parse = |name: &str| name.parse().map_err(|e: UnknownName| e.to_string());
    let of_grid = visibility.map_or(Ok(Visibility::Causal), parse);
    let of_grid = of_grid.map_err(|why| format!("grid.visibility: {why}"))?;
    let mut there: Vec<String> = Vec::new();
    keys::read_each(tables, "target", |table| {
        let target = target(table, of_grid)?;
        check_target_name(&target.name)?;
        check_names_differ("target", &target.name, &there)
            .map_err(|why| format!("{why}; give one of them a name = \"…\""))?;
        there.push(target.name.clone());
        Ok(target)
    })
}

fn target(table: &Table, of_grid: Visibility) -> Result<StudyTarget, String> {
    let valid = [keys::fields_of::<OwnKeys>(), keys::fields_of::<Parameters>()].concat();
    keys::check_keys(table, &valid, "target")?;
    let mut table = table.clone();
    let mut take = |key| keys::take_text(&mut table, key).map_err(|why| format!("target.{why}"));
    let name = take("name")?;
    let family = take("family")?.ok_or("a [[target]] needs a family")?;
    let visibility = match take("visibility")? {
        None => of_grid,
        Some(name) => name.parse().map_err(|e: UnknownName| format!("target.visibility: {e}"))?,
    };
    let parameters: Parameters = Value::Table(table)
        .try_into()
        .map_err(|error| format!("target {family}: {}", keys::wrong_value(&error, "target")))?;
    let built = Family::from_parameters(&family, &parameters).map_err(|e| e.to_string())?;
    Ok(StudyTarget { name: name.unwrap_or(family), family: built, visibility })
}

/// The sequence lengths of a grid.
pub(crate) fn lengths(n: Vec<usize>) -> Result<Vec<usize>, String> {
    if n.is_empty() || n.contains(&0) {
        return Err("grid.n must be at least 1".to_owned());
    }
    Ok(n)
}

/// The seeds of a grid, one where it has none.
pub(crate) fn seeds(seed: Option<Vec<u64>>) -> Result<Vec<u64>, String> {
    match seed {
        None => Ok(vec![0]),
        Some(seeds) if seeds.is_empty() => {
            Err("grid.seed is empty; name at least one seed".to_owned())
        }
        Some(seeds) => Ok(seeds),
    }
}
