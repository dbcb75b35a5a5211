//! Cuts off the end of a log: a row torn by a crash, and rows of steps that are taken again.

use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;

use crate::system::FileError;
use crate::system::disk::File;

/// Opens a log and takes away what follows the records that stay. `next` reads a record and returns its
/// length in bytes, or none where it and all after it go. Returns the log at its end, and its length.
///
/// # Errors
/// A file that is missing or cannot be written, and those of `next`, which leave it as it was.
pub(crate) fn cut_after<E: From<FileError>>(
    path: &Path,
    mut next: impl FnMut(&mut BufReader<&File>) -> Result<Option<u64>, E>,
) -> Result<(File, u64), E> {
    let mut file = File::open(path).map_err(|e| FileError::read(path, e))?;
    let mut records = BufReader::new(&file);
    let mut end = 0;
    while let Some(length) = next(&mut records)? {
        end += length;
    }
    drop(records);
    let cut = file.set_length(end).and_then(|()| file.seek(SeekFrom::Start(end)));
    cut.map_err(|e| FileError::write(path, e))?;
    Ok((file, end))
}
