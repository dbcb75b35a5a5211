//! Checks of names that become files, folders and keys.

#[cfg(feature = "study")]
use std::path::{Component, Path, PathBuf};

use super::text::is_obeyed;

/// Longest name in bytes that may be given to a folder here. With a suffix of a text's name and a hash, it stays below
/// [`LONGEST_THERE`].
const LONGEST: usize = 100;
/// Longest file name in bytes on most file systems.
const LONGEST_THERE: usize = 255;
/// Why a name cannot be used for a file, a folder or a key, in words that follow the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

impl NameError {
    fn new<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self(why.into()))
    }
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
        Some(other) => {
            NameError::new(format!("contains {other:?}; use letters, digits, -, _ and dots"))
        }
        None => Ok(()),
    }
}

/// Checks the name of one folder, such as an existing folder that the user named freely. It refuses separators, hidden
/// names, names that read as options, names that are too long, and characters that terminals interpret.
///
/// # Errors
/// The first fault found.
pub fn check_folder_name(name: &str) -> Result<(), NameError> {
    check_length(name, LONGEST_THERE)?;
    if let Some(unfit) = name.chars().find(|&c| matches!(c, '/' | '\\') || is_obeyed(c)) {
        return NameError::new(format!("contains {unfit:?}, which a folder name cannot"));
    }
    match (name.chars().next(), name.chars().last()) {
        (None, _) => NameError::new("is empty"),
        (Some(first @ ('.' | '-')), _) => {
            NameError::new(format!("begins with {first:?}; begin it with a letter or a digit"))
        }
        (_, Some('.')) => NameError::new("ends with a dot; remove it"),
        _ => Ok(()),
    }
}

fn check_length(name: &str, most: usize) -> Result<(), NameError> {
    match name.len() {
        bytes if bytes > most => NameError::new(format!("has {bytes} bytes; use at most {most}")),
        _ => Ok(()),
    }
}

/// Joins `folder` and the path `inner`, which was read from a file in `folder`.
///
/// # Errors
/// The path leads out of the folder, or is the folder itself.
#[cfg(feature = "study")]
pub(crate) fn below(folder: &Path, inner: &Path) -> Result<PathBuf, NameError> {
    let mut parts = inner.components().peekable();
    let is_below = parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
    if is_below { Ok(folder.join(inner)) } else { NameError::new("points outside its folder") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_folders_own_name_is_refused() {
        for (name, why) in [
            ("", "empty"),
            ("..", "begins with '.'"),
            (".git", "begins with '.'"),
            ("-rf", "begins with '-'"),
            ("a.", "ends with a dot"),
            ("a/b", "contains '/'"),
            ("a\\b", "contains '\\\\'"),
            ("a\u{1b}[2J", "contains '\\u{1b}'"),
            ("a\u{202e}b", "contains '\\u{202e}'"),
            ("a\nb", "contains '\\n'"),
        ] {
            for found in [check_folder_name(name), check_name(name)] {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(why), "{name:?}: {error}");
            }
        }
        let long = "a".repeat(101);
        assert!(check_name(&long).unwrap_err().to_string().contains("101 bytes"));
        assert_eq!(check_folder_name(&long), Ok(()));
        for name in ["SmolLM2 135M", "größer", "a:b", "<b>"] {
            assert_eq!(check_folder_name(name), Ok(()), "{name:?}");
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["mhsa-0.9", "_a", "lm-pg-books-train"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }

    #[cfg(feature = "study")]
    #[test]
    fn a_path_in_a_file_stays_below_its_folder() {
        let below = |inner: &str| below(Path::new("data"), Path::new(inner));
        assert_eq!(below("a/s0"), Ok(PathBuf::from("data/a/s0")));
        for inner in ["", "..", "a/../../b", "/etc/passwd", ".", "./.."] {
            assert!(below(inner).is_err(), "{inner:?}");
        }
    }
}
