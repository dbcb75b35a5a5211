//! A definition as TOML tables, before an experiment reads its tables.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::preset::{Preset, lay_over};

/// The tables of a definition at one size.
#[derive(Clone, Debug)]
pub(crate) struct RawDefinition {
    /// The definition's tables.
    pub table: Table,
    /// Its file. Other studies that it names are defined in the same folder.
    pub path: PathBuf,
    /// The size, which also applies to those studies.
    pub preset: Preset,
}

impl RawDefinition {
    /// Reads the text of a definition at a size that it has.
    ///
    /// # Errors
    /// Text that is not TOML, with its line; a size that the definition does not have.
    pub fn parse(path: &Path, text: &str, size: Preset) -> Result<Self, String> {
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| crate::system::syntax(&e, text))?;
        Self::at_size(path, &table, size).ok_or_else(|| format!("has no {size} size"))
    }

    /// The tables of a definition at a size. A smaller size merges the table of its name, such as `[quick]`, into the
    /// rest. Returns `None` if the definition has no such table and its `presets` do not name the size.
    pub fn at_size(path: &Path, table: &Table, size: Preset) -> Option<Self> {
        let mut table = table.clone();
        if size != Preset::Paper {
            let is_named = table
                .get("presets")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|name| name.as_str() == Some(size.name())));
            let over = match table.remove(size.name()) {
                Some(Value::Table(over)) => over,
                None if is_named => Table::new(),
                _ => return None,
            };
            // Bounds refer to rows that a smaller grid may not have.
            table.remove("expected");
            lay_over(&mut table, over);
        }
        Some(Self { table, path: path.to_owned(), preset: size })
    }

    /// The table `[name]`, if there is one.
    ///
    /// # Errors
    /// A value that is not a table.
    pub fn table(&self, name: &str) -> Result<Option<&Table>, String> {
        match self.table.get(name) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(format!("{name} is {other}; write it as a table [{name}]")),
        }
    }

    /// The table `[name]`, empty if there is none.
    ///
    /// # Errors
    /// A value that is not a table.
    pub fn table_or_empty(&self, name: &str) -> Result<Table, String> {
        Ok(self.table(name)?.cloned().unwrap_or_default())
    }

    /// The tables `[[name]]`.
    ///
    /// # Errors
    /// A value that is not a list of tables.
    pub fn tables(&self, name: &str) -> Result<Vec<Table>, String> {
        let wrong = |value: &Value| {
            format!("{name} is {value}; write each of its entries as a table [[{name}]]")
        };
        match self.table.get(name) {
            None => Ok(Vec::new()),
            Some(value @ Value::Array(values)) => values
                .iter()
                .map(|one| one.as_table().cloned().ok_or_else(|| wrong(value)))
                .collect(),
            Some(other) => Err(wrong(other)),
        }
    }
}
