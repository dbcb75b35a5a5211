//! Identity of a measurement: a hash of its settings, key by key.
//!
//! The hash covers the kind of rows, the version of its measurement, and the keys that differ from their defaults,
//! sorted by name. A new key whose default keeps the behaviour does not invalidate rows. A changed default does, and so
//! does a raised version.

use toml::{Table, Value};

use crate::lm::TrainDefinition;
use crate::solver::SearchOptions;
use crate::system::sha256;
use crate::targets::{Family, Visibility};

/// The first 12 hexadecimal digits of the SHA-256 of the settings that differ from `defaults`, of a measurement given by
/// name and version.
pub(crate) fn identity_of(
    (name, version): (&str, u32),
    settings: &Table,
    defaults: &Table,
) -> String {
    let mut text = format!("{name} {version}\n");
    write(&mut text, "", settings, defaults);
    let mut digest = sha256(text.as_bytes());
    digest.truncate(12);
    digest
}

/// Writes one line for each key that differs from its default: `search.starts = 4`.
fn write(text: &mut String, within: &str, settings: &Table, defaults: &Table) {
    let mut keys: Vec<&String> = settings.keys().collect();
    keys.sort();
    for key in keys {
        let name = format!("{within}{key}");
        match (&settings[key], defaults.get(key)) {
            (Value::Table(inner), Some(Value::Table(defaults))) => {
                write(text, &format!("{name}."), inner, defaults);
            }
            (Value::Table(inner), _) => write(text, &format!("{name}."), inner, &Table::new()),
            (value, default) if default == Some(value) => {}
            (value, _) => text.push_str(&format!("{name} = {}\n", written(value))),
        }
    }
}

/// Writes a value in a fixed form, which does not depend on how a library formats it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(whole) => whole.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => {
            let all: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", all.join(", "))
        }
        Value::Table(table) => {
            let mut text = String::new();
            write(&mut text, "", table, &Table::new());
            format!("{{{}}}", text.trim_end().replace('\n', ", "))
        }
    }
}

/// A target's family with its parameters, and its mask.
pub(crate) fn target_settings(family: &Family, visibility: Visibility) -> Table {
    let mut table = target_defaults();
    table.insert("visibility".to_owned(), visibility.to_string().into());
    table.insert("family".to_owned(), family.to_string().into());
    table
}

/// The mask if a definition names none.
pub(crate) fn target_defaults() -> Table {
    let visible = ("visibility".to_owned(), Visibility::Causal.to_string().into());
    Table::from_iter([visible])
}

/// A model's definition and its training settings.
pub(crate) fn model_settings(definition: &TrainDefinition) -> Table {
    definition.to_table().expect("a definition that was read from TOML can be written as such")
}

/// The options of a search without its seed, which belongs to the cell.
pub(crate) fn search_settings(options: &SearchOptions) -> Table {
    Table::try_from(options).expect("no option exceeds the integers of TOML")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn only_what_differs_from_its_default_counts() {
        let defaults = table("a = 1\n[search]\nstarts = 12\ndtype = 'float64'");
        let settings = table("n = 48\na = 1\n[search]\nstarts = 4\ndtype = 'float64'");
        let hash = identity_of(("fit", 4), &settings, &defaults);
        let mut text = String::new();
        write(&mut text, "", &settings, &defaults);
        assert_eq!(text, "n = 48\nsearch.starts = 4\n");
        let more = |text: &str| format!("b = 2\n{text}\nmore = [0.5]\n");
        let [settings, defaults] = [settings, defaults].map(|t| table(&more(&t.to_string())));
        assert_eq!(identity_of(("fit", 4), &settings, &defaults), hash);
        assert_ne!(identity_of(("fit", 4), &settings, &table("a = 1")), hash);
    }
}
