//! Makes text from files safe to print: terminals do not interpret any of its characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes as `\u001b` every character that a terminal interprets or that changes the order of others. These are
/// control characters, line ends and marks of text direction. The form is also valid in JSON, where strings keep their
/// value.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    written_out(text, |_| false)
}

/// [`printable`] for text of several lines: line ends of either kind and tabs stay.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |rest| rest.starts_with(['\n', '\t']) || rest.starts_with("\r\n"))
}

/// Returns `true` for characters that terminals interpret instead of showing.
///
/// Unicode's class Cc contains the commands of terminals (ESC, and C1, whose CSI needs no ESC). The characters of
/// `Bidi_Control` and the line and paragraph separators move other text.
pub(super) fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Escapes the characters that [`is_obeyed`] reports, unless `stays` accepts the text that starts there.
fn written_out(text: &str, stays: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut told = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| is_obeyed(*c)) {
        if !stays(&text[at..]) {
            shown.push_str(&text[told..at]);
            // All these characters have four hexadecimal digits.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
            told = at + c.len_utf8();
        }
    }
    if told == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[told..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_written_out_and_nothing_else_changes() {
        for (text, shown) in [
            ("d_model größer – 4", "d_model größer – 4"),
            ("a\u{1b}[2Jb", r"a\u001b[2Jb"),
            ("\u{9b}31m", r"\u009b31m"),
            ("abc\u{202e}gnp.exe", r"abc\u202egnp.exe"),
            ("\u{2066}x\u{2069}\u{2028}", r"\u2066x\u2069\u2028"),
            ("שלום", "שלום"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(printable_lines(text), shown);
        }
        assert_eq!(printable("a\r\n\tb"), r"a\u000d\u000a\u0009b");
        assert_eq!(printable_lines("a\r\n\tb\rc"), "a\r\n\tb\\u000dc");
    }
}
