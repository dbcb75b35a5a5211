//! What pages hold for their scripts.

use serde_json::Value;

/// What the scripts of all pages share.
pub(super) const SHARED: &str = include_str!("shared.js");

/// Digits that a number keeps.
const DIGITS: usize = 5;

/// A number with as many digits as are seen.
pub(super) fn number(value: f64) -> Value {
    // JSON has no NaN: it becomes null, which is what is not there.
    format!("{value:.*e}", DIGITS - 1).parse::<f64>().map_or(Value::Null, Value::from)
}

/// JSON as it may stand in a script: no name in it can end that.
pub(super) fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
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
}
