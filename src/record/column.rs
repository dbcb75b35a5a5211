//! The columns of rows, and access to the fields of a row by column name.

use std::collections::HashMap;

/// The format of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    #[default]
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers, in the shortest digits that read back as the same float64.
    Number,
}

/// A column of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The name in the header.
    pub name: &'static str,
    /// The format of the values.
    pub kind: ColumnKind,
    /// The unit, if the column has one.
    pub unit: Option<&'static str>,
    /// The description.
    pub about: &'static str,
    /// Whether every row of a cell that did not fail has a value in this column.
    pub needed: bool,
}

/// Maps the name of each column of a file to its position.
#[derive(Clone, Debug, Default)]
pub struct Header(HashMap<String, usize>);

impl Header {
    /// Reads the header from `record`.
    ///
    /// # Errors
    /// A sentence that names a column that occurs twice.
    pub fn read(record: &csv::StringRecord) -> Result<Self, String> {
        let mut places = HashMap::new();
        for (place, name) in record.iter().enumerate() {
            if places.insert(name.to_owned(), place).is_some() {
                return Err(format!("the header names {name} twice"));
            }
        }
        Ok(Self(places))
    }

    /// The number of columns.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The fields of `record`, a line under this header.
    pub fn fields<'a>(&'a self, record: &'a csv::StringRecord) -> Fields<'a> {
        Fields { header: self, record }
    }
}

/// A line whose fields are found by column name.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    header: &'a Header,
    record: &'a csv::StringRecord,
}

impl<'a> Fields<'a> {
    /// The text of a column; empty if the file has no such column.
    pub fn get(&self, column: &str) -> &'a str {
        let place = self.header.0.get(column);
        place.and_then(|&place| self.record.get(place)).unwrap_or_default()
    }
}
