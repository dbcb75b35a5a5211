//! NumPy's .npz files: a zip archive of .npy files, compressed or not.

use std::io::{Cursor, Read as _};

use ndarray::ArrayD;
use zip::ZipArchive;

use super::npy;
use super::stack::chosen;
use crate::system::check_memory;
use crate::targets::TargetError;

/// Most bytes that a compressed byte can stand for in deflate, rounded up. A size beyond it is damage.
const EXPANSION: u64 = 1100;

/// Reads the array `name`. Without a name the file must have exactly one.
pub(super) fn read(bytes: &[u8], name: Option<&str>) -> Result<ArrayD<f64>, TargetError> {
    let damaged = |error: &dyn std::fmt::Display| format!("not a whole .npz file: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let mut names = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(|error| damaged(&error))?;
        names.extend(name.strip_suffix(".npy").map(ToOwned::to_owned));
    }
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = format!("{}.npy", chosen(&names, name)?);
    npy::read(&entry(&mut archive, &name).map_err(|error| damaged(&error))?)
}

/// The bytes of a file of a zip archive.
pub(super) fn entry(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
) -> Result<Vec<u8>, String> {
    let mut entry = archive.by_name(name).map_err(|error| error.to_string())?;
    let (size, packed) = (entry.size(), entry.compressed_size());
    if size > packed.saturating_mul(EXPANSION).saturating_add(EXPANSION) {
        return Err(format!("{packed} bytes announce {size}"));
    }
    check_memory(size as f64).map_err(|room| format!("{name} needs {room}"))?;
    let mut bytes = Vec::new();
    entry.by_ref().take(size).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
