//! A JSON Schema of all definitions, and the page of their keys.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::expected::Raw as Expected;
use super::study_definition::Keys;
use crate::experiment::{DefinitionTable, Kind, Preset};
use crate::experiments::{KINDS, ModelKeys};

/// The table `[[expected]]`, which every kind may have.
const EXPECTED: DefinitionTable = DefinitionTable::list::<Expected>("expected");

/// The keys that select trained models.
const MODELS: DefinitionTable = DefinitionTable::one::<ModelKeys>("");

/// A JSON Schema (draft 2020-12) of definitions: one alternative per kind.
pub fn schema() -> Value {
    let mut tables = Map::new();
    let kinds: Vec<Value> = KINDS.into_iter().map(|kind| of_kind(kind, &mut tables)).collect();
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
    let mut keys = DefinitionTable::one::<Keys>("").keys();
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

/// The page docs/definitions.md: every key with its type, default and meaning, kind by kind.
pub fn definitions_page() -> String {
    let mut page = "\
# Definitions

Every key of a study's TOML file. Generated from `rank-study list --schema`; to update it: `RANK_STUDY_UPDATE_DOCS=1 cargo test --test architecture help`.

For a guide with examples see [own-study.md](own-study.md). An editor with TOML support completes and checks keys with the schema: \
`rank-study list --schema > study.schema.json`, and `#:schema study.schema.json` as the first line of the definition.

The tables `[quick]` and `[smoke]` hold what a smaller preset replaces, such as `[smoke.grid]`. An empty default means that the key is off or chosen by the program.

## All kinds

"
    .to_owned();
    keys(&mut page, &DefinitionTable::one::<Keys>("").keys());
    let _ = write!(
        page,
        "\n### `[[expected]]`\n\nBounds that `verify` checks. They apply to the preset `paper`.\n\n"
    );
    keys(&mut page, &EXPECTED.keys());
    let _ = write!(
        page,
        "\n## Trained models\n\nKeys of `[predict]`, `[ramp]`, `[lattice]` and `[surgery]`, which select the models to read.\n\n"
    );
    let shared = MODELS.keys();
    keys(&mut page, &shared);
    let mut printed: Vec<(String, &str, Value)> = Vec::new();
    for kind in KINDS {
        let _ = write!(page, "\n## Kind `{kind}`\n\n| view | draws |\n|---|---|\n");
        for view in kind.views() {
            let _ = writeln!(page, "| `{view}` | {} |", view.about.replace('|', "\\|"));
        }
        for table in kind.tables() {
            let heading = match table.is_list {
                true => format!("`[[{}]]`", table.name),
                false => format!("`[{}]`", table.name),
            };
            let own = table.keys();
            let _ = write!(page, "\n### {heading} of `{kind}`\n\n");
            let same = printed.iter().find(|(name, _, keys)| *name == heading && *keys == own);
            if let Some((_, of, _)) = same {
                let _ = writeln!(page, "As of kind `{of}`.");
                continue;
            }
            let reads_models = has_all(&own, &shared);
            let rest = match table.name {
                "run" => {
                    page.push_str("The keys of `[train]` for this run alone. A list of values makes one run per value. Also:\n\n");
                    without(&own, &kind.tables()[0].keys())
                }
                _ if reads_models => {
                    page.push_str("The keys of [trained models](#trained-models).");
                    without(&own, &shared)
                }
                _ => own.clone(),
            };
            if reads_models {
                page.push_str(if has_keys(&rest) { " Also:\n\n" } else { "\n" });
            }
            if has_keys(&rest) {
                keys(&mut page, &rest);
            }
            printed.push((heading, kind.name(), own));
        }
    }
    page
}

fn has_keys(table: &Value) -> bool {
    table["properties"].as_object().is_some_and(|keys| !keys.is_empty())
}

/// Whether a table has all keys of `others`.
fn has_all(table: &Value, others: &Value) -> bool {
    let others = others["properties"].as_object();
    others.is_some_and(|keys| keys.keys().all(|key| table["properties"].get(key).is_some()))
}

/// The keys of `all` that `others` lacks.
fn without(all: &Value, others: &Value) -> Value {
    let mut all = all.clone();
    if let Some(keys) = all["properties"].as_object_mut() {
        keys.retain(|key, _| others["properties"].get(key).is_none() || key == "start");
    }
    all
}

/// A table of keys in Markdown; those of inner tables follow a dot.
fn keys(page: &mut String, table: &Value) {
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    rows(page, "", table);
}

fn rows(page: &mut String, prefix: &str, table: &Value) {
    let required = table["required"].as_array();
    for (key, schema) in table["properties"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let inner = inner_table(schema);
        if let Some(inner) = inner.filter(|_| about.is_empty() || key == "corpus") {
            rows(page, &format!("{prefix}{key}."), inner);
            continue;
        }
        let is_required =
            required.is_some_and(|keys| keys.iter().any(|one| one.as_str() == Some(key)));
        let default = match (schema.get("default"), is_required) {
            (_, true) if prefix.is_empty() => "required".to_owned(),
            (_, true) => format!("required in `{}`", prefix.trim_end_matches('.')),
            (Some(default), false) if inner.is_none() => format!("`{default}`"),
            _ => String::new(),
        };
        let kind = type_of(schema);
        let _ = writeln!(page, "| `{prefix}{key}` | {kind} | {default} | {about} |");
        if let Some(inner) = inner {
            rows(page, &format!("{prefix}{key}."), inner);
        }
    }
}

/// The table that a key holds.
fn inner_table(schema: &Value) -> Option<&Value> {
    let alternatives =
        ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    std::iter::once(schema).chain(alternatives).find(|one| one["properties"].is_object())
}

/// The type of a value in words.
fn type_of(schema: &Value) -> String {
    if let Some(names) = schema["enum"].as_array() {
        return joined(names.iter().map(|name| format!("`{}`", name.as_str().unwrap_or_default())));
    }
    if let Some(name) = schema["const"].as_str() {
        return format!("`{name}`");
    }
    if let Some(all) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return joined(all.iter().map(type_of));
    }
    match schema["type"].as_str() {
        Some("integer") => "integer".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("string") => "text".to_owned(),
        Some("array") => match schema["items"].is_object() {
            true => match type_of(&schema["items"]).as_str() {
                item @ ("integer" | "number" | "text" | "table") => format!("list of {item}s"),
                item => format!("list of {item}"),
            },
            false => "list".to_owned(),
        },
        _ => "table".to_owned(),
    }
}

fn joined(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fields_of;
    use crate::lm::TrainDefinition;

    #[test]
    fn every_key_is_described() {
        for kind in KINDS {
            for table in kind.tables().iter().chain([&EXPECTED]) {
                let keys = table.keys();
                for (key, schema) in keys["properties"].as_object().unwrap() {
                    let about = schema["description"].as_str().unwrap_or_default();
                    let is_table = inner_table(schema).is_some();
                    assert!(!about.is_empty() || is_table, "{kind} {}.{key}", table.name);
                }
            }
        }
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let of_kind = |name: &str| KINDS.iter().find(|kind| kind.name() == name).unwrap();
        let train = of_kind("train").tables()[0].keys();
        for key in fields_of::<TrainDefinition>() {
            assert!(train["properties"].get(key).is_some(), "{key}");
        }
        assert_eq!(train["properties"]["learning_rate"]["default"], 3e-3);
        assert_eq!(of_kind("fit").tables()[0].keys()["required"], json!(["n"]));
    }
}
