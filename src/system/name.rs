//! Names that become files, folders and keys.

#[cfg(feature = "study")]
use std::path::{Component, Path, PathBuf};

use super::text::is_obeyed;

/// The longest name that is given here, in bytes: with a text's name and a hash behind it, a folder's stays under
/// [`LONGEST_THERE`].
const LONGEST: usize = 100;
/// The longest that most file systems have.
const LONGEST_THERE: usize = 255;
/// What Windows keeps for devices, whatever ending follows.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// The same with a digit.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Why a name cannot become a file's, a folder's or a key. Each message follows the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No name at all.
    #[error("is empty")]
    Empty,
    /// A name that a file system may not take.
    #[error("has {bytes} bytes; use at most {most}")]
    Long {
        /// Its length.
        bytes: usize,
        /// The longest that is taken.
        most: usize,
    },
    /// A character that some system or shell takes for more than itself.
    #[error("contains {0:?}; use letters, digits, -, _ and dots")]
    Character(char),
    /// A separator of folders, or a character that is obeyed rather than shown.
    #[error("contains {0:?}, which a folder name cannot")]
    Unfit(char),
    /// A name that is hidden, or taken for an option.
    #[error("begins with {0:?}; begin it with a letter or a digit")]
    Start(char),
    /// Windows drops the dot.
    #[error("ends with a dot; remove it")]
    End,
    /// A name of a device.
    #[error("is a device name on Windows; choose another")]
    Device,
    /// A path that is not below the folder that it was found in.
    #[error("points outside its folder")]
    Outside,
}

/// Refuses a name that is not a folder's own on every system: ASCII letters, digits, `-`, `_` and dots, beginning with
/// none of the marks but `_`.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    check_folder_name(name)?;
    check_length(name, LONGEST)?;
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name.chars().find(|c| !plain(c)) {
        Some(other) => Err(NameError::Character(other)),
        None => Ok(()),
    }
}

/// Refuses a name that is no single folder's, as of a folder that is there, however it came to be called so: with a
/// separator, hidden, taken for an option, too long, a device's, or with characters that are obeyed rather than shown.
///
/// # Errors
/// What is wrong with it.
pub fn check_folder_name(name: &str) -> Result<(), NameError> {
    check_length(name, LONGEST_THERE)?;
    if let Some(unfit) = name.chars().find(|&c| matches!(c, '/' | '\\') || is_obeyed(c)) {
        return Err(NameError::Unfit(unfit));
    }
    match (name.chars().next(), name.chars().last()) {
        (None, _) => Err(NameError::Empty),
        (Some(first @ ('.' | '-')), _) => Err(NameError::Start(first)),
        (_, Some('.')) => Err(NameError::End),
        _ if is_device(name) => Err(NameError::Device),
        _ => Ok(()),
    }
}

fn check_length(name: &str, most: usize) -> Result<(), NameError> {
    if name.len() > most { Err(NameError::Long { bytes: name.len(), most }) } else { Ok(()) }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let numbered = stem.strip_suffix(|c: char| c.is_ascii_digit());
    DEVICES.contains(&&*stem) || numbered.is_some_and(|kind| NUMBERED_DEVICES.contains(&kind))
}

/// The path `inner`, found in a file of `folder`, below it.
///
/// # Errors
/// A path that would lead out of the folder, or to it itself.
#[cfg(feature = "study")]
pub(crate) fn below(folder: &Path, inner: &Path) -> Result<PathBuf, NameError> {
    let mut parts = inner.components().peekable();
    let is_below = parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
    if is_below { Ok(folder.join(inner)) } else { Err(NameError::Outside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_folders_own_name_is_refused() {
        for (name, why) in [
            ("", NameError::Empty),
            ("..", NameError::Start('.')),
            (".git", NameError::Start('.')),
            ("-rf", NameError::Start('-')),
            ("a.", NameError::End),
            ("a/b", NameError::Unfit('/')),
            ("a\\b", NameError::Unfit('\\')),
            ("a\u{1b}[2J", NameError::Unfit('\u{1b}')),
            ("a\u{202e}b", NameError::Unfit('\u{202e}')),
            ("a\nb", NameError::Unfit('\n')),
            ("NUL", NameError::Device),
            ("com1.txt", NameError::Device),
        ] {
            assert_eq!(check_folder_name(name), Err(why.clone()), "{name:?}");
            assert_eq!(check_name(name), Err(why), "{name:?}");
        }
        let long = "a".repeat(101);
        assert_eq!(check_name(&long), Err(NameError::Long { bytes: 101, most: 100 }));
        assert_eq!(check_folder_name(&long), Ok(()));
        for name in ["SmolLM2 135M", "größer", "a:b", "<b>"] {
            assert_eq!(check_folder_name(name), Ok(()), "{name:?}");
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["mhsa-0.9", "_a", "console", "com", "lm-pg-books-train"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }

    #[cfg(feature = "study")]
    #[test]
    fn a_path_in_a_file_stays_below_its_folder() {
        let below = |inner: &str| below(Path::new("data"), Path::new(inner));
        assert_eq!(below("a/s0"), Ok(PathBuf::from("data/a/s0")));
        for inner in ["", "..", "a/../../b", "/etc/passwd", ".", "./.."] {
            assert_eq!(below(inner), Err(NameError::Outside), "{inner:?}");
        }
    }
}
