//! Frame of every page: one HTML file with style, scripts, data for the scripts and a Content-Security-Policy.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::system::{printable, printable_lines};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Builds a page that fetches nothing. `styles` follow the style of all pages, and `scripts` precede the script of all
/// pages. Characters that would reverse the following text are escaped.
pub(super) fn document(title: &str, styles: &[&str], scripts: &[&str], body: Markup) -> String {
    let style = std::iter::once(&STYLE).chain(styles).copied().collect::<String>();
    let scripts = || scripts.iter().chain([&SCRIPT]).copied();
    let policy = policy(scripts(), std::iter::once(style.as_str()));
    let body = body.into_string();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (printable_lines(title)) }
                style { (PreEscaped(&style)) }
            }
            body {
                (PreEscaped(printable_lines(&body)))
                @for script in scripts() { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// Script that the scripts of several pages use.
pub(super) const SHARED: &str = include_str!("shared.js");

/// Significant digits of a number.
const DIGITS: usize = 5;

/// Rounds a number to the digits that are shown; NaN and infinities become null.
pub(super) fn number(value: f64) -> Value {
    // JSON has no NaN, so a missing value is null.
    format!("{value:.*e}", DIGITS - 1).parse::<f64>().map_or(Value::Null, Value::from)
}

/// Formats JSON that is safe in a script: no string in it can end the script. Characters that reverse text arrive in
/// the script as escapes. (JSON itself escapes control characters.)
pub(super) fn in_script(value: &Value) -> String {
    let text = value.to_string().replace('<', "\\u003c");
    if let Cow::Borrowed(_) = printable(&text) {
        return text;
    }
    let mut told = String::with_capacity(text.len());
    for character in text.split_inclusive(|_: char| true) {
        match printable(character) {
            Cow::Borrowed(character) => told.push_str(character),
            // Within a JSON string, a backslash is written as two.
            Cow::Owned(written) => told.extend(["\\", &written]),
        }
    }
    told
}

/// The Content-Security-Policy of a page with these scripts and styles. No other code runs, even if a name in the page
/// contains markup. Nothing is fetched, sent, framed or evaluated; images are data URLs. Trusted Types also prevent
/// scripts from turning strings into markup.
pub(super) fn policy<'t>(
    scripts: impl Iterator<Item = &'t str>,
    styles: impl Iterator<Item = &'t str>,
) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        sources(scripts),
        sources(styles)
    )
}

/// Encodes a name as the beginning of ids.
pub(super) fn anchor(name: &str) -> String {
    encoded(name, b"-_.", '_')
}

/// Replaces bytes other than letters, digits and those `kept` by `mark` and their hexadecimal digits.
pub(super) fn encoded(text: &str, kept: &[u8], mark: char) -> String {
    let one = |byte: u8| match byte.is_ascii_alphanumeric() || kept.contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("{mark}{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn sources<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let source = |text| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    texts.map(source).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{anchor, in_script, policy};
    use serde_json::{Value, json};

    #[test]
    fn no_name_ends_the_script_or_turns_the_text_about() {
        let hostile = json!({ "name": "</script><script>alert(1)</script><!--" });
        let text = in_script(&hostile);
        assert!(!text.contains('<'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), hostile);
        let hostile = json!(["\u{202e}gnp", "a\\b\nc", "\\u202e", "\u{9b}"]);
        let read: Value = serde_json::from_str(&in_script(&hostile)).unwrap();
        assert_eq!(read, json!(["\\u202egnp", "a\\b\nc", "\\u202e", "\\u009b"]));
    }

    #[test]
    fn no_name_ends_an_attribute() {
        assert_eq!(anchor("\"><img src=x>"), "_22_3E_3Cimg_20src_3Dx_3E");
    }

    /// The hash of `alert('Hello, world.');` is the example in the specification (CSP 3, § 8.3).
    #[test]
    fn what_the_page_has_is_named_by_its_hash() {
        let policy = policy(["alert('Hello, world.');"].into_iter(), ["", "a{}"].into_iter());
        let script = "script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=';";
        assert!(policy.contains(script), "{policy}");
        assert_eq!(policy.matches("'sha256-").count(), 3);
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
