//! One row: named fields, written in the order of some columns.

use std::collections::BTreeMap;

use super::schema::Columns;

/// The fields of one row by column name; a column that has none is written empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row(BTreeMap<&'static str, String>);

impl Row {
    /// Sets a field.
    pub fn set(&mut self, column: &'static str, value: impl ToString) {
        self.0.insert(column, value.to_string());
    }

    /// Sets a field, or leaves it empty where there is no value.
    pub fn set_some(&mut self, column: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    /// A field's text; empty where there is no value.
    pub fn get(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// Adds the fields of `other`, which win.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The fields in the order of `columns`.
    pub fn fields(&self, columns: &Columns) -> Vec<&str> {
        columns.iter().map(|(name, _)| self.get(name)).collect()
    }

    /// The fields that have a value, as a JSON object; what reads as a number is one.
    pub fn to_json(&self) -> serde_json::Value {
        let number = |text: &str| match text.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64),
        };
        let value = |text: &str| number(text).map_or(text.into(), serde_json::Value::Number);
        self.0.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
    }

    /// A row from the fields of the columns named `names`.
    pub(super) fn from_fields<'f>(
        names: &[&'static str],
        fields: impl Iterator<Item = &'f str>,
    ) -> Self {
        Self(
            names
                .iter()
                .zip(fields)
                .filter(|(_, field)| !field.is_empty())
                .map(|(&name, field)| (name, field.to_owned()))
                .collect(),
        )
    }
}

/// Rows as CSV with a header.
pub fn to_csv<'r>(
    columns: &Columns,
    rows: impl Iterator<Item = &'r Row>,
) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for row in rows {
        writer.write_record(row.fields(columns))?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}
