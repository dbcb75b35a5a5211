//! Tokens on the disk, made once and found again.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::tokens::{Store, Width};
use super::vocabulary::Vocabulary;
use crate::lm::LmError;
use crate::system::hexadecimal;
use crate::system::write_whole_with;

/// What ends a file of tokens. The number goes up with every change of the layout or of what the
/// same key gives.
const MAGIC: &[u8; 16] = b"rank-study tok 1";
/// The magic and the length of the description before it.
const TAIL: usize = MAGIC.len() + 8;

/// A file of tokens: the tokens of the splits one after another, lowest byte first; a description as
/// JSON; the description's length in 8 bytes; the magic.
#[derive(Serialize, Deserialize)]
struct Description {
    /// What the tokens are of.
    key: String,
    /// SHA-256 of the tokens' bytes.
    sha256: String,
    counts: [usize; 3],
    vocabulary: Vocabulary,
}

/// The tokens and the vocabulary at `path`, where a whole file of this `key` lies there; none where
/// there is no file, or where it is cut off, damaged, or another's.
pub(super) fn read(path: &Path, key: &str) -> Result<Option<(Store, Vocabulary)>, LmError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LmError::Io { path: path.to_owned(), source }),
    };
    // SAFETY: files of tokens are written under another name and renamed, and never changed under
    // this one; one that somebody else cuts while it is mapped would end the process.
    let map = unsafe { Mmap::map(&file) };
    let map = map.map_err(|source| LmError::Io { path: path.to_owned(), source })?;
    let Some((description, tokens)) = describe(&map) else { return Ok(None) };
    let width = Width::of(description.vocabulary.size());
    let count: usize = description.counts.iter().sum();
    let whole = description.key == key
        && tokens == count * width.bytes()
        && description.sha256 == hexadecimal(&Sha256::digest(&map[..tokens]));
    Ok(whole.then(|| (Store::mapped(map, width, description.counts), description.vocabulary)))
}

/// The description at the end of a file, and where the tokens before it end.
fn describe(file: &[u8]) -> Option<(Description, usize)> {
    let (rest, tail) = file.split_at_checked(file.len().checked_sub(TAIL)?)?;
    let (length, magic) = tail.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let tokens = rest.len().checked_sub(length)?;
    let description = serde_json::from_slice(&rest[tokens..]).ok()?;
    (magic == MAGIC).then_some((description, tokens))
}

/// Writes a file of tokens, whole or not at all. `encode` writes the tokens' bytes and says how many
/// tokens each split has.
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

/// Passes on what is written, and hashes it.
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
