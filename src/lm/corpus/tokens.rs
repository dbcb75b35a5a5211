//! Storage of tokens: in memory or in a memory-mapped file, two or four bytes each.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::vocabulary::Vocabulary;
use crate::lm::LmError;
use crate::system::{hexadecimal, write_whole_with};

/// Number of bytes per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Four,
}

impl Width {
    /// The width for a vocabulary of `size` symbols.
    pub fn of(size: usize) -> Self {
        if size <= 1 << 16 { Self::Two } else { Self::Four }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Writes tokens in little-endian order.
    pub fn write(self, tokens: &[u32], to: &mut impl Write) -> io::Result<()> {
        let bytes: Vec<u8> = match self {
            Self::Two => tokens.iter().flat_map(|&token| (token as u16).to_le_bytes()).collect(),
            Self::Four => tokens.iter().flat_map(|token| token.to_le_bytes()).collect(),
        };
        to.write_all(&bytes)
    }
}

/// All tokens of a corpus, and the sizes of its splits.
#[derive(Clone)]
pub(super) struct Store {
    bytes: Bytes,
    width: Width,
    /// Number of tokens of each split, in the order of [`crate::lm::Split::ALL`].
    counts: [usize; 3],
}

#[derive(Clone)]
enum Bytes {
    Memory(Arc<Vec<u8>>),
    Mapped(Arc<Mmap>),
}

impl Store {
    pub fn in_memory(bytes: Vec<u8>, width: Width, counts: [usize; 3]) -> Self {
        Self { bytes: Bytes::Memory(Arc::new(bytes)), width, counts }
    }

    /// Tokens at the start of a mapped file.
    pub fn mapped(file: Mmap, width: Width, counts: [usize; 3]) -> Self {
        Self { bytes: Bytes::Mapped(Arc::new(file)), width, counts }
    }

    /// The tokens of split number `place`.
    pub fn split(&self, place: usize) -> Tokens<'_> {
        let bytes: &[u8] = match &self.bytes {
            Bytes::Memory(bytes) => bytes,
            Bytes::Mapped(file) => file,
        };
        let start: usize = self.counts[..place].iter().sum();
        let [start, end] = [start, start + self.counts[place]].map(|at| at * self.width.bytes());
        match self.width {
            Width::Two => Tokens::Two(bytes[start..end].as_chunks().0),
            Width::Four => Tokens::Four(bytes[start..end].as_chunks().0),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:?} tokens, {:?} bytes each)", self.counts, self.width.bytes())
    }
}

/// Tokens in the order of a text, stored in two or four bytes each, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Tokens<'a> {
    /// Two bytes each, for a vocabulary of at most 65,536 symbols.
    Two(&'a [[u8; 2]]),
    /// Four bytes each, for a larger vocabulary.
    Four(&'a [[u8; 4]]),
    /// As [`crate::lm::Vocabulary::encode`] returns them.
    Plain(&'a [u32]),
}

impl<'a> Tokens<'a> {
    /// The number of tokens.
    pub fn len(self) -> usize {
        match self {
            Self::Two(tokens) => tokens.len(),
            Self::Four(tokens) => tokens.len(),
            Self::Plain(tokens) => tokens.len(),
        }
    }

    /// Whether there are no tokens.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The tokens at the positions `range`, which must be within [`Self::len`].
    pub fn range(self, range: Range<usize>) -> Self {
        match self {
            Self::Two(tokens) => Self::Two(&tokens[range]),
            Self::Four(tokens) => Self::Four(&tokens[range]),
            Self::Plain(tokens) => Self::Plain(&tokens[range]),
        }
    }

    /// An iterator over the tokens.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        (0..self.len()).map(move |at| match self {
            Self::Two(tokens) => u16::from_le_bytes(tokens[at]).into(),
            Self::Four(tokens) => u32::from_le_bytes(tokens[at]),
            Self::Plain(tokens) => tokens[at],
        })
    }
}

impl<'a> From<&'a [u32]> for Tokens<'a> {
    fn from(tokens: &'a [u32]) -> Self {
        Self::Plain(tokens)
    }
}

