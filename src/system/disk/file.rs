//! A file that is open for writing.

use std::fs::TryLockError;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::watch::{Answer, Operation, watched, watcher};

/// A file that is open for writing. What is written is with the system at once, and on the disk itself after
/// [`File::sync`].
#[derive(Debug)]
pub struct File {
    file: std::fs::File,
    path: PathBuf,
}

impl File {
    /// Makes a file, or empties the one that is there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = watched(Operation::Create(path), || std::fs::File::create(path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// Those of the file system; [`io::ErrorKind::AlreadyExists`] where there is one.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        let options = || std::fs::File::options().write(true).create_new(true).open(path);
        let file = watched(Operation::CreateNew(path), options)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Opens a file that is there, at its start, to be read and to be written on.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = std::fs::File::options().read(true).write(true).open(path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Cuts the file, or makes it longer with zeros.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let operation = Operation::SetLength { path: &self.path, length };
        watched(operation, || self.file.set_len(length))
    }

    /// Returns once all that was written is on the disk itself.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn sync(&self) -> io::Result<()> {
        watched(Operation::Sync(&self.path), || self.file.sync_all())
    }

    /// Takes the file for this process alone, as long as it is open.
    ///
    /// # Errors
    /// Another process that has it, or a file system that knows no locks.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    /// [`File::try_lock`], after waiting for another process that has it.
    ///
    /// # Errors
    /// A file system that knows no locks.
    pub fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// When it was written last, by the file system's clock.
    ///
    /// # Errors
    /// A file system that does not say.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Whether a name leads to it still, as far as the system says.
    pub(in crate::system) fn is_named(&self) -> bool {
        #[cfg(unix)]
        let named = |found: std::fs::Metadata| std::os::unix::fs::MetadataExt::nlink(&found) > 0;
        #[cfg(not(unix))]
        let named = |_: std::fs::Metadata| true;
        self.file.metadata().is_ok_and(named)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(watch) = watcher() else { return self.file.write(bytes) };
        let offset = self.file.stream_position()?;
        let operation = Operation::Write { path: &self.path, offset, bytes };
        match watch.before(&operation) {
            Answer::GoOn => {
                self.file.write_all(bytes)?;
                watch.done(&operation);
                Ok(bytes.len())
            }
            Answer::Fail(error) => Err(error),
            Answer::Cut(length, error) => {
                self.file.write_all(&bytes[..length.min(bytes.len())])?;
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }
}
