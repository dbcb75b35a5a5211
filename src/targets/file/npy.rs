//! NumPy's .npy files.

use std::io::{self, Cursor, Read as _, Write};
use std::path::Path;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder as _};
use ndarray_npy::npy::header::{Header, ReadHeaderError};
use ndarray_npy::{ReadNpyExt, ReadableElement, WriteNpyExt};

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
    type Convert = fn(&[u8], &Header, Cursor<&[u8]>) -> Result<ArrayD<f64>, TargetError>;
    let (convert, width): (Convert, usize) = match kind {
        "f8" => (|bytes, _, _| convert::<f64>(bytes), 8),
        "f4" => (|bytes, _, _| convert::<f32>(bytes), 4),
        "i4" => (|bytes, _, _| convert::<i32>(bytes), 4),
        "u1" => (|bytes, _, _| convert::<u8>(bytes), 1),
        "i1" => (|bytes, _, _| convert::<i8>(bytes), 1),
        "f2" => (|_, header, data| halves(header, data, |bits| f16::from_bits(bits).into()), 2),
        // NumPy writes the bfloat16 of ml_dtypes as an opaque type of two bytes.
        "V2" => (|_, header, data| halves(header, data, |bits| bf16::from_bits(bits).into()), 2),
        _ => {
            return Err(format!("unsupported element type {descriptor}; save it as float64").into());
        }
    };
    // Checked before the reader allocates what the header claims.
    let entries: u128 = header.shape.iter().map(|&length| length as u128).product();
    let (claimed, found) =
        (entries * width as u128, (bytes.len() as u128).saturating_sub(reader.position().into()));
    if claimed > found {
        let shape: Vec<String> = header.shape.iter().map(ToString::to_string).collect();
        return Err(format!(
            "the file is cut off: the header announces {} entries ({claimed} bytes), {found} bytes follow it",
            shape.join(" × ")
        )
        .into());
    }
    convert(bytes, &header, reader)
}

fn convert<T: ReadableElement + Copy + Into<f64> + 'static>(
    bytes: &[u8],
) -> Result<ArrayD<f64>, TargetError> {
    let array = ArrayD::<T>::read_npy(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    // `mapv` iterates by position, so a Fortran-ordered file is read correctly as well.
    Ok(array.mapv(Into::into))
}

/// Reads two-byte floats, which ndarray-npy does not support.
fn halves(
    header: &Header,
    mut data: Cursor<&[u8]>,
    number: fn(u16) -> f64,
) -> Result<ArrayD<f64>, TargetError> {
    let mut rest = Vec::new();
    data.read_to_end(&mut rest).map_err(|error| error.to_string())?;
    let from_bytes = match header.type_descriptor.to_string().contains('>') {
        true => u16::from_be_bytes,
        false => u16::from_le_bytes,
    };
    let values: Vec<f64> =
        rest.as_chunks::<2>().0.iter().map(|&bytes| number(from_bytes(bytes))).collect();
    let shape = IxDyn(&header.shape).set_f(header.layout.is_fortran());
    ArrayD::from_shape_vec(shape, values).map_err(|error| error.to_string().into())
}

/// Reads an array of any shape, with the types that [`read`] supports.
///
/// # Errors
/// The file cannot be read or holds no array.
pub(crate) fn read_npy(path: &Path) -> io::Result<ArrayD<f64>> {
    read(&std::fs::read(path)?).map_err(io::Error::other)
}

pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> Result<(), String> {
    dense.write_npy(file).map_err(|error| error.to_string())
}
