//! NumPy's .npy files.

use std::io::{self, Cursor, Write};
use std::path::Path;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder as _};
use ndarray_npy::WriteNpyExt;
use ndarray_npy::npy::header::{Header, ReadHeaderError};

use crate::targets::TargetError;

/// Deepest nesting of brackets that a header may have. A matrix needs two levels, records need four. The reader's time doubles
/// with each level.
const DEEPEST: usize = 8;

/// Checks that the header is complete, since the reader allocates the length that it announces, and that its brackets nest no
/// deeper than NumPy writes them.
///
/// # Errors
/// A message if the header is cut off or nests too deeply.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    // Version 1 stores the header length in two bytes, later versions in four.
    let (start, width) = if bytes.get(6) == Some(&1) { (10, 2) } else { (12, 4) };
    let mut length = [0; 4];
    if let Some(told) = bytes.get(8..8 + width) {
        length[..width].copy_from_slice(told);
    }
    let (rest, length) = (bytes.get(start..).unwrap_or_default(), u32::from_le_bytes(length));
    let Some(header) = rest.get(..length as usize) else {
        return Err(format!("the header should be {length} bytes, but only {} follow", rest.len()));
    };
    let mut depth = 0_usize;
    for byte in header {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err("the header nests brackets too deeply".to_owned());
        }
    }
    Ok(())
}

pub(super) fn read(bytes: &[u8]) -> Result<ArrayD<f64>, TargetError> {
    if bytes.is_empty() {
        return Err("the file is empty".to_owned().into());
    }
    check_header(bytes).map_err(|why| format!("not a whole .npy file: {why}"))?;
    let mut reader = Cursor::new(bytes);
    let header = Header::from_reader(&mut reader).map_err(|error| match error {
        ReadHeaderError::Io(_) => "the file is cut off within its header".to_owned(),
        error => format!("not a whole .npy file: {error}"),
    })?;
    let descriptor = header.type_descriptor.to_string();
    let kind = descriptor.trim_matches(['\'', '"', '<', '>', '=', '|']);
    let (width, number): (usize, fn(&[u8]) -> f64) = match kind {
        "f8" => (8, |bytes| f64::from_le_bytes(array(bytes))),
        "f4" => (4, |bytes| f32::from_le_bytes(array(bytes)).into()),
        "f2" => (2, |bytes| f16::from_le_bytes(array(bytes)).into()),
        // NumPy writes the bfloat16 of ml_dtypes as an opaque type of two bytes.
        "V2" => (2, |bytes| bf16::from_le_bytes(array(bytes)).into()),
        "i4" => (4, |bytes| i32::from_le_bytes(array(bytes)).into()),
        "u1" => (1, |bytes| bytes[0].into()),
        "i1" => (1, |bytes| i8::from_le_bytes(array(bytes)).into()),
        _ => {
            return Err(format!("unsupported element type {descriptor}; save it as float64").into());
        }
    };
    // Checked before anything is allocated that the header claims.
    let data = bytes.get(reader.position() as usize..).unwrap_or_default();
    let entries: u128 = header.shape.iter().map(|&length| length as u128).product();
    let (claimed, found) = (entries * width as u128, data.len() as u128);
    if claimed != found {
        let shape: Vec<String> = header.shape.iter().map(ToString::to_string).collect();
        let why = if claimed > found { "is cut off" } else { "is too long" };
        return Err(TargetError::Other(format!(
            "the file {why}: the header announces {} entries ({claimed} bytes), {found} bytes follow it",
            shape.join(" × ")
        )));
    }
    let mut numbers = data.to_vec();
    if descriptor.contains('>') {
        numbers.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    let values = numbers.chunks_exact(width).map(number).collect();
    let shape = IxDyn(&header.shape).set_f(header.layout.is_fortran());
    ArrayD::from_shape_vec(shape, values).map_err(|error| error.to_string().into())
}

fn array<const WIDTH: usize>(bytes: &[u8]) -> [u8; WIDTH] {
    bytes.try_into().expect("as many bytes as a number has")
}

/// Reads an array of any shape, with the types that [`read`] supports.
///
/// # Errors
/// The file cannot be read or holds no array.
pub(crate) fn read_npy(path: &Path) -> io::Result<ArrayD<f64>> {
    read(&std::fs::read(path)?).map_err(io::Error::other)
}

pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> io::Result<()> {
    dense.write_npy(file).map_err(io::Error::other)
}
