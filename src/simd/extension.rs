//! The vector extensions, and which of them this processor has.

use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

/// A vector extension that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extension {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
}

impl Extension {
    /// Every extension that this processor has, widest first.
    pub fn available() -> impl Iterator<Item = Self> {
        let portable = std::iter::once(Self::Portable(Portable));
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = Avx512::detect().map(Self::Avx512);
            avx512.into_iter().chain(Avx2::detect().map(Self::Avx2)).chain(portable)
        }
        #[cfg(not(target_arch = "x86_64"))]
        portable
    }

    /// The one with the widest vectors.
    pub fn widest() -> Self {
        Self::available().next().unwrap_or(Self::Portable(Portable))
    }
}
