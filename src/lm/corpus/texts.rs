//! The texts of a corpus and their division into splits.

use std::io::Read as _;
use std::path::Path;

use super::document::{self, Document, Pieces};
use super::vocabulary::{Encoder, Vocabulary};
use crate::lm::{LmError, TrainDefinition};
use crate::system::sha256;

/// The texts of a corpus: one file, or the files of a folder, and optional texts for validation.
///
/// Each file is one document. A `.zst` file is decompressed, anything else is read as it is. In a
/// folder and its subfolders, the files ending in `.txt`, `.bin`, `.txt.zst` or `.bin.zst` are documents.
/// Those in a folder's subfolder `upstream` are an upstream text, which training reads in its first `upstream_steps` only.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Those for validation follow the others.
    documents: Vec<Document>,
    /// Index of the first document for validation.
    first_valid: usize,
    of_folder: bool,
}

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Index of the document.
    document: usize,
    start: u64,
    end: u64,
    /// Whether the span ends where the document ends.
    pub is_last: bool,
}

impl Span {
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// The spans of each split, in the order of [`Split::ALL`].
pub(super) type Division = [Vec<Span>; SPLITS];

impl Texts {
    /// Finds and hashes the texts at `text`, and at `valid` if the validation split has separate texts.
    ///
    /// # Errors
    /// A file or folder that cannot be read, or a folder without texts.
    pub fn find(text: &Path, valid: Option<&Path>) -> Result<Self, LmError> {
        let documents = |path: &Path| match path.is_dir() {
            true => document::of_folder(path),
            false => Ok(vec![Document::of_file(path)?]),
        };
        let mut all = documents(text)?;
        let first_valid = all.len();
        all.extend(valid.map(documents).transpose()?.unwrap_or_default());
        let of_folder = text.is_dir() || valid.is_some_and(Path::is_dir);
        Ok(Self { documents: all, first_valid, of_folder })
    }

    /// A single document in memory.
    pub(super) fn in_memory(text: &[u8]) -> Self {
        Self { documents: vec![Document::in_memory(text)], first_valid: 1, of_folder: false }
    }

    /// The SHA-256, in hexadecimal, of the uncompressed bytes of the only document; for several documents, of the lines of
    /// their hashes in order.
    pub fn sha256(&self) -> String {
        combined(&self.documents[..self.first_valid])
    }

    /// As [`Self::sha256`] for the validation texts; `None` if there are no separate ones.
    pub fn valid_sha256(&self) -> Option<String> {
        let valid = &self.documents[self.first_valid..];
        (!valid.is_empty()).then(|| combined(valid))
    }

    /// Whether an end-of-document token follows each document: true if they come from a folder.
    pub(super) fn has_ends(&self) -> bool {
        self.of_folder
    }

    /// Number of bytes of all documents.
    pub(super) fn bytes(&self) -> u64 {
        self.documents.iter().map(|document| document.bytes).sum()
    }

    /// Spans that cover every document.
    fn whole(&self) -> Vec<Span> {
        self.documents.iter().enumerate().map(|(at, document)| whole(at, document)).collect()
    }

    /// Divides the documents into splits.
    ///
    /// Several documents are taken in the order of their hashes. The first ones, which hold `valid_fraction` of all bytes,
    /// are for validation. The next ones, with `test_fraction`, are for testing, the rest for training. So each document is
    /// in one split only. A single document is split by position, between two characters, in the order training,
    /// validation, test. Separate validation texts replace `valid_fraction`.
    pub(super) fn divide(&self, definition: &TrainDefinition) -> Result<Division, LmError> {
        let (upstream, downstream): (Vec<_>, Vec<_>) =
            self.whole().into_iter().partition(|span| self.documents[span.document].is_upstream);
        let [train, valid, test] = self.parts(downstream, definition, definition.test_fraction)?;
        let [upstream, upstream_valid, _] = match upstream.is_empty() {
            true => Default::default(),
            false => self.parts(upstream, definition, 0.0)?,
        };
        Ok([train, valid, test, upstream, upstream_valid])
    }

    /// Divides documents into parts for training, validation and tests.
    fn parts(
        &self,
        documents: Vec<Span>,
        definition: &TrainDefinition,
        test: f64,
    ) -> Result<[Vec<Span>; 3], LmError> {
        let (documents, for_valid): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|span| span.document < self.first_valid);
        let valid = if for_valid.is_empty() { definition.valid_fraction } else { 0.0 };
        let [train, mut held, test] = match documents[..] {
            [] => {
                return Err(LmError::Refused(
                    "a text in the subfolder upstream needs one for training beside it, as has that for                      validation; add it"
                        .to_owned(),
                ));
            }
            [whole] => by_position(&self.documents[whole.document], whole, valid, test)?,
            _ => by_document(documents, valid, test)?,
        };
        held.extend(for_valid);
        Ok([train, held, test])
    }

