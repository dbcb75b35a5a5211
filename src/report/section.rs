//! The parts of a report: header, studies with their notes, pictures.

use maud::{Markup, PreEscaped, html};
use regex::Regex;

use super::analysis::Analysis;
use super::document::encoded;

/// The header of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The title of the page.
    pub title: String,
    /// The program's version and revision.
    pub generator: String,
    /// Preset of the studies: `quick`, `smoke` or `paper`.
    pub preset: String,
    /// Processor, BLAS, threads.
    pub machine: String,
    /// The main results, one sentence each; shown first.
    pub in_short: Vec<String>,
}

/// One study in a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Name of the study, which is also its anchor: `logit-growth`.
    pub study: String,
    /// The heading.
    pub title: String,
    /// What the study asks.
    pub question: String,
    /// Findings from these rows: paragraphs, separated by blank lines.
    pub findings: String,
    /// The tables, figures and verdicts.
    pub analysis: Analysis,
    /// The command that makes the rows again.
    pub command: String,
    /// Sum of the rows' run times in seconds, if rows of this kind have times.
    pub wall_time_s: Option<f64>,
    /// Text of the definition.
    pub definition_toml: String,
    /// Path of the rows, relative to the page.
    pub rows_link: String,
}

impl Section {
    /// URL of the rows.
    pub(super) fn rows_address(&self) -> String {
        address(&self.rows_link)
    }

    /// URL of the table `name` as CSV, relative to the page; tables are in a folder beside the rows.
    pub(super) fn table_link(&self, name: &str) -> String {
        let folder = self.rows_link.rsplit_once('/').map_or("", |(folder, _)| folder);
        let slash = if folder.is_empty() { "" } else { "/" };
        address(&format!("{folder}{slash}tables/{name}.csv"))
    }

    /// Paragraphs of the findings.
    pub(super) fn paragraphs(&self) -> Vec<String> {
        let lines: Vec<&str> = self.findings.lines().map(str::trim).collect();
        let paragraphs = lines.split(|line| line.is_empty());
        paragraphs.filter(|lines| !lines.is_empty()).map(|lines| lines.join(" ")).collect()
    }
}

/// Encodes a path as a URL, so that names in it are not read as scheme, query or fragment.
fn address(path: &str) -> String {
    encoded(path, b"/-._~", '%')
}

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
    use super::{Section, findings, marked};

    #[test]
    fn paragraphs_end_at_blank_lines() {
        let text = |text: &str| Section { findings: text.to_owned(), ..Section::default() };
        let section = text("\nOne,\n  in two lines.\n \n\nAnother.\n");
        assert_eq!(section.paragraphs(), ["One, in two lines.", "Another."]);
        assert_eq!(text(" \n").paragraphs(), [""; 0]);
    }

    #[test]
    fn tables_lie_beside_the_rows() {
        for (rows_link, table_link) in [
            ("../data/growth/rows.csv", "../data/growth/tables/cells.csv"),
            ("rows.csv", "tables/cells.csv"),
            ("javascript:x/rows.csv", "javascript%3Ax/tables/cells.csv"),
            ("../a b#?%é/rows.csv", "../a%20b%23%3F%25%C3%A9/tables/cells.csv"),
        ] {
            let section = Section { rows_link: rows_link.to_owned(), ..Section::default() };
            assert_eq!(section.table_link("cells"), table_link);
        }
    }

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
            ("(`spectra`, `lm-ramp`)", "(<code>spectra</code>, <code>lm-ramp</code>)"),
            ("is **not sparse, and low**", "is <strong>not sparse, and low</strong>"),
            ("*qualified*, and *lower*.", "<em>qualified</em>, and <em>lower</em>."),
            ("L*(ε) by E*(L), 2 * 3, ` and |z| < 3", "L*(ε) by E*(L), 2 * 3, ` and |z| &lt; 3"),
            ("`<b>`", "<code>&lt;b&gt;</code>"),
        ] {
            assert_eq!(marked(paragraph).into_string(), shown);
        }
    }
}
