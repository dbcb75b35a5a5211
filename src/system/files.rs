//! Files written aside and renamed, so that none is ever torn.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::aside::Aside;
use super::disk::{File, folder_of, make_folders};

/// Writes `bytes` to `path`: to a temporary file beside it first, then renamed over it. Folders
/// that are missing are made. After it all is on the disk itself: lost power takes none of it back.
///
/// # Errors
/// Those of the file system; what stood at `path` before still stands, or, where the disk failed last of all, all of
/// `bytes` does.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_folders(folder_of(path))?;
    write_whole_with(path, |file| file.write_all(bytes))
}

/// [`write_whole`] for what is better written piece by piece than held in memory, into a folder that
/// is there.
pub(crate) fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Remembering<&mut File>>) -> io::Result<()>,
) -> io::Result<()> {
    named(Aside::new(folder_of(path))?, path, write)
}

fn named(
    mut aside: Aside,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Remembering<&mut File>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = BufWriter::new(Remembering { to: &mut aside.file, failed: None });
    let written = write(&mut buffer).and_then(|()| buffer.flush());
    let (Remembering { failed, .. }, _) = buffer.into_parts();
    match (written, failed) {
        (Ok(()), _) => aside.take_name(path),
        (Err(_), Some(code)) => Err(io::Error::from_raw_os_error(code)),
        (Err(error), None) => Err(error),
    }
}

/// Remembers what the system said first of a write that failed: a library that writes Parquet tells only that one did.
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

/// Finds out whether a folder, which is made where it is missing, can be written, before work begins that ends in it.
///
/// # Errors
/// Those of the file system.
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
