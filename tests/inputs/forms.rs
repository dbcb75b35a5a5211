//! What files look like: those that begin with a header of text are altered there, and the header's length put right.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{alter, words};

/// What is known of a target's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing.
    Bytes,
    /// That what they are stands at their end.
    Tail,
    /// That they are text.
    Text,
    /// That they begin with a header of text.
    Headed(Headed),
}

/// Files that begin with a header of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headed {
    /// Eight bytes of length, then JSON.
    Safetensors,
    /// Eight bytes of magic and version, two of length, then a Python dictionary.
    Npy,
}

impl Headed {
    /// The bytes before the length, and those of the length.
    fn prefix(self) -> (usize, usize) {
        match self {
            Self::Safetensors => (0, 8),
            Self::Npy => (8, 2),
        }
    }

    /// The header's text and what is after it; none of a file that has been altered in that.
    fn split(self, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        let (before, width) = self.prefix();
        let mut length = [0; 8];
        length[..width].copy_from_slice(bytes.get(before..before + width)?);
        let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
        bytes[before + width..].split_at_checked(length)
    }

    /// Alters the header as text, and puts its length right.
    pub fn alter(self, bytes: &mut Vec<u8>, other: &[u8], generator: &mut ChaCha8Rng) {
        let (Some((header, rest)), true) = (self.split(bytes), generator.random_range(0..5) > 0)
        else {
            return alter::alter(bytes, other, generator);
        };
        let (mut header, rest) = (header.to_vec(), rest.to_vec());
        let other = self.split(other).map_or(&[][..], |(header, _)| header);
        words::alter(&mut header, other, generator);
        let (before, width) = self.prefix();
        bytes.truncate(before);
        bytes.extend(&(header.len() as u64).to_le_bytes()[..width]);
        bytes.extend(header);
        bytes.extend(rest);
    }
}
