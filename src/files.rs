//! Files written aside and renamed, so that none is ever torn.

use std::io::{self, Write as _};
use std::path::Path;

/// Writes `bytes` to `path`: to a temporary file beside it first, then renamed over it. Folders
/// that are missing are made.
///
/// # Errors
/// Those of the file system; what stood at `path` before still stands.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // A finished file is for everyone to read; a temporary one's default is its owner alone.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
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
