//! Vector extensions: which of them this processor has, and which one the program uses.

use std::sync::LazyLock;

use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

/// The environment variable that selects an instruction set.
const VARIABLE: &str = "RANK_STUDY_INSTRUCTIONS";

/// A vector extension that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extension {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable(Portable),
}

/// The extension selected by the environment, or else the widest one. It is read once, so that all
/// parts of a process use the same.
static USED: LazyLock<Result<Extension, String>> = LazyLock::new(|| {
    let asked = std::env::var_os(VARIABLE).unwrap_or_default();
    choose(&asked.to_string_lossy(), &Extension::available().collect::<Vec<_>>())
});

/// The extension named `asked` out of those available, widest first; the first one if the name is
/// empty.
fn choose(asked: &str, available: &[Extension]) -> Result<Extension, String> {
    let found = available.iter().find(|extension| asked.is_empty() || extension.name() == asked);
    found.copied().ok_or_else(|| {
        let levels: Vec<&str> = available.iter().map(|extension| extension.name()).collect();
        format!(
            "{VARIABLE}={asked}: this processor has no such instruction set; set one of {}, or leave it unset for \
             the widest",
            levels.join(", ")
        )
    })
}

/// Checks that the instruction set named by `RANK_STUDY_INSTRUCTIONS`, if any, is available.
///
/// # Errors
/// A message, if this processor lacks it or its name is unknown.
pub fn check_instructions() -> Result<(), String> {
    USED.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// The instruction sets that this processor has, widest first, and the one selected by
/// `RANK_STUDY_INSTRUCTIONS`, if any.
pub fn instructions_there() -> (Vec<&'static str>, Option<&'static str>) {
    let there: Vec<_> = Extension::available().map(Extension::name).collect();
    let asked = std::env::var_os(VARIABLE).unwrap_or_default();
    let held = there.iter().copied().find(|&name| asked == name);
    (there, held)
}

impl Extension {
    /// All extensions that this processor has, widest first, regardless of the environment.
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

    /// The extension selected by `RANK_STUDY_INSTRUCTIONS`, or else the one with the widest vectors.
    ///
    /// # Panics
    /// If the variable names an instruction set that is not available; no other one is used instead. Programs
    /// call [`check_instructions`] first.
    #[inline]
    pub fn widest() -> Self {
        match &*USED {
            Ok(extension) => *extension,
            Err(error) => panic!("{error}"),
        }
    }

    /// The name as used in the environment variable.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            Self::Portable(_) => "portable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_to_that_extension_none_to_the_widest_and_others_are_refused() {
        let available: Vec<Extension> = Extension::available().collect();
        assert_eq!(choose("", &available).unwrap().name(), available[0].name());
        for extension in &available {
            assert_eq!(choose(extension.name(), &available).unwrap().name(), extension.name());
        }
        let error = choose("avx2", &[Extension::Portable(Portable)]).unwrap_err();
        assert!(error.contains("=avx2:") && error.contains("portable"), "{error}");
    }

    /// Test suites for one instruction set rely on this: the selected one is used.
    #[test]
    fn the_environment_is_followed() {
        if let Some(asked) = std::env::var_os(VARIABLE).filter(|asked| !asked.is_empty()) {
            assert_eq!(Extension::widest().name(), asked.to_string_lossy());
        }
    }
}
