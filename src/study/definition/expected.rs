//! Bounds that a study's rows are held to.

use serde::Deserialize;
use toml::{Table, Value};

use super::keys::{check_keys, one_line};
use crate::pattern::nearest::nearest;

/// One bound: a statistic of one column over some rows, between two numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What it says, in words.
    pub what: String,
    /// The rows.
    pub rows: Selection,
    /// Rows whose same statistic it is divided by, where a ratio is meant.
    pub over: Option<Selection>,
    /// The column.
    pub column: String,
    /// What is taken of the rows.
    pub of: Statistic,
    /// What it may be.
    pub bound: Bound,
}

/// The rows whose every named column has one of the values given; all rows where none is named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(pub Vec<(String, Vec<String>)>);

/// What is taken of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Every value by itself. A row without a value counts as infinite: no logit reached the error.
    Every,
    /// The median; a row without a value counts as infinite.
    Median,
    /// How many rows have a value.
    Count,
}

impl Statistic {
    const NAMES: [(&'static str, Self); 3] =
        [("every", Self::Every), ("median", Self::Median), ("count", Self::Count)];
}

/// The least and the greatest value, where there is such a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The least value allowed.
    pub least: Option<f64>,
    /// The greatest value allowed.
    pub most: Option<f64>,
}

impl Bound {
    /// Whether `value` is within.
    pub fn holds(&self, value: f64) -> bool {
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }
}

const KEYS: &[&str] = &["what", "rows", "over", "column", "of", "least", "most"];

#[derive(Deserialize)]
struct Raw {
    what: String,
    #[serde(default)]
    rows: Table,
    over: Option<Table>,
    column: String,
    of: Option<String>,
    least: Option<f64>,
    most: Option<f64>,
}

pub(super) fn read(tables: &[Table]) -> Result<Vec<Expected>, String> {
    tables.iter().map(one).collect()
}

fn one(table: &Table) -> Result<Expected, String> {
    check_keys(table, KEYS, "expected")?;
    let raw: Raw = Value::Table(table.clone())
        .try_into()
        .map_err(|e: toml::de::Error| format!("expected: {}", one_line(&e)))?;
    let wrong = |why: &str| format!("expected {:?}: {why}", raw.what);
    if raw.least.is_none() && raw.most.is_none() {
        return Err(wrong("needs least or most"));
    }
    let name = raw.of.as_deref().unwrap_or("every");
    let of = Statistic::NAMES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let near = nearest(name, &Statistic::NAMES.map(|(name, _)| name));
        wrong(&format!("unknown of = {name:?}; did you mean {near:?}?"))
    })?;
    if raw.over.is_some() && of.1 != Statistic::Median {
        return Err(wrong("over needs of = \"median\""));
    }
    Ok(Expected {
        rows: selection(&raw.rows),
        over: raw.over.as_ref().map(selection),
        column: raw.column,
        of: of.1,
        bound: Bound { least: raw.least, most: raw.most },
        what: raw.what,
    })
}

fn selection(table: &Table) -> Selection {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let values = |value: &Value| match value {
        Value::Array(values) => values.iter().map(text).collect(),
        other => vec![text(other)],
    };
    Selection(table.iter().map(|(key, value)| (key.clone(), values(value))).collect())
}
