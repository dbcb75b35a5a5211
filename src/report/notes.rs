//! Notes beside a study's definition: which rows they are about, and their Markdown as the page shows it.

use maud::{Markup, PreEscaped, html};
use regex::Regex;

/// What a note says, where it is about the rows with this hash: its first line names theirs,
/// `<!-- rows_sha256 = "…" -->`. Of other rows, as of another size or of a definition since changed, it says nothing.
pub fn findings<'n>(note: &'n str, rows_sha256: &str) -> Option<&'n str> {
    let about = format!("<!-- rows_sha256 = \"{rows_sha256}\" -->");
    let rest = note.strip_prefix(&about).filter(|_| !rows_sha256.is_empty());
    rest.map(str::trim)
}

/// A mark, and what stands for it. A star of a formula, as in L*(ε), begins no word and stays.
const MARKS: [(&str, &str); 3] = [
    (r"`([^`]+)`", "<code>$1</code>"),
    (r"\*\*([^*]+)\*\*", "<strong>$1</strong>"),
    (r"\*([[:alpha:]][^*]*[[:alpha:]])\*", "<em>$1</em>"),
];

/// A paragraph with its code, its strong words and its stressed ones set as such.
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
