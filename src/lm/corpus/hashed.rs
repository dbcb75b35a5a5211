//! A writer that hashes what it writes.

use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use crate::system::hexadecimal;

/// A writer that also hashes the bytes written.
pub(super) struct Hashed<W> {
    to: W,
    hash: Sha256,
}

impl<W> Hashed<W> {
    pub fn new(to: W) -> Self {
        Self { to, hash: Sha256::new() }
    }

    /// The SHA-256 of the bytes written so far, in hexadecimal.
    pub fn sha256(&self) -> String {
        hexadecimal(&self.hash.clone().finalize())
    }
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
