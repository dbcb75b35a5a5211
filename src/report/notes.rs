//! Notes on a study: which rows they describe, and their Markdown as HTML.

use maud::{Markup, PreEscaped, html};
use regex::Regex;

/// Returns the text of a note if it describes the rows with this hash, else `None`. The first line of the note has the
/// hash: `<!-- rows_sha256 = "…" -->`. So a note on rows of another preset or definition is not shown.
pub fn findings<'n>(note: &'n str, rows_sha256: &str) -> Option<&'n str> {
    let about = format!("<!-- rows_sha256 = \"{rows_sha256}\" -->");
    let rest = note.strip_prefix(&about).filter(|_| !rows_sha256.is_empty());
    rest.map(str::trim)
}

/// Patterns of Markdown and their HTML. A star in a formula, as in L*(ε), begins no word and stays.
const MARKS: [(&str, &str); 3] = [
    (r"`([^`]+)`", "<code>$1</code>"),
    (r"\*\*([^*]+)\*\*", "<strong>$1</strong>"),
    (r"\*([[:alpha:]][^*]*[[:alpha:]])\*", "<em>$1</em>"),
];

/// Converts the code and emphasis marks of a paragraph to HTML.
pub fn marked(paragraph: &str) -> Markup {
    let escaped = html! { (paragraph) }.into_string();
    let set = MARKS.iter().fold(escaped, |text, (mark, set)| {
        let mark = Regex::new(mark).expect("a pattern that is none");
        mark.replace_all(&text, *set).into_owned()
    });
    PreEscaped(set)
}

#[cfg(test)]
mod tests {
    use super::{findings, marked};

    #[test]
    fn a_note_is_about_the_rows_that_it_names() {
        let note = "<!-- rows_sha256 = \"1a2b\" -->\n\nMuch.\n\nMore.\n";
        assert_eq!(findings(note, "1a2b"), Some("Much.\n\nMore."));
        assert_eq!(findings(note, "1a2c"), None);
        assert_eq!(findings("Much.\n", "1a2b"), None);
        assert_eq!(findings("<!-- rows_sha256 = \"\" -->\nMuch.\n", ""), None);
    }

    #[test]
    fn code_and_stress_are_set_and_formulas_left_alone() {
        for (paragraph, shown) in [
            (
                "ranks (`spectra`, `lm-ramp`) rise",
                "ranks (<code>spectra</code>, <code>lm-ramp</code>) rise",
            ),
            (
                "is **not sparse, and low-rank** at once",
                "is <strong>not sparse, and low-rank</strong> at once",
            ),
            ("says *qualified*, and *lower*.", "says <em>qualified</em>, and <em>lower</em>."),
            (
                "L*(ε) beside E*(L), 2 * 3, ` and |z| < 3",
                "L*(ε) beside E*(L), 2 * 3, ` and |z| &lt; 3",
            ),
            ("`<b>`", "<code>&lt;b&gt;</code>"),
        ] {
            assert_eq!(marked(paragraph).into_string(), shown);
        }
    }
}
