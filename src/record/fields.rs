//! Access to the fields of one row of a CSV file by column name.

use std::collections::HashMap;

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
