//! Documents: the location and hash of a text, and streaming access to its bytes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hashed::Hashed;
use crate::lm::LmError;

/// File name endings of documents in a folder.
const ENDINGS: [&str; 4] = [".txt", ".txt.zst", ".bin", ".bin.zst"];

/// Endings of files that hold texts in another form, and what makes a text of them. Read as they are, their syntax would be part
/// of the text.
const OTHER_FORMS: [(&str, &str); 6] = [
    ("jsonl", "`jq -r .text FILE > FILE.txt`, with the name of its field"),
    ("json", "`jq -r '.[].text' FILE > FILE.txt`, with the name of its field"),
    (
        "parquet",
        "pandas: `open('FILE.txt', 'w').write('\\n'.join(pandas.read_parquet('FILE')['text']))`",
    ),
    ("csv", "pandas: `open('FILE.txt', 'w').write('\\n'.join(pandas.read_csv('FILE')['text']))`"),
    ("gz", "`gunzip FILE`"),
    ("xz", "`unxz FILE`"),
];

/// A compressed text may unpack to this many bytes ...
const FREE: u64 = 1 << 26;
/// ... or to this many times its compressed size. The best compressors shrink text to about a tenth, so a file of a few
/// kilobytes that unpacks to gigabytes is a mistake or a decompression bomb.
const MOST_TIMES: u64 = 100;

/// One text: a file, or bytes in memory.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// The file; a placeholder for a text in memory.
    path: PathBuf,
    /// The bytes of a text in memory.
    text: Option<Arc<[u8]>>,
    /// Number of bytes, uncompressed.
    pub bytes: u64,
    /// The SHA-256 of the bytes, uncompressed.
    pub sha256: String,
    /// Whether it lies in the subfolder `upstream` of a folder of texts.
    pub is_upstream: bool,
}

/// The subfolder with the documents of an upstream text.
const UPSTREAM: &str = "upstream";

impl Document {
    /// A text that is already in memory.
    pub fn in_memory(text: &[u8]) -> Self {
        Self {
            sha256: crate::system::sha256(text),
            bytes: text.len() as u64,
            path: PathBuf::from("text in memory"),
            text: Some(text.into()),
            is_upstream: false,
        }
    }

    /// The text of one file, decompressed if its name ends in `.zst`. Reads the file once to compute its hash.
    pub fn of_file(path: &Path) -> Result<Self, LmError> {
        let document = Self {
            path: path.to_owned(),
            text: None,
            bytes: 0,
            sha256: String::new(),
            is_upstream: false,
        };
        // Checked before opening, because opening a pipe blocks until another process writes to it.
        let metadata = std::fs::metadata(path).map_err(|e| document.failed(e))?;
        if !metadata.is_file() {
            let why =
                "is not an ordinary file; copy the text into one, since it is read more than once";
            return Err(LmError::file(path, why));
        }
        let ending =
            |path: &Path| path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let is_packed = ending(path).as_deref() == Some("zst");
        let (unpacked, first) = match is_packed {
            true => (path.with_extension(""), "unpack it by `unzstd FILE` and "),
            false => (path.to_owned(), ""),
        };
        let found = ending(&unpacked);
        let other = OTHER_FORMS.iter().find(|(name, _)| found.as_deref() == Some(name));
        if let Some((name, how)) = other {
            return Err(LmError::file(
                path,
                format!("is a .{name} file, not a plain text; {first}make one by {how}"),
            ));
        }
        let most = FREE.max(metadata.len().saturating_mul(MOST_TIMES));
        let mut hashed = Hashed::new(io::sink());
        let mut reader = document.open()?.take(most.saturating_add(1));
        let bytes = io::copy(&mut reader, &mut hashed).map_err(|e| document.failed(e))?;
        if bytes > most {
            let why = format!(
                "unpacks to more than {} MiB, over {MOST_TIMES} times its {} bytes, which no text does; if it \
                 is a text, unpack it and name the file without .zst",
                most >> 20,
                metadata.len()
            );
            return Err(LmError::file(path, why));
        }
        drop(reader);
        Ok(Self { bytes, sha256: hashed.sha256(), ..document })
    }

