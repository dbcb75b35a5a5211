//! What tokens stand for, as text.

use super::vocabulary::{Symbols, Vocabulary};

/// What stands for the end of a document, and for the beginning of a record.
const MARKS: [&str; 2] = ["<end>", "<begin>"];

impl Vocabulary {
    /// What each of `tokens` stands for, one after another; none where symbols have no written form. A character
    /// whose bytes are of several tokens is the last one's, and bytes that are no character stand for �.
    pub fn texts_of(&self, tokens: &[u32]) -> Option<Vec<String>> {
        let mut open = Vec::new();
        tokens.iter().map(|&token| self.text_of(token, &mut open)).collect()
    }

    /// `open` are the bytes of a character that earlier tokens began.
    fn text_of(&self, token: u32, open: &mut Vec<u8>) -> Option<String> {
        let mark = [self.end(), self.begin()].iter().position(|mark| *mark == Some(token));
        if let Some(mark) = mark {
            return Some(whole(open, true) + MARKS[mark]);
        }
        match &self.symbols {
            Symbols::Bytes => open.push(token as u8),
            Symbols::Characters(characters) => {
                return characters.get(token as usize).map(char::to_string);
            }
            Symbols::BytePairs(bpe) => open.extend(bpe.written(token)),
            Symbols::Unwritten { .. } => return None,
        }
        Some(whole(open, false))
    }
}

/// The characters that `open` holds, and leaves there the bytes of one that may still be ended, unless this is the
/// `end`.
fn whole(open: &mut Vec<u8>, end: bool) -> String {
    let mut text = String::new();
    loop {
        let error = match std::str::from_utf8(open) {
            Ok(rest) => {
                text.push_str(rest);
                open.clear();
                return text;
            }
            Err(error) => error,
        };
        let rest = open.split_off(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(open));
        *open = rest;
        let wrong = match error.error_len() {
            Some(length) => length,
            None if end => open.len(),
            None => return text,
        };
        text.push('\u{fffd}');
        open.drain(..wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(symbols: Symbols) -> Vocabulary {
        Vocabulary { symbols, has_end: true, record: None }
    }

    #[test]
    fn bytes_of_one_character_are_the_last_ones() {
        let vocabulary = of(Symbols::Bytes);
        let mut tokens: Vec<u32> = "aé€".bytes().map(u32::from).collect();
        tokens.extend([0xff, 0xe2, 256]);
        let texts = vocabulary.texts_of(&tokens).unwrap();
        assert_eq!(texts, ["a", "", "é", "", "", "€", "\u{fffd}", "", "\u{fffd}<end>"]);
    }

    #[test]
    fn characters_stand_for_themselves_and_unwritten_symbols_for_nothing() {
        let vocabulary = of(Symbols::Characters(vec!['x', '\n']));
        assert_eq!(vocabulary.texts_of(&[1, 0, 2]).unwrap(), ["\n", "x", "<end>"]);
        assert_eq!(of(Symbols::Unwritten { size: 3 }).texts_of(&[0, 1]), None);
    }
}
