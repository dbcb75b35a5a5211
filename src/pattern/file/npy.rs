//! NumPy's .npy.

use std::io::{Cursor, Write};

use ndarray::Array2;
use ndarray_npy::npy::header::Header;
use ndarray_npy::{ReadNpyExt, ReadableElement, WriteNpyExt};

use super::problem::{Problem, square};

pub(super) fn read(bytes: &[u8]) -> Result<Array2<f64>, Problem> {
    let mut reader = Cursor::new(bytes);
    let header = Header::from_reader(&mut reader)
        .map_err(|error| format!("not a whole .npy file: {error}"))?;
    let &[rows, columns] = header.shape.as_slice() else {
        return Err(format!("an array of shape {:?}; save a matrix", header.shape).into());
    };
    let n = square(rows, columns)?;
    let descriptor = header.type_descriptor.to_string();
    let kind = descriptor.trim_matches(['\'', '"', '<', '>', '=', '|']);
    let (convert, width): (fn(&[u8]) -> _, usize) = match kind {
        "f8" => (convert::<f64>, 8),
        "f4" => (convert::<f32>, 4),
        "i4" => (convert::<i32>, 4),
        "u1" => (convert::<u8>, 1),
        "i1" => (convert::<i8>, 1),
        _ => {
            return Err(format!("entries of type {descriptor}; save it as float64").into());
        }
    };
    // Checked before the reader allocates what the header claims.
    let (claimed, found) = (n as u128 * n as u128 * width as u128, bytes.len() as u128);
    if claimed > found {
        return Err(format!(
            "cut off: the header says {n} × {n} entries, {claimed} bytes, and the file has {found}"
        )
        .into());
    }
    convert(bytes)
}

fn convert<T: ReadableElement + Copy + Into<f64> + 'static>(
    bytes: &[u8],
) -> Result<Array2<f64>, Problem> {
    let matrix = Array2::<T>::read_npy(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    // `mapv` goes by position, so that a Fortran-ordered file is read right as well.
    Ok(matrix.mapv(Into::into))
}

pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> Result<(), String> {
    dense.write_npy(file).map_err(|error| error.to_string())
}
