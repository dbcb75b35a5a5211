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
