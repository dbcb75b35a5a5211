//! Storage of tokens, two bytes each: in memory or in a memory-mapped file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hashed::Hashed;
use super::texts::SPLITS;
use super::vocabulary::Vocabulary;
use crate::lm::LmError;
use crate::system::{hexadecimal, write_whole_with};

/// Writes tokens, two bytes each, in the byte order of the machine.
pub(super) fn write_tokens(tokens: &[u32], to: &mut impl Write) -> io::Result<()> {
    let narrow: Vec<u16> = tokens.iter().map(|&token| token as u16).collect();
    to.write_all(bytemuck::cast_slice(&narrow))
}

/// All tokens of a corpus, and the sizes of its splits.
#[derive(Clone, Debug)]
pub(super) struct Store {
    tokens: Place,
    /// Number of tokens of each split, in the order of [`crate::lm::Split::ALL`].
    counts: [usize; SPLITS],
}

#[derive(Clone, Debug)]
enum Place {
    Memory(Arc<Vec<u16>>),
    /// At the start of the file.
    Mapped(Arc<Mmap>),
}

impl Store {
    pub fn in_memory(tokens: Vec<u16>, counts: [usize; SPLITS]) -> Self {
        Self { tokens: Place::Memory(Arc::new(tokens)), counts }
    }

    /// The tokens of split number `place`.
    pub fn split(&self, place: usize) -> &[u16] {
        let tokens = match &self.tokens {
            Place::Memory(tokens) => tokens,
            Place::Mapped(file) => {
                bytemuck::cast_slice(&file[..size_of::<u16>() * self.counts.iter().sum::<usize>()])
            }
        };
        let start = self.counts[..place].iter().sum();
        &tokens[start..][..self.counts[place]]
    }
}

/// The last bytes of a token file. The number increases with every change of the layout or of the tokens that
/// a key stands for.
const MAGIC: &[u8; 16] = b"rank-study tok 2";
/// Length of the magic and of the description's length before it.
const TAIL: usize = MAGIC.len() + 8;

/// The description in a token file. The file has the tokens of the splits one after another; the description as JSON; the
/// description's length in 8 bytes; the magic.
#[derive(Serialize, Deserialize)]
struct Description {
    /// Hash of everything that the tokens depend on.
    key: String,
    /// SHA-256 of the tokens' bytes.
    sha256: String,
    counts: [usize; SPLITS],
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
    let count: usize = description.counts.iter().sum();
    let whole = description.key == key
        && tokens == count * size_of::<u16>()
        && description.sha256 == hexadecimal(&Sha256::digest(&map[..tokens]));
    let store = Store { tokens: Place::Mapped(Arc::new(map)), counts: description.counts };
    Ok(whole.then_some((store, description.vocabulary)))
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
    encode: impl FnOnce(&mut dyn Write) -> Result<[usize; SPLITS], LmError>,
) -> Result<(), LmError> {
    let written = write_whole_with(path, |file| {
        let mut hashed = Hashed::new(file);
        let counts = encode(&mut hashed).map_err(io::Error::other)?;
        let description = serde_json::to_vec(&Description {
            key: key.to_owned(),
            sha256: hashed.sha256(),
            counts,
            vocabulary: vocabulary.clone(),
        })?;
        hashed.write_all(&description)?;
        hashed.write_all(&(description.len() as u64).to_le_bytes())?;
        hashed.write_all(MAGIC)
    });
    let of_encoder = |error: io::Error| error.downcast::<LmError>();
    let failed = |error| of_encoder(error).unwrap_or_else(LmError::io(path));
    written.map_err(failed)
}
