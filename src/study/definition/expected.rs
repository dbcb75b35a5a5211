//! Bounds that a study's rows must satisfy.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{Kind, read_each, read_table};
use crate::record::{Column, ColumnKind};
use crate::system::nearest::nearest;

/// A bound: a statistic of one column over some rows must lie between two numbers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Expected {
    /// The bound in words.
    pub what: String,
    /// Columns and values that select rows; default all rows.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub rows: Table,
    /// Rows to compare with: the bound then holds for median(`rows`) / median(`over`).
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub over: Option<Table>,
    /// The column that is bounded.
    pub column: String,
    /// Statistic of the column: `every` (default), `median` or `count`.
    #[schemars(with = "Option<String>")]
    pub of: Option<Statistic>,
    /// Lower bound.
    pub least: Option<f64>,
    /// Upper bound.
    pub most: Option<f64>,
}

impl Expected {
    /// Whether `value` lies within the bound.
    pub fn holds(&self, value: f64) -> bool {
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }
}

/// Whether `rows` selects a row with these fields: each of its columns has one of the given values.
pub fn selects<'r>(rows: &Table, field: impl Fn(&str) -> &'r str) -> bool {
    let is_equal = |field: &str, value: &Value| match value {
        Value::String(text) => field == text,
        Value::Integer(number) => field.parse() == Ok(*number as f64),
        Value::Float(number) => field.parse() == Ok(*number),
        _ => false,
    };
    rows.iter().all(|(column, value)| values(value).iter().any(|v| is_equal(field(column), v)))
}

/// The values in a list, or a single one.
fn values(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    }
}

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

/// Reads the bounds on rows of `kind`.
pub(super) fn read(tables: &[Table], kind: Kind) -> Result<Vec<Expected>, String> {
    let columns = kind.columns();
    read_each(tables, "expected", |table| one(table, &columns))
}

fn one(table: &Table, columns: &[Column]) -> Result<Expected, String> {
    let expected: Expected = read_table(table, "expected")?;
    let Expected { what, rows, over, column, of, least, most } = &expected;
    let wrong = |why: &str| format!("expected {what:?}: {why}");
    if least.is_none() && most.is_none() {
        return Err(wrong("needs least or most"));
    }
    let of = of.unwrap_or_default();
    if over.is_some() && of != Statistic::Median {
        return Err(wrong("over needs of = \"median\""));
    }
    let kind = kind_of(column, columns)
        .map_err(|near| wrong(&format!("no column = {column:?}; did you mean {near:?}?")))?;
    if kind == ColumnKind::Text && of != Statistic::Count {
        return Err(wrong(&format!("column = {column:?} holds text; name a column of numbers")));
    }
    check_selection(rows, "rows", columns).map_err(|why| wrong(&why))?;
    if let Some(over) = over {
        check_selection(over, "over", columns).map_err(|why| wrong(&why))?;
    }
    Ok(expected)
}

/// Returns the type of a column, or the error that has the most similar name.
fn kind_of(column: &str, columns: &[Column]) -> Result<ColumnKind, String> {
    let known = columns.iter().find(|known| known.name == column);
    known.map(|known| known.kind).ok_or_else(|| {
        let names: Vec<&str> = columns.iter().map(|known| known.name).collect();
        nearest(column, &names)
    })
}

/// Checks the selection in the table at `place`: for each column one value or a list.
fn check_selection(table: &Table, place: &str, columns: &[Column]) -> Result<(), String> {
    for (column, value) in table {
        let kind = kind_of(column, columns)
            .map_err(|near| format!("no column {place}.{column}; did you mean {near:?}?"))?;
        let (is_of_kind, wanted): (fn(&Value) -> bool, _) = match kind {
            ColumnKind::Text => (Value::is_str, "a text in quotes"),
            ColumnKind::Integer => (Value::is_integer, "a whole number"),
            ColumnKind::Number => (|value| value.is_integer() || value.is_float(), "a number"),
        };
        if let Some(value) = values(value).iter().find(|value| !is_of_kind(value)) {
            return Err(format!(
                "{place}.{column} is {value}; it must be {wanted}, or a list of those"
            ));
        }
    }
    Ok(())
}