    /// A reader of all bytes.
    pub fn open(&self) -> Result<Box<dyn Read + Send + '_>, LmError> {
        if let Some(text) = &self.text {
            return Ok(Box::new(&**text));
        }
        let file = File::open(&self.path).map_err(|e| self.failed(e))?;
        if self.path.extension().is_some_and(|ending| ending == "zst") {
            Ok(Box::new(zstd::Decoder::new(file).map_err(|e| self.failed(e))?))
        } else {
            Ok(Box::new(BufReader::new(file)))
        }
    }

    /// A reader of the bytes in `start..end`.
    pub fn open_range(&self, start: u64, end: u64) -> Result<Box<dyn Read + Send + '_>, LmError> {
        let mut reader = self.open()?;
        io::copy(&mut reader.by_ref().take(start), &mut io::sink()).map_err(|e| self.failed(e))?;
        Ok(Box::new(reader.take(end - start)))
    }

    /// Converts an error of the file system to one that names the file.
    pub fn failed(&self, source: io::Error) -> LmError {
        LmError::Io { path: self.path.clone(), source }
    }
}

/// The texts of a folder and its subfolders, sorted by hash. So the order does
/// not depend on names, and copies of a text are adjacent. A folder that several links lead to is read once.
pub(super) fn of_folder(folder: &Path) -> Result<Vec<Document>, LmError> {
    let mut found = Vec::new();
    let (mut folders, mut seen) = (vec![folder.to_owned()], HashSet::new());
    let upstream = folder.join(UPSTREAM);
    while let Some(folder) = folders.pop() {
        let failed = LmError::io(&folder);
        if !seen.insert(folder.canonicalize().map_err(failed)?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                let is_upstream = path.starts_with(&upstream);
                found.push(Document { is_upstream, ..Document::of_file(&path)? });
            }
        }
    }
    if found.is_empty() {
        return Err(LmError::Refused(format!(
            "{} has no .txt, .txt.zst, .bin or .bin.zst file; name a folder of texts",
            folder.display()
        )));
    }
    found.sort_by(|a, b| a.sha256.cmp(&b.sha256));
    Ok(found)
}

/// The largest number of bytes of a piece.
pub(super) const PIECE: usize = 1 << 20;

/// The pieces of a text, of at most 1 MiB each, so that a corpus never has to be in memory as a whole.
///
/// A piece ends before white space that follows a printable ASCII character. Pre-tokenisation
/// always splits there, so the tokens of the pieces are those of the whole text. If 1 MiB has no such place, the piece
/// ends between two characters.
pub(super) struct Pieces<'a> {
    document: &'a Document,
    /// Opened for the first piece.
    reader: Option<Box<dyn Read + Send + 'a>>,
    /// What is left of the document's bytes.
    left: Range<u64>,
    /// Bytes that were read past the last cut.
    rest: Vec<u8>,
}

/// One piece and its offset in the document.
pub(super) struct Piece {
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// The piece as text; fails if it is not UTF-8.
    pub fn text(&self) -> Result<&str, LmError> {
        std::str::from_utf8(&self.bytes).map_err(|e| {
            let byte = self.start + e.valid_up_to() as u64;
            let what = "convert it, or set vocabulary=byte";
            LmError::Refused(format!("the text is not UTF-8 at byte {byte}; {what}"))
        })
    }
}

impl<'a> Pieces<'a> {
    /// The pieces of a range of the document's bytes.
    pub fn new(document: &'a Document, left: Range<u64>) -> Self {
        Self { document, reader: None, left, rest: Vec::new() }
    }

    fn read(&mut self) -> Result<Option<Piece>, LmError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(self.document.open_range(self.left.start, self.left.end)?),
        };
        let mut bytes = std::mem::take(&mut self.rest);
        let room = (PIECE - bytes.len()) as u64;
        reader.take(room).read_to_end(&mut bytes).map_err(|e| self.document.failed(e))?;
        if bytes.len() == PIECE {
            self.rest = bytes.split_off(cut(&bytes));
        }
        let start = self.left.start;
        self.left.start += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(Piece { start, bytes }))
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece, LmError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The place where a piece may end; at least 1 and at most its length.
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
    fn texts_in_another_form_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t.jsonl", "t.jsonl.zst", "t.parquet", "t.CSV", "t.txt.gz"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "{\"text\": \"a\"}").unwrap();
            let said = Document::of_file(&path).unwrap_err().to_string();
            assert!(said.contains("not a plain text"), "{said}");
        }
    }

    #[test]
    fn pieces_put_together_are_the_text_and_end_where_words_end() {
        let words = "none of the  words\n\nis cut ".repeat(100_000);
        let long = "é".repeat(PIECE);
        for (text, ends_words) in [(words, true), (long, false)] {
            let document = Document::in_memory(text.as_bytes());
            let pieces = Pieces::new(&document, 0..document.bytes);
            let pieces: Vec<Vec<u8>> = pieces.map(|piece| piece.unwrap().bytes).collect();
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
