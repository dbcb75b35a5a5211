//! Bounds that a study's rows must satisfy.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{Kind, read_each, read_table};
use crate::record::{Column, ColumnKind};
use crate::system::nearest::nearest;

/// A bound: a statistic of one column over some rows must lie between two numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Description of the bound in words.
    pub what: String,
    /// Rows that the bound applies to.
    pub rows: Selection,
    /// Rows whose statistic is the denominator, if the bound applies to a ratio.
    pub over: Option<Selection>,
    /// Column of the values.
    pub column: String,
    /// Statistic of the column.
    pub of: Statistic,
    /// Smallest allowed value.
    pub least: Option<f64>,
    /// Largest allowed value.
    pub most: Option<f64>,
}

impl Expected {
    /// Whether `value` lies within the bound.
    pub fn holds(&self, value: f64) -> bool {
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }
}

/// Selects rows in which every named column has one of the given values; all rows if no column is named.
pub type Selection = Vec<(String, Vec<String>)>;

/// Statistic of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Every value separately. A row without a value counts as infinite: no logits reached the error.
    #[default]
    Every,
    /// The median; a row without a value counts as infinite.
    Median,
    /// Number of rows with a value.
    Count,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Raw {
    /// The bound in words.
    what: String,
    /// Columns and values that select rows; default all rows.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    rows: Table,
    /// Rows to compare with: the bound then holds for median(`rows`) / median(`over`).
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    over: Option<Table>,
    /// The column that is bounded.
    column: String,
    /// Statistic of the column: `every` (default), `median` or `count`.
    #[schemars(with = "Option<String>")]
    of: Option<Statistic>,
    /// Lower bound.
    least: Option<f64>,
    /// Upper bound.
    most: Option<f64>,
}

/// Reads the bounds on rows of `kind`.
pub(super) fn read(tables: &[Table], kind: Kind) -> Result<Vec<Expected>, String> {
    let columns = kind.columns();
    read_each(tables, "expected", |table| one(table, &columns))
}

fn one(table: &Table, columns: &[Column]) -> Result<Expected, String> {
    let raw: Raw = read_table(table, "expected")?;
    let wrong = |why: &str| format!("expected {:?}: {why}", raw.what);
    if raw.least.is_none() && raw.most.is_none() {
        return Err(wrong("needs least or most"));
    }
    let of = raw.of.unwrap_or_default();
    if raw.over.is_some() && of != Statistic::Median {
        return Err(wrong("over needs of = \"median\""));
    }
    let kind = kind_of(&raw.column, columns)
        .map_err(|near| wrong(&format!("no column = {:?}; did you mean {near:?}?", raw.column)))?;
    if kind == ColumnKind::Text && of != Statistic::Count {
        return Err(wrong(&format!(
            "column = {:?} holds text; name a column of numbers",
            raw.column
        )));
    }
    Ok(Expected {
        rows: selection(&raw.rows, "rows", columns).map_err(|why| wrong(&why))?,
        over: (raw.over.as_ref())
            .map(|over| selection(over, "over", columns))
            .transpose()
            .map_err(|why| wrong(&why))?,
        of,
        least: raw.least,
        most: raw.most,
        column: raw.column,
        what: raw.what,
    })
}

/// Returns the type of a column, or the error that has the most similar name.
fn kind_of(column: &str, columns: &[Column]) -> Result<ColumnKind, String> {
    let known = columns.iter().find(|known| known.name == column);
    known.map(|known| known.kind).ok_or_else(|| {
        let names: Vec<&str> = columns.iter().map(|known| known.name).collect();
        nearest(column, &names)
    })
}

/// Reads the selection in the table at `place`: for each column one value or a list.
fn selection(table: &Table, place: &str, columns: &[Column]) -> Result<Selection, String> {
    let mut selected = Selection::new();
    for (column, value) in table {
        let kind = kind_of(column, columns)
            .map_err(|near| format!("no column {place}.{column}; did you mean {near:?}?"))?;
        let text = |value: &Value| match (kind, value) {
            (ColumnKind::Text, Value::String(text)) => Ok(text.clone()),
            (ColumnKind::Integer | ColumnKind::Number, Value::Integer(_))
            | (ColumnKind::Number, Value::Float(_)) => Ok(value.to_string()),
            _ => {
                let wanted = match kind {
                    ColumnKind::Text => "a text in quotes",
                    ColumnKind::Integer => "a whole number",
                    ColumnKind::Number => "a number",
                };
                Err(format!("{place}.{column} is {value}; it must be {wanted}, or a list of those"))
            }
        };
        let values = match value {
            Value::Array(values) => values.iter().map(text).collect::<Result<_, _>>()?,
            one => vec![text(one)?],
        };
        selected.push((column.clone(), values));
    }
    Ok(selected)
}
