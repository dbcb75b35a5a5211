//! Checks of names that become files, folders and keys.

#[cfg(feature = "study")]
use std::path::{Component, Path, PathBuf};

use super::text::is_obeyed;

/// Longest name in bytes that may be given to a folder here. With a suffix of a text's name and a hash, it stays below
/// [`LONGEST_THERE`].
const LONGEST: usize = 100;
/// Longest file name in bytes on most file systems.
const LONGEST_THERE: usize = 255;
/// Device names that Windows reserves, whatever extension follows.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// Device names that Windows reserves when a digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Why a name cannot be used for a file, a folder or a key. Each message follows the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("is empty")]
    Empty,
    /// The name is too long for a file system.
    #[error("has {bytes} bytes; use at most {most}")]
    Long {
        /// Length of the name.
        bytes: usize,
        /// Largest length that is accepted.
        most: usize,
    },
    /// The character has a special meaning in some system or shell.
    #[error("contains {0:?}; use letters, digits, -, _ and dots")]
    Character(char),
    /// The character separates folders, or is a control character or a mark of text direction.
    #[error("contains {0:?}, which a folder name cannot")]
    Unfit(char),
    /// The name would be hidden, or read as a command-line option.
    #[error("begins with {0:?}; begin it with a letter or a digit")]
    Start(char),
    /// The name ends with a dot, which Windows drops.
    #[error("ends with a dot; remove it")]
    End,
    /// The name is a device on Windows.
    #[error("is a device name on Windows; choose another")]
    Device,
    /// The path leads out of the folder of the file that contains it.
    #[error("points outside its folder")]
    Outside,
}

/// Checks that a name is valid for a folder on every system. It has ASCII letters, digits, `-`, `_` and dots, and
/// begins with neither `-` nor a dot.
///
/// # Errors
/// The first fault found.
pub fn check_name(name: &str) -> Result<(), NameError> {
    check_folder_name(name)?;
    check_length(name, LONGEST)?;
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match name.chars().find(|c| !plain(c)) {
        Some(other) => Err(NameError::Character(other)),
        None => Ok(()),
    }
}

/// Checks the name of one folder, such as an existing folder that the user named freely. It refuses separators, hidden
/// names, names that read as options or devices, names that are too long, and characters that terminals interpret.
///
/// # Errors
/// The first fault found.
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

/// Joins `folder` and the path `inner`, which was read from a file in `folder`.
///
/// # Errors
/// The path leads out of the folder, or is the folder itself.
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
