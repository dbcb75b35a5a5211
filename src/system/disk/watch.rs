//! Hook for tests: it is called for each disk operation and can make it fail.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// An operation on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Create a file, or truncate an existing one.
    Create(&'a Path),
    /// Create a file that must not exist yet.
    CreateNew(&'a Path),
    /// Write bytes to an open file.
    Write {
        /// Name under which the file was opened.
        path: &'a Path,
        /// Offset of the first byte in the file.
        offset: u64,
        /// Bytes to write.
        bytes: &'a [u8],
    },
    /// Truncate a file, or extend it with zeros.
    SetLength {
        /// Name under which the file was opened.
        path: &'a Path,
        /// New length in bytes.
        length: u64,
    },
    /// Sync a file's contents to the disk itself.
    Sync(&'a Path),
    /// Rename a file or folder; a file of the new name is replaced.
    Rename {
        /// Old name.
        from: &'a Path,
        /// New name.
        to: &'a Path,
    },
    /// Remove a file.
    RemoveFile(&'a Path),
    /// Create a folder in an existing one.
    MakeFolder(&'a Path),
    /// Remove an empty folder.
    RemoveFolder(&'a Path),
    /// Sync the names in a folder to the disk itself.
    SyncFolder(&'a Path),
}

/// Decision of a [`Watch`] about an operation.
#[derive(Debug)]
pub enum Answer {
    /// Do the operation.
    GoOn,
    /// Skip the operation and return this error.
    Fail(io::Error),
    /// Write this many bytes, then return the error. Other operations are skipped and return the error.
    Cut(usize, io::Error),
}

/// Hook that is called for each disk operation, in tests.
pub trait Watch: Send + Sync {
    /// Called before an operation; decides whether it is done or fails.
    fn before(&self, operation: &Operation<'_>) -> Answer;

    /// Called after an operation that succeeded.
    fn done(&self, operation: &Operation<'_>);
}

static WATCH: OnceLock<Box<dyn Watch>> = OnceLock::new();

/// Calls `watch` for every disk operation of this process from now on.
///
/// # Panics
/// If a watch is already set.
#[doc(hidden)]
pub fn watch_with(watch: Box<dyn Watch>) {
    assert!(WATCH.set(watch).is_ok(), "another thread is watching the disk");
}

pub(super) fn watcher() -> Option<&'static dyn Watch> {
    WATCH.get().map(|watch| &**watch)
}

/// Runs `act`, unless the watch makes the operation fail.
pub(super) fn watched<T>(
    operation: Operation<'_>,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let Some(watch) = watcher() else { return act() };
    match watch.before(&operation) {
        Answer::GoOn => act().inspect(|_| watch.done(&operation)),
        Answer::Fail(error) | Answer::Cut(_, error) => Err(error),
    }
}
