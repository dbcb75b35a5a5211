//! Whoever is told of each operation, and may have it fail.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// What is done to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// A file is made where there is none, and emptied where there is one.
    Create(&'a Path),
    /// A file is made, which must not be there yet.
    CreateNew(&'a Path),
    /// Bytes are written into a file that is open.
    Write {
        /// The file, by the name that it was opened under.
        path: &'a Path,
        /// Where in it they begin.
        offset: u64,
        /// What is written.
        bytes: &'a [u8],
    },
    /// A file is cut, or made longer with zeros.
    SetLength {
        /// The file, by the name that it was opened under.
        path: &'a Path,
        /// How many bytes it then has.
        length: u64,
    },
    /// What a file holds is put on the disk itself.
    Sync(&'a Path),
    /// A file or folder takes another name, over a file that has it.
    Rename {
        /// The name that it had.
        from: &'a Path,
        /// The name that it has then.
        to: &'a Path,
    },
    /// A file's name is taken away.
    RemoveFile(&'a Path),
    /// A folder is made in one that is there.
    MakeFolder(&'a Path),
    /// An empty folder is taken away.
    RemoveFolder(&'a Path),
    /// The names in a folder are put on the disk itself.
    SyncFolder(&'a Path),
}

/// What becomes of an operation.
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    GoOn,
    /// It is not done, and this is the error.
    Fail(io::Error),
    /// Of a write so many bytes are done, and this is the error then; of anything else nothing is.
    Cut(usize, io::Error),
}

/// Whoever is told of each operation: in tests.
pub trait Watch: Send + Sync {
    /// What is to become of an operation that is about to be done.
    fn before(&self, operation: &Operation<'_>) -> Answer;

    /// It was done, and the system said that it was done well.
    fn done(&self, operation: &Operation<'_>);
}

static WATCH: OnceLock<Box<dyn Watch>> = OnceLock::new();

/// Tells `watch` of every operation of this process from now on.
///
/// # Panics
/// Where there is one already.
#[doc(hidden)]
pub fn watch_with(watch: Box<dyn Watch>) {
    assert!(WATCH.set(watch).is_ok(), "another thread is watching the disk");
}

pub(super) fn watcher() -> Option<&'static dyn Watch> {
    WATCH.get().map(|watch| &**watch)
}

/// Does `act`, unless whoever watches has it fail.
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
