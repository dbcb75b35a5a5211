//! Reading and writing of definitions as TOML: text, tables and single keys.

use toml::{Table, Value};

use super::keys::TrainDefinition;
use crate::lm::LmError;
use crate::system::nearest::nearest;
use crate::system::{lay_over, syntax, wrong_value};

impl TrainDefinition {
    /// Reads a definition from TOML text.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, or a value that its key cannot take.
    pub fn from_toml(text: &str) -> Result<Self, LmError> {
        let table = text.parse::<Table>().map_err(|e| LmError::Refused(syntax(&e, text)))?;
        Self::from_table(&table)
    }

    /// Reads a definition from a TOML table; keys left out have their defaults.
    ///
    /// # Errors
    /// An unknown key, or a value that its key cannot take.
    pub fn from_table(table: &Table) -> Result<Self, LmError> {
        let mut definition = Self::default();
        definition.merge(table)?;
        Ok(definition)
    }

    /// Reads the definition in the manifest of a run, which may be older than this version.
    ///
    /// # Errors
    /// As [`Self::from_table`]; also a removed key with another value than its default.
    pub fn from_manifest(table: &Table) -> Result<Self, LmError> {
        Self::from_table(&Self::without_removed(table))
    }

    /// The table of a manifest's definition without removed keys that have their defaults.
    pub(crate) fn without_removed(definition: &Table) -> Table {
        let mut kept = definition.clone();
        for (key, default) in REMOVED {
            let (table, key) = match key.split_once('.') {
                None => (Some(&mut kept), key),
                Some((outer, inner)) => (kept.get_mut(outer).and_then(Value::as_table_mut), inner),
            };
            if let Some(table) = table
                && table.get(key).is_some_and(|value| value.to_string() == default)
            {
                table.remove(key);
            }
        }
        kept
    }

    /// A definition with every key set, including those without a default.
    fn every_key() -> Self {
        let some = Some(1.0);
        Self {
            d_head: Some(1),
            upstream_learning_rate: some,
            router_scale: some,
            router_loss: some,
            ..Self::default()
        }
    }

    /// Replaces the keys that `table` has, and checks the result.
    ///
    /// # Errors
    /// As [`Self::from_table`]. The definition is not changed on an error.
    pub fn merge(&mut self, table: &Table) -> Result<(), LmError> {
        check_keys(&Self::every_key().to_table()?, table, "")?;
        let mut all = self.to_table()?;
        lay_over(&mut all, table.clone());
        let merged: Self =
            Value::Table(all).try_into().map_err(|e| LmError::Refused(wrong_value(&e, "")))?;
        merged.check()?;
        *self = merged;
        Ok(())
    }

    /// Sets one key from text, as `--set key=value` does: `("window", "32")`, `("arm", "ls")`,
    /// `("betas", "[0.9, 0.95]")`, `("corpus.recall", "0.2")`.
    ///
    /// # Errors
    /// As [`Self::merge`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LmError> {
        let parsed = format!("value = {value}").parse::<Table>().ok();
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        let with = |key: &str, value: Value| Table::from_iter([(key.to_owned(), value)]);
        self.merge(&match key.split_once('.') {
            Some((outer, inner)) => with(outer, with(inner, value).into()),
            None => with(key, value),
        })
    }

    /// The whole definition as a TOML table, for a manifest.
    ///
    /// # Errors
    /// An integer outside TOML's 64-bit signed range.
    pub fn to_table(&self) -> Result<Table, LmError> {
        Table::try_from(self).map_err(|e| LmError::Refused(e.to_string()))
    }
}

/// Removed keys, with their defaults as TOML. Runs of before have them in their manifests; of these, only runs with the
/// defaults can still be trained.
const REMOVED: [(&str, &str); 5] = [
    ("visibility", "\"causal\""),
    ("objective", "\"next-token\""),
    ("mask_share", "0.15"),
    ("records", "0"),
    ("corpus.columns", "0"),
];

/// Refuses a key that `valid` lacks, at any depth.
fn check_keys(valid: &Table, found: &Table, prefix: &str) -> Result<(), LmError> {
    for (key, value) in found {
        match (valid.get(key), value) {
            (Some(Value::Table(valid)), Value::Table(found)) => {
                check_keys(valid, found, &format!("{prefix}{key}."))?;
            }
            (Some(_), _) => {}
            (None, _) => {
                let keys: Vec<&str> = valid.keys().map(String::as_str).collect();
                let [found, nearest] =
                    [key.clone(), nearest(key, &keys)].map(|key| format!("{prefix}{key}"));
                return Err(LmError::Refused(format!(
                    "unknown key {found:?} in a training definition; did you mean {nearest:?}?"
                )));
            }
        }
    }
    Ok(())
}
