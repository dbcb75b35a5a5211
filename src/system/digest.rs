//! SHA-256 as text: what tells corpora and settings apart.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes` in 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The same of pieces, one after another.
#[cfg(feature = "study")]
pub(crate) fn sha256_of<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> String {
    let mut hash = Sha256::new();
    pieces.for_each(|piece| hash.update(piece));
    hexadecimal(&hash.finalize())
}

/// The same of what a file holds, however long it is.
pub(crate) fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok(hexadecimal(&hash.finalize()));
        }
        hash.update(part);
        let read = part.len();
        reader.consume(read);
    }
}

/// Two hexadecimal digits a byte.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
