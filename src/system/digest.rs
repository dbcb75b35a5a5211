//! SHA-256 as text: what tells corpora and settings apart.

use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes` in 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Two hexadecimal digits a byte.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
