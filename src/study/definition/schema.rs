//! A JSON Schema of all definitions.

use serde_json::{Map, Value, json};

use super::expected::Expected;
use super::study_definition::Keys;
use crate::experiment::{DefinitionTable, Kind, Preset};
use crate::experiments::{KINDS, ModelKeys};

/// The table `[[expected]]`, which every kind may have.
pub const EXPECTED: DefinitionTable = DefinitionTable::list::<Expected>("expected");

/// The keys of a definition outside of its tables.
pub const OWN_KEYS: DefinitionTable = DefinitionTable::one::<Keys>("");

/// The keys that select trained models, in the tables of several kinds.
pub const MODELS: DefinitionTable = DefinitionTable::one::<ModelKeys>("");

/// A JSON Schema (draft 2020-12) of definitions: one alternative per kind.
pub fn schema() -> Value {
    let mut tables = Map::new();
    let kinds: Vec<Value> = KINDS.iter().map(|kind| of_kind(*kind, &mut tables)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of rank-study",
        "type": "object",
        "oneOf": kinds,
        "$defs": tables,
    })
}

/// The schema of definitions of a kind; its tables go to `shared`, which all kinds refer to.
fn of_kind(kind: Kind, shared: &mut Map<String, Value>) -> Value {
    let mut keys = OWN_KEYS.keys();
    let views: Vec<&str> = kind.views().iter().map(|view| view.name).collect();
    let (mut whole, mut replaced) = (Map::new(), Map::new());
    for table in kind.tables().iter().chain([&EXPECTED]) {
        let mut own = table.keys();
        // A smaller preset replaces single keys, and needs no others.
        let required = own.as_object_mut().and_then(|own| own.remove("required"));
        let mut name = table.name.to_owned();
        if shared.get(&name).is_some_and(|there| *there != own) {
            name = format!("{name} of {kind}");
        }
        let reference = json!({"$ref": format!("#/$defs/{}", name.replace(' ', "%20"))});
        shared.insert(name, own);
        let mut needed = reference.clone();
        if let Some(required) = required {
            needed["required"] = required;
        }
        let as_table = |one: Value| match table.is_list {
            true => json!({"type": "array", "items": one}),
            false => one,
        };
        whole.insert(table.name.to_owned(), as_table(needed));
        replaced.insert(table.name.to_owned(), as_table(reference));
    }
    if let Some(properties) = keys["properties"].as_object_mut() {
        properties["kind"]["const"] = kind.name().into();
        properties["view"]["enum"] = views.into();
        properties["presets"]["items"]["enum"] = Preset::ALL.map(Preset::name).to_vec().into();
        properties.extend(whole);
        for size in [Preset::Quick, Preset::Smoke] {
            let about = format!("What the preset {size} replaces.");
            let over = json!({
                "type": "object", "description": about, "properties": replaced,
                "additionalProperties": false,
            });
            properties.insert(size.name().to_owned(), over);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fields_of;
    use crate::lm::TrainDefinition;

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let train = "train".parse::<Kind>().unwrap().tables()[0].keys();
        for key in fields_of::<TrainDefinition>() {
            assert!(train["properties"].get(key).is_some(), "{key}");
        }
    }
}
