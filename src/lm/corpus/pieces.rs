//! A long text, piece by piece, cut where words end anyway.

use std::io::Read;

use super::document::Document;
use crate::lm::LmError;

/// The bytes of a piece, at most.
pub(super) const PIECE: usize = 1 << 20;

/// The pieces of a text, of at most a mebibyte each, so that a corpus never has to be held.
///
/// A piece ends before a white space that follows a printable ASCII character: pre-tokenisation
/// cuts there whatever comes before and after, so the pieces' tokens are those of the whole. Only
/// where a mebibyte has no such place does it end between two characters.
pub(super) struct Pieces<'a> {
    document: &'a Document,
    reader: Box<dyn Read + Send + 'a>,
    /// Where the next piece starts in the document.
    start: u64,
    /// What was read past the last cut.
    rest: Vec<u8>,
}

/// One piece, and where it starts in its document.
pub(super) struct Piece {
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// Counts the byte of an error from the document's start rather than from the piece's.
    pub fn errors(&self) -> impl Fn(LmError) -> LmError + use<> {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        move |error| match error {
            LmError::NotUtf8 { byte } => LmError::NotUtf8 { byte: start.saturating_add(byte) },
            other => other,
        }
    }
}

impl<'a> Pieces<'a> {
    /// The pieces of what `reader` reads of a document, from byte `start` of it.
    pub fn new(document: &'a Document, start: u64, reader: Box<dyn Read + Send + 'a>) -> Self {
        Self { document, reader, start, rest: Vec::new() }
    }

    fn read(&mut self) -> std::io::Result<Option<Piece>> {
        let mut bytes = std::mem::take(&mut self.rest);
        let room = (PIECE - bytes.len()) as u64;
        self.reader.by_ref().take(room).read_to_end(&mut bytes)?;
        if bytes.len() == PIECE {
            self.rest = bytes.split_off(cut(&bytes));
        }
        let start = self.start;
        self.start += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(Piece { start, bytes }))
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece, LmError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(|e| self.document.failed(e)).transpose()
    }
}

/// Where a piece may end; never 0 and never more than its length.
fn cut(piece: &[u8]) -> usize {
    let word_end = |pair: &[u8]| pair[0].is_ascii_graphic() && pair[1].is_ascii_whitespace();
    let starts_character = |&byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let words = piece.windows(2).rposition(word_end).map(|at| at + 1);
    let characters = || piece.iter().rposition(starts_character).filter(|&at| at > 0);
    words.or_else(characters).unwrap_or(piece.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_put_together_are_the_text_and_end_where_words_end() {
        let words = "none of the  words\n\nis cut ".repeat(100_000);
        let long = "é".repeat(PIECE);
        for (text, ends_words) in [(words, true), (long, false)] {
            let document = Document::in_memory(text.as_bytes());
            let pieces: Vec<Vec<u8>> = Pieces::new(&document, 0, document.open().unwrap())
                .map(|piece| piece.unwrap().bytes)
                .collect();
            assert_eq!(pieces.concat(), text.as_bytes());
            assert!(pieces.len() > 1);
            for pair in pieces.windows(2) {
                let (before, after) = (&pair[0], &pair[1]);
                assert!(before.len() <= PIECE && std::str::from_utf8(before).is_ok());
                let at_word =
                    before.last().unwrap().is_ascii_graphic() && after[0].is_ascii_whitespace();
                assert_eq!(at_word, ends_words);
            }
        }
    }
}
