//! What pages hold for their scripts.

use std::borrow::Cow;

use serde_json::Value;

use crate::system::printable;

/// What the scripts of all pages share.
pub(super) const SHARED: &str = include_str!("shared.js");

/// Digits that a number keeps.
const DIGITS: usize = 5;

/// A number with as many digits as are seen.
pub(super) fn number(value: f64) -> Value {
    // JSON has no NaN: it becomes null, which is what is not there.
    format!("{value:.*e}", DIGITS - 1).parse::<f64>().map_or(Value::Null, Value::from)
}

/// JSON as it may stand in a script: no name in it can end that, and what turns text about is written out in what the
/// script reads. (A control character is told by JSON itself.)
pub(super) fn in_script(value: &Value) -> String {
    let text = value.to_string().replace('<', "\\u003c");
    if let Cow::Borrowed(_) = printable(&text) {
        return text;
    }
    let mut told = String::with_capacity(text.len());
    for character in text.split_inclusive(|_: char| true) {
        match printable(character) {
            Cow::Borrowed(character) => told.push_str(character),
            // Within a string of JSON a backslash is told by two.
            Cow::Owned(written) => told.extend(["\\", &written]),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::in_script;
    use serde_json::{Value, json};

    #[test]
    fn no_name_ends_the_script() {
        let hostile = json!({ "name": "</script><script>alert(1)</script><!--" });
        let text = in_script(&hostile);
        assert!(!text.contains('<'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), hostile);
    }

    #[test]
    fn no_name_turns_the_text_about() {
        let hostile = json!(["\u{202e}gnp", "a\\b\nc", "\\u202e", "\u{9b}"]);
        let read: Value = serde_json::from_str(&in_script(&hostile)).unwrap();
        assert_eq!(read, json!(["\\u202egnp", "a\\b\nc", "\\u202e", "\\u009b"]));
    }
}
