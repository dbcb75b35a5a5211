//! Files written aside and renamed, so that none is ever torn.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `bytes` to `path`: to a temporary file beside it first, then renamed over it. Folders
/// that are missing are made.
///
/// # Errors
/// Those of the file system; what stood at `path` before still stands.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder_of(path))?;
    write_whole_with(path, |file| file.write_all(bytes))
}

/// The folder that a path lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// [`write_whole`] for what is better written piece by piece than held in memory, into a folder that
/// is there.
pub(crate) fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // A finished file has an ordinary file's permissions; a temporary one's are its owner's alone.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut aside = builder.tempfile_in(folder_of(path))?;
    let mut buffer = BufWriter::new(aside.as_file_mut());
    write(&mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    // On the disk before it takes the name, or a crash could leave an empty file under it.
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
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
