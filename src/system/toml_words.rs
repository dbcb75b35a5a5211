//! TOML tables over others, and TOML errors in the words of a definition.

use toml::{Table, Value};

use super::nearest::instead;

/// Replaces the values of `table` by those of `over`, table by table.
pub(crate) fn lay_over(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(over)) => lay_over(inner, over),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Describes a wrong value in the table `place` and its key: `grid.n is -1; it must be a whole number`.
pub(crate) fn wrong_value(error: &toml::de::Error, place: &str) -> String {
    let text = error.to_string();
    let key = text.trim_end().rsplit_once("in `").map_or("", |(_, key)| key.trim_end_matches('`'));
    in_words(error.message(), &key_within(place, key))
}

/// The name of a key of the table `place`; either may be empty.
pub(crate) fn key_within(place: &str, key: &str) -> String {
    match (place, key) {
        ("", key) => key.to_owned(),
        (place, "") => place.to_owned(),
        (place, key) => format!("{place}.{key}"),
    }
}

fn in_words(message: &str, key: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(field) = message.strip_prefix("missing field `") {
        return format!("{key}: the key {} is missing", field.trim_end_matches('`'));
    }
    let unknown = message.strip_prefix("unknown variant `");
    if let Some((found, valid)) = unknown.and_then(|rest| rest.split_once("`, expected ")) {
        let valid: Vec<&str> = valid.split('`').skip(1).step_by(2).collect();
        return format!("{key} is {found:?}; {}", instead(found, &valid));
    }
    let length = message.strip_prefix("invalid length ");
    if let Some((found, wanted)) =
        length.and_then(|rest| rest.split_once(", expected an array of length "))
    {
        return format!("{key} has {found} values; it must have {wanted}");
    }
    let invalid =
        message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    match invalid.and_then(|invalid| invalid.split_once(", expected ")) {
        Some((found, wanted)) => format!("{key} is {}; it must be {}", value(found), kind(wanted)),
        None => format!("{key}: {message}"),
    }
    .trim_start_matches(": ")
    .to_owned()
}

/// Describes a TOML syntax error and its line.
pub(crate) fn syntax(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    match error.message().replace('\n', " ") {
        // For `kind = fit`, TOML reads the f as the beginning of false.
        wrong if wrong.starts_with("invalid boolean") || wrong.contains("expected `\"`") => {
            format!("line {line}: the value is no number, list, true or false; put text in quotes")
        }
        wrong => format!("line {line}: {wrong}"),
    }
}

/// Removes the type's name from a value; lists and tables are shown by name only.
fn value(found: &str) -> &str {
    match found {
        "sequence" => "a list",
        "map" => "a table",
        _ => {
            let types = ["integer ", "floating point ", "boolean ", "string "];
            let bare = types.iter().find_map(|name| found.strip_prefix(name)).unwrap_or(found);
            bare.trim_matches('`')
        }
    }
}

fn kind(wanted: &str) -> &str {
    match wanted {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number of at least 0",
        "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number",
        "f64" | "f32" | "a floating point number" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn a_wrong_value_is_said_with_its_key_and_without_the_names_of_types() {
        for (message, parts) in [
            ("invalid type: integer `-1`, expected usize", ["n is -1", "number of at least 0"]),
            ("invalid type: string \"x\", expected a sequence", ["n is \"x\"", "a list"]),
            ("invalid type: sequence, expected f64", ["n is a list", "a number"]),
            ("missing field `run`", ["n: ", "key run is missing"]),
            ("invalid length 1, expected an array of length 2", ["n has 1", "must have 2"]),
            ("something else", ["n: ", "something else"]),
        ] {
            let said = in_words(message, "n");
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(!["usize", "f64", "sequence"].iter().any(|name| said.contains(name)), "{said}");
        }
    }
}