/// The last bytes of a token file. The number increases with every change of the layout or of the tokens that
/// a key stands for.
const MAGIC: &[u8; 16] = b"rank-study tok 1";
/// Length of the magic and of the description's length before it.
const TAIL: usize = MAGIC.len() + 8;

/// The description in a token file. The file has the tokens of the splits one after another, little-endian; the description
/// as JSON; the description's length in 8 bytes; the magic.
#[derive(Serialize, Deserialize)]
struct Description {
    /// Hash of everything that the tokens depend on.
    key: String,
    /// SHA-256 of the tokens' bytes.
    sha256: String,
    counts: [usize; 3],
    vocabulary: Vocabulary,
}

/// Maps the token file at `path` and returns its tokens and vocabulary. Returns `None` if the file is missing, truncated,
/// damaged, or has another `key`.
pub(super) fn read(path: &Path, key: &str) -> Result<Option<(Store, Vocabulary)>, LmError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LmError::Io { path: path.to_owned(), source }),
    };
    // SAFETY: token files are written under another name and renamed, and never changed under
    // this one. If another program truncates a mapped file, the process is ended.
    let map = unsafe { Mmap::map(&file) };
    let map = map.map_err(LmError::io(path))?;
    let Some((description, tokens)) = describe(&map) else { return Ok(None) };
    let width = Width::of(description.vocabulary.size());
    let count: usize = description.counts.iter().sum();
    let whole = description.key == key
        && tokens == count * width.bytes()
        && description.sha256 == hexadecimal(&Sha256::digest(&map[..tokens]));
    Ok(whole.then(|| (Store::mapped(map, width, description.counts), description.vocabulary)))
}

/// The description at the end of a file, and the offset where the tokens before it end.
fn describe(file: &[u8]) -> Option<(Description, usize)> {
    let (rest, tail) = file.split_at_checked(file.len().checked_sub(TAIL)?)?;
    let (length, magic) = tail.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let tokens = rest.len().checked_sub(length)?;
    let description = serde_json::from_slice(&rest[tokens..]).ok()?;
    (magic == MAGIC).then_some((description, tokens))
}

/// Writes a token file atomically. `encode` writes the tokens' bytes and returns the number of
/// tokens of each split.
pub(super) fn write(
    path: &Path,
    key: &str,
    vocabulary: &Vocabulary,
    encode: impl FnOnce(&mut dyn Write) -> Result<[usize; 3], LmError>,
) -> Result<(), LmError> {
    let mut wrong = None;
    let written = write_whole_with(path, |file| {
        let mut hashed = Hashed { to: file, hash: Sha256::new() };
        let counts = encode(&mut hashed).map_err(|error| {
            let told = io::Error::other(error.to_string());
            wrong = Some(error);
            told
        })?;
        let Hashed { to, hash } = hashed;
        let description = serde_json::to_vec(&Description {
            key: key.to_owned(),
            sha256: hexadecimal(&hash.finalize()),
            counts,
            vocabulary: vocabulary.clone(),
        })?;
        to.write_all(&description)?;
        to.write_all(&(description.len() as u64).to_le_bytes())?;
        to.write_all(MAGIC)
    });
    match (wrong, written) {
        (Some(error), _) => Err(error),
        (None, Err(source)) => Err(LmError::Io { path: path.to_owned(), source }),
        (None, Ok(())) => Ok(()),
    }
}

/// A writer that also hashes the bytes written.
struct Hashed<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_lie_one_after_another_in_either_width() {
        for (size, width) in [(1 << 16, Width::Two), ((1 << 16) + 1, Width::Four)] {
            assert_eq!(Width::of(size), width);
            let tokens = [0, 1, 255, 256, size as u32 - 1];
            let mut bytes = Vec::new();
            width.write(&tokens, &mut bytes).unwrap();
            assert_eq!(bytes.len(), 5 * width.bytes());
            let store = Store::in_memory(bytes, width, [3, 2, 0]);
            assert_eq!(store.split(0).iter().collect::<Vec<_>>(), [0, 1, 255]);
            assert_eq!(store.split(1).iter().collect::<Vec<_>>(), [256, size as u32 - 1]);
            assert_eq!(store.split(1).range(1..2).iter().next(), Some(size as u32 - 1));
            assert!(store.split(2).is_empty());
        }
    }
}
