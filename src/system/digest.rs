//! SHA-256 digests as text, which identify corpora and settings.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes` as 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a file's contents, which are read in blocks.
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

/// Formats bytes with two hexadecimal digits each.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
