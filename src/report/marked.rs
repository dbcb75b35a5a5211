//! The few marks of Markdown that notes have, as the page shows them.

use maud::{Markup, PreEscaped, html};
use regex::Regex;

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
    use super::marked;

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
