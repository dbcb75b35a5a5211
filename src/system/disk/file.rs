//! Files that are open for writing.

use std::fs::TryLockError;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::watch::{Answer, Operation, watched, watcher};

/// A file that is open for writing. Writes are unbuffered: the operating system has them at once, the disk after
/// [`File::sync`].
#[derive(Debug)]
pub struct File {
    file: std::fs::File,
    path: PathBuf,
}

impl File {
    /// Creates a file, or truncates an existing one.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = watched(Operation::Create(path), || std::fs::File::create(path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Creates a file that must not exist yet.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::AlreadyExists`] if the file exists.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        let options = || std::fs::File::options().write(true).create_new(true).open(path);
        let file = watched(Operation::CreateNew(path), options)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Opens an existing file for reading and writing, at its start.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = std::fs::File::options().read(true).write(true).open(path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Truncates the file, or extends it with zeros.
    ///
    /// # Errors
    /// I/O errors.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let operation = Operation::SetLength { path: &self.path, length };
        watched(operation, || self.file.set_len(length))
    }

    /// Returns once everything written is on the disk itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&self) -> io::Result<()> {
        watched(Operation::Sync(&self.path), || self.file.sync_all())
    }

    /// Locks the file for this process alone, until the file is closed.
    ///
    /// # Errors
    /// Another process holds the lock, or the file system does not support locks.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    /// Locks the file as [`File::try_lock`] does, but waits while another process holds the lock.
    ///
    /// # Errors
    /// The file system does not support locks.
    pub fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Returns the time of the last modification, by the file system's clock.
    ///
    /// # Errors
    /// The file system does not record it.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Returns `true` if the file still has a name (hard link), as far as the system reports it.
    pub(in crate::system) fn is_named(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
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
