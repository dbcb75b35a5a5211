//! What was found in a study's rows, written down beside its definition.

/// What a note says, where it is about the rows with this hash: its first line names theirs,
/// `<!-- rows_sha256 = "…" -->`. Of other rows, as of another size or of a definition since changed, it says nothing.
pub fn findings<'n>(note: &'n str, rows_sha256: &str) -> Option<&'n str> {
    let about = format!("<!-- rows_sha256 = \"{rows_sha256}\" -->");
    let rest = note.strip_prefix(&about).filter(|_| !rows_sha256.is_empty());
    rest.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::findings;

    #[test]
    fn a_note_is_about_the_rows_that_it_names() {
        let note = "<!-- rows_sha256 = \"1a2b\" -->\n\nMuch.\n\nMore.\n";
        assert_eq!(findings(note, "1a2b"), Some("Much.\n\nMore."));
        assert_eq!(findings(note, "1a2c"), None);
        assert_eq!(findings("Much.\n", "1a2b"), None);
        assert_eq!(findings("<!-- rows_sha256 = \"\" -->\nMuch.\n", ""), None);
    }
}
