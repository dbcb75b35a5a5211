//! The page docs/definitions.md, made of the schema of definitions.

use std::fmt::Write;

use rank_study::experiments::KINDS;
use rank_study::study::{EXPECTED, MODELS, OWN_KEYS};
use serde_json::Value;

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
    keys(&mut page, &OWN_KEYS.keys());
    let _ = write!(
        page,
        "\n### `[[expected]]`\n\nBounds that `verify` checks. They apply to the preset `paper`.\n\n"
    );
    keys(&mut page, &EXPECTED.keys());
    let _ = write!(
        page,
        "\n## Trained models\n\nKeys of `[predict]`, `[ramp]` and `[surgery]`, which select the models to read.\n\n"
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
