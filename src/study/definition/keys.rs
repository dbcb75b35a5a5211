//! What is wrong with a definition's keys, in one line.

use toml::Table;

use crate::pattern::nearest::nearest;

/// What is no TOML, and in which line.
pub(super) fn syntax(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', " "))
}

/// A value that its key cannot take, and the key.
pub(super) fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn check_keys(table: &Table, valid: &[&str], within: &str) -> Result<(), String> {
    let place = if within.is_empty() { String::new() } else { format!("{within}.") };
    match table.keys().find(|key| !valid.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = nearest(key, valid);
            Err(format!("unknown key \"{place}{key}\"; did you mean \"{place}{near}\"?"))
        }
    }
}
