//! Files written aside and renamed, so that none is ever torn.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::aside::{Access, Aside};
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
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    named(Aside::new(folder_of(path), Access::Ordinary)?, path, write)
}

/// [`write_whole`] into a folder that is there, for nobody but the file's owner to read.
#[cfg(feature = "lm")]
pub(crate) fn write_whole_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    named(Aside::new(folder_of(path), Access::Owner)?, path, |file| file.write_all(bytes))
}

fn named(
    mut aside: Aside,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = BufWriter::new(&mut aside.file);
    write(&mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    aside.take_name(path)
}

/// Finds out whether a folder, which is made where it is missing, can be written, before work begins that ends in it.
///
/// # Errors
/// Those of the file system.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    make_folders(folder)?;
    Aside::new(folder, Access::Ordinary).map(drop)
}

/// What time it is by the clock that dates the files in a folder.
///
/// # Errors
/// A folder that cannot be written.
#[cfg(feature = "study")]
pub(super) fn now_in(folder: &Path) -> io::Result<std::time::SystemTime> {
    let mut aside = Aside::new(folder, Access::Ordinary)?;
    aside.file.write_all(b"now")?;
    aside.file.sync()?;
    aside.file.modified()
}

#[cfg(test)]
mod tests {
    use super::write_whole;

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
}
