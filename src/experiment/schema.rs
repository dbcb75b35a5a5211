//! The keys of definitions as a JSON Schema, for editors and for docs/definitions.md.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// A table that definitions of a kind may have.
#[derive(Clone, Copy)]
pub struct DefinitionTable {
    /// Its name, written `[name]`, or `[[name]]` if it may occur several times.
    pub name: &'static str,
    /// Whether it may occur several times.
    pub is_list: bool,
    keys: fn(&mut SchemaGenerator) -> Schema,
}

impl DefinitionTable {
    /// The table `[name]`, whose keys are the fields of `K`.
    pub(crate) const fn one<K: JsonSchema>(name: &'static str) -> Self {
        Self { name, is_list: false, keys: K::json_schema }
    }

    /// The tables `[[name]]`.
    pub(crate) const fn list<K: JsonSchema>(name: &'static str) -> Self {
        Self { name, is_list: true, keys: K::json_schema }
    }

    /// The keys of one such table: an object whose `properties` have `description`, type and `default`.
    pub fn keys(&self) -> Value {
        let inline =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut keys = (self.keys)(&mut inline.into_generator()).to_value();
        tidy(&mut keys);
        keys["additionalProperties"] = false.into();
        keys
    }
}

/// The keys of one table that are divided between two structs.
pub(crate) struct Both<A, B>(std::marker::PhantomData<(A, B)>);

impl<A: JsonSchema, B: JsonSchema> JsonSchema for Both<A, B> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}And{}", A::schema_name(), B::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for schema in [A::json_schema(generator), B::json_schema(generator)] {
            let of = |key: &str| schema.get(key).cloned().unwrap_or_default();
            properties.extend(of("properties").as_object().cloned().unwrap_or_default());
            required.extend(of("required").as_array().cloned().unwrap_or_default());
        }
        json_schema!({"type": "object", "properties": properties, "required": required})
    }
}

/// A key that takes one value or, in a `[[run]]`, a list of them.
pub(crate) fn or_list(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let mut either = json!({"anyOf": [schema, {"type": "array", "items": schema}]});
    if let Some(about) = about {
        either["description"] = about;
    }
    either
}

/// Removes null types, because TOML leaves such keys out, and joins the source lines of each description.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = &types[..] {
                    object["type"] = one.clone();
                }
            }
            for key in ["anyOf", "oneOf"] {
                if let Some(Value::Array(all)) = object.get_mut(key) {
                    all.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
                }
            }
            if let Some(Value::Array(all)) = object.get_mut("enum") {
                all.retain(|one| !one.is_null());
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::String(about)) = object.get_mut("description") {
                *about = about.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(all) => all.iter_mut().for_each(tidy),
        _ => {}
    }
}
