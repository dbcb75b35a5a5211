//! The texts that a corpus is made of, and their division into splits by document.

use std::io::Read as _;
use std::path::Path;

use super::document::Pieces;
use super::document::{self, Document};
use super::vocabulary::{Encoder, Vocabulary};
use crate::lm::{LmError, TrainDefinition};
use crate::system::sha256;

/// The texts of a corpus: one file, or the files of a folder, and perhaps others for validation.
///
/// A file is one document, whatever is in it: `.zst` is unpacked, anything else read as it is. Of a
/// folder and the folders in it, each file ending in `.txt` or `.bin`, or in one of them and `.zst`, is a document.
#[derive(Clone, Debug)]
pub struct Texts {
    documents: Vec<Document>,
    valid: Vec<Document>,
    of_folder: bool,
}

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The document's place: those for validation come after the others.
    document: usize,
    start: u64,
    end: u64,
    /// Whether the document ends with it.
    pub is_last: bool,
}

impl Span {
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// The spans of each split, in the order of [`Split::ALL`].
pub(super) type Division = [Vec<Span>; 3];

impl Texts {
    /// Finds and hashes the texts at `text`, and at `valid` where the validation split has its own.
    ///
    /// # Errors
    /// A file or folder that cannot be read, or a folder without texts.
    pub fn find(text: &Path, valid: Option<&Path>) -> Result<Self, LmError> {
        let documents = |path: &Path| match path.is_dir() {
            true => document::of_folder(path),
            false => Ok(vec![Document::of_file(path)?]),
        };
        Ok(Self {
            documents: documents(text)?,
            valid: valid.map(documents).transpose()?.unwrap_or_default(),
            of_folder: text.is_dir() || valid.is_some_and(Path::is_dir),
        })
    }

    /// One document that is in memory.
    pub(super) fn in_memory(text: &[u8]) -> Self {
        let documents = vec![Document::in_memory(text)];
        Self { documents, valid: Vec::new(), of_folder: false }
    }

    /// SHA-256, in hexadecimal, of the one document's bytes, unpacked; of several, of the lines of
    /// their hashes in order.
    pub fn sha256(&self) -> String {
        combined(&self.documents)
    }

    /// The same of the texts for validation, where they have their own.
    pub fn valid_sha256(&self) -> Option<String> {
        (!self.valid.is_empty()).then(|| combined(&self.valid))
    }

    /// Whether an end-of-document token follows each document: where they come from a folder.
    pub(super) fn has_ends(&self) -> bool {
        self.of_folder
    }

    /// Bytes of all documents.
    pub(super) fn bytes(&self) -> u64 {
        self.all().map(|document| document.bytes).sum()
    }

    /// Every document, whole.
    fn whole(&self) -> Vec<Span> {
        self.all().enumerate().map(|(at, document)| whole(at, document)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Document> {
        self.documents.iter().chain(&self.valid)
    }

    /// Divides the documents into splits.
    ///
    /// Of several documents, in the order of their hashes, the first ones that hold `valid_fraction`
    /// of all bytes are for validation, the next that hold `test_fraction` for testing, the others
    /// for training; so a document is in one split only. A single document is split by position, in
    /// the order training, validation, test, between two characters. Texts for validation of their
    /// own take the place of `valid_fraction`. Records are divided as a single document is, between two of them.
    pub(super) fn divide(&self, definition: &TrainDefinition) -> Result<Division, LmError> {
        self.check_records(definition.records)?;
        let valid = if self.valid.is_empty() { definition.valid_fraction } else { 0.0 };
        let [train, mut held, test] = match &self.documents[..] {
            [document] => {
                by_position(document, valid, definition.test_fraction, definition.records)?
            }
            documents => by_document(documents, valid, definition.test_fraction)?,
        };
        let first = self.documents.len();
        held.extend(
            self.valid.iter().enumerate().map(|(at, document)| whole(first + at, document)),
        );
        Ok([train, held, test])
    }

    /// The documents as tokens of a vocabulary, one after another, and their bytes: of one split as
    /// the definition divides texts, or of all. What a split has of a document counts as one.
    ///
    /// # Errors
    /// Texts that cannot be divided; in the iterator, texts that cannot be read or that the
    /// vocabulary cannot write.
    pub fn documents<'a>(
        &'a self,
        definition: &TrainDefinition,
        vocabulary: &'a Vocabulary,
        split: Option<Split>,
    ) -> Result<(impl Iterator<Item = Result<Vec<u32>, LmError>> + use<'a>, u64), LmError> {
        self.check_records(definition.records)?;
        let spans = match split {
            None => self.whole(),
            Some(split) => std::mem::take(&mut self.divide(definition)?[split as usize]),
        };
        let bytes = spans.iter().map(Span::bytes).sum();
        let documents = spans.into_iter().map(|span| {
            let mut encoder = Encoder::default();
            let mut tokens = Vec::new();
            for piece in self.pieces(&span)? {
                let piece = piece?;
                encoder
                    .encode(vocabulary, piece.start, &piece.bytes, &mut tokens)
                    .map_err(piece.errors())?;
            }
            tokens.extend(vocabulary.end().filter(|_| span.is_last));
            Ok(tokens)
        });
        Ok((documents, bytes))
    }

    /// Holds every document to be a whole number of records of so many bytes, where there are records.
    fn check_records(&self, record: usize) -> Result<(), LmError> {
        let Some(record) = Some(record as u64).filter(|&record| record > 0) else { return Ok(()) };
        let is_broken =
            |document: &&Document| document.bytes == 0 || !document.bytes.is_multiple_of(record);
        match self.all().find(is_broken) {
            None => Ok(()),
            Some(document) => {
                let (name, bytes) = (document.name(), document.bytes);
                Err(LmError::Refused(format!(
                    "{}: {bytes} bytes are not a whole number of records of {record} bytes ({} records and {} \
                     bytes); set records to the bytes of one record",
                    name.display(),
                    bytes / record,
                    bytes % record
                )))
            }
        }
    }

    /// The first bytes of the documents, about so many, as text; they follow one another.
    ///
    /// # Errors
    /// Texts that cannot be read, or are not UTF-8.
    pub fn beginning(&self, bytes: usize) -> Result<String, LmError> {
        let mut text = String::new();
        'documents: for span in self.whole() {
            for piece in self.pieces(&span)? {
                let piece = piece?;
                let errors = piece.errors();
                let utf8 = |e: std::string::FromUtf8Error| LmError::NotUtf8 {
                    byte: e.utf8_error().valid_up_to(),
                };
                text.push_str(&String::from_utf8(piece.bytes).map_err(utf8).map_err(errors)?);
                if text.len() >= bytes {
                    break 'documents;
                }
            }
        }
        text.truncate(text.floor_char_boundary(bytes));
        Ok(text)
    }

