//! Files that are written under a temporary name and then renamed, so that none is ever half written.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::aside::Aside;
use super::disk::{File, folder_of, make_folders};
#[cfg(feature = "study")]
use super::{FileError, disk::remove_file};

/// Writes `bytes` to a temporary file, which is then renamed to `path`. Missing folders are created. On return the file
/// is on the disk itself: a power failure does not undo it.
///
/// # Errors
/// I/O errors. `path` then still has its old contents, or all of `bytes` if only the sync of the folder failed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_folders(folder_of(path))?;
    write_whole_with(path, |file| file.write_all(bytes))
}

/// [`write_whole`] for contents that `write` produces piece by piece, into a folder that exists.
pub(crate) fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Remembering<&mut File>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut aside = Aside::new(folder_of(path))?;
    let mut buffer = BufWriter::new(Remembering { to: &mut aside.file, failed: None });
    let written = write(&mut buffer).and_then(|()| buffer.flush());
    let (Remembering { failed, .. }, _) = buffer.into_parts();
    match (written, failed) {
        (Ok(()), _) => aside.take_name(path),
        (Err(_), Some(code)) => Err(io::Error::from_raw_os_error(code)),
        (Err(error), None) => Err(error),
    }
}

/// Writer that keeps the first error code of the system: the Parquet library reports only that a write failed.
pub(crate) struct Remembering<W> {
    to: W,
    failed: Option<i32>,
}

impl<W: Write> Write for Remembering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|error| {
            self.failed = self.failed.or(error.raw_os_error());
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Removes a file, if it exists.
///
/// # Errors
/// The file cannot be removed.
#[cfg(feature = "study")]
pub(crate) fn remove_if_there(path: &Path) -> Result<(), FileError> {
    match remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileError::write(path, e)),
        _ => Ok(()),
    }
}

/// Checks that a folder can be written, before work begins whose results go there. Creates the folder if it is missing.
///
/// # Errors
/// I/O errors.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    make_folders(folder)?;
    Aside::new(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures/a.svg");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing beside");
        assert!(write_whole(&path.join("under-a-file"), b"three").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn what_the_system_said_is_told_whatever_a_library_made_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let of_a_library = || io::Error::other("transport error");
        let error = write_whole_with(&path, |file| {
            file.get_mut().failed = Some(28);
            Err(of_a_library())
        });
        assert_eq!(error.unwrap_err().raw_os_error(), Some(28));
        let error = write_whole_with(&path, |_| Err(of_a_library())).unwrap_err();
        assert_eq!(error.to_string(), "transport error");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "left behind");

        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(28))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut full = Remembering { to: Full, failed: None };
        assert!(full.write_all(b"row").is_err());
        assert_eq!(full.failed, Some(28));
    }
}
