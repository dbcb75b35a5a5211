//! The words of this process's command line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the command line, where it is not that of the process: Python's begins with the interpreter. Only the first
/// call counts.
#[cfg(feature = "cli")]
pub(crate) fn set_command_line(words: &[OsString]) {
    let _ = WORDS.set(words.to_vec());
}

/// The arguments, without the program's name.
pub(crate) fn arguments() -> impl Iterator<Item = String> {
    let words = WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect());
    words.into_iter().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The file that runs this program: the first word of the command line if it is a path, else the process's own.
///
/// # Errors
/// The system does not say.
#[cfg(feature = "cli")]
pub(crate) fn program() -> io::Result<PathBuf> {
    let named = WORDS.get().and_then(|words| words.first()).map(Path::new);
    match named.filter(|path| path.components().count() > 1 && path.is_file()) {
        Some(path) => path.canonicalize(),
        None => std::env::current_exe(),
    }
}