    /// The tokens of each document, one document after another, and the number of bytes: for one split as the
    /// definition divides texts, or for all. The part of a document that lies in a split counts as one document.
    ///
    /// # Errors
    /// Texts that cannot be divided. The iterator returns an error for texts that cannot be read or that the
    /// vocabulary cannot encode.
    pub fn documents<'a>(
        &'a self,
        definition: &TrainDefinition,
        vocabulary: &'a Vocabulary,
        split: Option<Split>,
    ) -> Result<(impl Iterator<Item = Result<Vec<u32>, LmError>> + use<'a>, u64), LmError> {
        let spans = match split {
            None => self.whole(),
            Some(split) => std::mem::take(&mut self.divide(definition)?[split as usize]),
        };
        let bytes = spans.iter().map(Span::bytes).sum();
        let documents = spans.into_iter().map(|span| {
            let mut encoder = Encoder::default();
            let mut tokens = Vec::new();
            for piece in self.pieces(&span) {
                encoder.encode(vocabulary, &piece?, &mut tokens)?;
            }
            tokens.extend(vocabulary.end().filter(|_| span.is_last));
            Ok(tokens)
        });
        Ok((documents, bytes))
    }

    /// The first bytes of the concatenated documents as text, at most `bytes` of them.
    ///
    /// # Errors
    /// Texts that cannot be read or that are not UTF-8.
    pub fn beginning(&self, bytes: usize) -> Result<String, LmError> {
        let mut text = String::new();
        for piece in self.whole().iter().flat_map(|span| self.pieces(span)) {
            text.push_str(piece?.text()?);
            if text.len() >= bytes {
                break;
            }
        }
        text.truncate(text.floor_char_boundary(bytes));
        Ok(text)
    }

    /// The bytes of a span in pieces.
    pub(super) fn pieces(&self, span: &Span) -> Pieces<'_> {
        Pieces::new(&self.documents[span.document], span.start..span.end)
    }
}

fn combined(documents: &[Document]) -> String {
    match documents {
        [document] => document.sha256.clone(),
        several => {
            let line = |document: &Document| {
                let mark = if document.is_upstream { " upstream" } else { "" };
                format!("{}{mark}\n", document.sha256)
            };
            sha256(several.iter().map(line).collect::<String>().as_bytes())
        }
    }
}

fn whole(place: usize, document: &Document) -> Span {
    Span { document: place, start: 0, end: document.bytes, is_last: true }
}

/// Splits one document by position.
fn by_position(
    document: &Document,
    whole: Span,
    valid: f64,
    test: f64,
) -> Result<[Vec<Span>; 3], LmError> {
    let share = |share: f64| between_characters(document, (document.bytes as f64 * share) as u64);
    let cuts = [0, share(1.0 - valid - test)?, share(1.0 - test)?, document.bytes];
    let part = |at: usize| {
        let [start, end] = [cuts[at], cuts[at + 1]];
        let is_last = end == document.bytes;
        let span = Span { start, end, is_last, ..whole };
        if start < end { vec![span] } else { Vec::new() }
    };
    Ok([part(0), part(1), part(2)])
}

fn by_document(documents: Vec<Span>, valid: f64, test: f64) -> Result<[Vec<Span>; 3], LmError> {
    let all: u64 = documents.iter().map(Span::bytes).sum();
    let count = documents.len();
    let mut left = documents.into_iter();
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
            "{count} documents are too few for valid_fraction and test_fraction; add some, lower a fraction, or give \
             one file, which is split by position"
        )));
    }
    Ok([train, held, tested])
}

/// The last position at or before `place` that is not inside a UTF-8 character.
fn between_characters(document: &Document, place: u64) -> Result<u64, LmError> {
    if place == 0 || place >= document.bytes {
        return Ok(place.min(document.bytes));
    }
    let start = place.saturating_sub(3);
    let mut bytes = Vec::new();
    let mut reader = document.open_range(start, place + 1)?;
    reader.read_to_end(&mut bytes).map_err(|e| document.failed(e))?;
    let continues = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    // In bytes that are not text, four continuation bytes may follow each other: then `place` itself is as good as any.
    let at = bytes.iter().rposition(|&byte| !continues(byte));
    Ok(at.map_or(place, |at| start + at as u64))
}

/// One of the parts of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Split {
    /// The part that the model is trained on.
    Train,
    /// The part for evaluations during training.
    Valid,
    /// The part that training never reads.
    Test,
    /// The part that training reads in its first `upstream_steps`; empty if there is no upstream text.
    Upstream,
    /// The part for evaluations of what is kept of the upstream text.
    UpstreamValid,
}

/// Number of splits.
pub(super) const SPLITS: usize = Split::ALL.len();

impl Split {
    /// All splits, in the order in which their tokens are stored.
    pub const ALL: [Self; 5] =
        [Self::Train, Self::Valid, Self::Test, Self::Upstream, Self::UpstreamValid];

    /// The name that files use, such as `train` or `upstream-valid`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