    /// The text of a span in pieces.
    pub(super) fn pieces(&self, span: &Span) -> Result<Pieces<'_>, LmError> {
        let place = span.document;
        let document = match place.checked_sub(self.documents.len()) {
            None => &self.documents[place],
            Some(place) => &self.valid[place],
        };
        Ok(Pieces::new(document, span.start, document.open_range(span.start, span.end)?))
    }
}

fn combined(documents: &[Document]) -> String {
    match documents {
        [document] => document.sha256.clone(),
        several => {
            let lines: String = several.iter().map(|d| format!("{}\n", d.sha256)).collect();
            sha256(lines.as_bytes())
        }
    }
}

fn whole(place: usize, document: &Document) -> Span {
    Span { document: place, start: 0, end: document.bytes, is_last: true }
}

/// Of a document of records, in bytes each, where they are not 0, the shares are of their number.
fn by_position(
    document: &Document,
    valid: f64,
    test: f64,
    record: usize,
) -> Result<Division, LmError> {
    let share = |share: f64| match record as u64 {
        0 => between_characters(document, (document.bytes as f64 * share) as u64),
        record => Ok(((document.bytes / record) as f64 * share) as u64 * record),
    };
    let cuts = [0, share(1.0 - valid - test)?, share(1.0 - test)?, document.bytes];
    let part = |at: usize| {
        let [start, end] = [cuts[at], cuts[at + 1]];
        let is_last = end == document.bytes;
        let span = Span { document: 0, start, end, is_last };
        if start < end { vec![span] } else { Vec::new() }
    };
    Ok([part(0), part(1), part(2)])
}

fn by_document(documents: &[Document], valid: f64, test: f64) -> Result<Division, LmError> {
    let all: u64 = documents.iter().map(|document| document.bytes).sum();
    let mut left = documents.iter().enumerate().map(|(at, document)| whole(at, document));
    let mut first_of = |fraction: f64| {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while (bytes as f64) < fraction * all as f64
            && let Some(span) = left.next()
        {
            bytes += span.bytes();
            taken.push(span);
        }
        taken
    };
    let (held, tested) = (first_of(valid), first_of(test));
    let train: Vec<Span> = left.collect();
    if train.is_empty() || (test > 0.0 && tested.is_empty()) {
        return Err(LmError::Refused(format!(
            "{} documents are too few for valid_fraction and test_fraction; add some, lower a fraction, or give \
             one file, which is split by position",
            documents.len()
        )));
    }
    Ok([train, held, tested])
}

/// The last place at or before `place` where no UTF-8 character is cut in two.
fn between_characters(document: &Document, place: u64) -> Result<u64, LmError> {
    if place == 0 || place >= document.bytes {
        return Ok(place.min(document.bytes));
    }
    let start = place.saturating_sub(3);
    let mut bytes = Vec::new();
    let mut reader = document.open_range(start, place + 1)?;
    reader.read_to_end(&mut bytes).map_err(|e| document.failed(e))?;
    let continues = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    // In bytes that are no text, four may continue in a row: then the place is as good as any.
    let at = bytes.iter().rposition(|&byte| !continues(byte));
    Ok(at.map_or(place, |at| start + at as u64))
}

/// A part of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// The part that the model learns from.
    Train,
    /// The part held out for the evaluations during training.
    Valid,
    /// The part that training never looks at.
    Test,
}

impl Split {
    /// Every split, in the order in which tokens are stored.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// The name that files use: `train`, `valid` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }
}
