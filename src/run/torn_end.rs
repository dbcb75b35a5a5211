//! Cuts off the end of a log: a row that a crash left incomplete, and rows of steps that are repeated.

use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;

use crate::system::FileError;
use crate::system::disk::File;

/// Opens a log and truncates it after the last record to keep. `next` reads one record and returns its length in bytes,
/// or `None` if it and all later records are removed. Returns the log, positioned at its end, and its length.
///
/// # Errors
/// The file is missing or cannot be written; errors of `next`, which leave the file unchanged.
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
