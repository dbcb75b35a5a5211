//! A definition as TOML tables at one size, before an experiment reads its tables.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::{Table, Value};

use crate::system::lay_over;
use crate::system::nearest::instead;

/// A size at which studies are run. Rows of different sizes are never mixed: a study takes the runs of other studies at
/// its own size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Preset {
    /// The smallest size, for tests: the definition with its table `[smoke]` applied, or the definition itself if its
    /// key `presets` names smoke. A study with neither does not have this size.
    Smoke,
    /// At most ten minutes on two cores for all studies of this size: the definition with its table `[quick]` applied.
    Quick,
    /// The definition itself; takes hours.
    #[default]
    Paper,
}

impl Preset {
    /// Every size, beginning with that of the definition itself.
    pub(crate) const ALL: [Self; 3] = [Self::Paper, Self::Quick, Self::Smoke];

    /// The name, in definitions, manifests and folders.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The flag for a command at this size, such as ` --preset quick`; empty for the default.
    pub fn flag(self) -> String {
        match self {
            Self::Paper => String::new(),
            smaller => format!(" --preset {smaller}"),
        }
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            format!("unknown preset {text:?}; {}", instead(text, &Self::ALL.map(Self::name)))
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_laid_over_key_by_key_and_lists_replaced() {
        let mut table: Table =
            "[grid]\nn = [1, 2]\nrank = [3]\n[[run]]\nname = 'a'".parse().unwrap();
        let over: Table = "[grid]\nn = [4]\n[[run]]\nname = 'b'".parse().unwrap();
        lay_over(&mut table, over);
        let whole: Table = "[grid]\nn = [4]\nrank = [3]\n[[run]]\nname = 'b'".parse().unwrap();
        assert_eq!(table, whole);
    }
}
