//! Parquet, one numeric column a matrix column. The only use of polars in this room.

use std::io::{Cursor, Write};
#[cfg(feature = "study")]
use std::path::Path;

use ndarray::Array2;
use polars::prelude::{
    Column, DataFrame, DataType, ParallelStrategy, ParquetReader, ParquetWriter, PolarsResult,
    SerReader,
};

use super::parquet_pages;
use super::problem::{Problem, square};
use crate::system::caught;

/// Bytes that a number takes at most, with what says whether it is there, ...
const OF_A_NUMBER: usize = 32;
/// ... and that words of a row do.
#[cfg(feature = "study")]
const OF_A_WORD: usize = 1 << 16;

type Reader<'b> = ParquetReader<Cursor<&'b [u8]>>;

/// The library panics at some files that are damaged, so it is heard alone, on this thread.
pub(super) fn read(bytes: &[u8]) -> Result<Array2<f64>, Problem> {
    let read = || dense_of(bytes);
    caught(read).unwrap_or_else(|why| Err(format!("damaged file ({why}); write it again").into()))
}

fn dense_of(bytes: &[u8]) -> Result<Array2<f64>, Problem> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let (rows, columns) = shape_of(&mut reader).map_err(|error| one_line(&error))?;
    // Before anything is unpacked: a few bytes can stand for any number of rows.
    let n = square(rows, columns)?;
    check_pages(bytes, &mut reader, OF_A_NUMBER)
        .map_err(|why| format!("damaged file ({why}); write it again"))?;
    let frame = reader.read_parallel(ParallelStrategy::None).finish();
    let frame = frame.map_err(|error| one_line(&error))?;
    if frame.shape() != (n, n) {
        let (rows, columns) = frame.shape();
        return Err(format!(
            "damaged file ({rows} × {columns} values, not {n} × {n}); write it again"
        )
        .into());
    }
    let mut dense = Array2::zeros((n, n));
    for (column, mut entries) in frame.columns().iter().zip(dense.columns_mut()) {
        let name = column.name();
        if !column.dtype().is_primitive_numeric() {
            let found = column.dtype();
            return Err(format!("column {name:?} has type {found}, not a number type").into());
        }
        let numbers = column.cast(&DataType::Float64).map_err(|error| one_line(&error))?;
        let numbers = numbers.f64().map_err(|error| one_line(&error))?;
        for (row, (entry, number)) in entries.iter_mut().zip(numbers.iter()).enumerate() {
            *entry = number
                .ok_or_else(|| format!("column {name:?} has no value in row {row} (from 0)"))?;
        }
    }
    Ok(dense)
}

/// Rows and columns, as the description at the file's end has them; the rows of the groups that they lie in, should those
/// be more.
fn shape_of(reader: &mut Reader<'_>) -> PolarsResult<(usize, usize)> {
    let described = reader.get_metadata()?;
    let groups = described.row_groups.iter().map(|group| group.num_rows());
    let rows = groups.fold(0, usize::saturating_add).max(described.num_rows);
    Ok((rows, reader.schema()?.len()))
}

/// Holds every page to the rows that its group is said to have, of so many bytes each at most.
fn check_pages(bytes: &[u8], reader: &mut Reader<'_>, of_a_row: usize) -> Result<(), String> {
    let described = reader.get_metadata().map_err(|error| one_line(&error))?;
    for group in &described.row_groups {
        for column in group.parquet_columns() {
            parquet_pages::check(bytes, column.byte_range(), group.num_rows(), of_a_row)?;
        }
    }
    Ok(())
}

/// The table in a Parquet file that the program wrote, of numbers and short words.
///
/// # Errors
/// In words, a file that cannot be read, or that is damaged.
#[cfg(feature = "study")]
pub(crate) fn read_frame(path: &Path) -> Result<DataFrame, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let read = || {
        let mut reader = ParquetReader::new(Cursor::new(&bytes[..]));
        check_pages(&bytes, &mut reader, OF_A_WORD)?;
        let frame = reader.read_parallel(ParallelStrategy::None).finish();
        frame.map_err(|error| one_line(&error))
    };
    caught(read).unwrap_or_else(Err)
}

/// Columns are named by their number, from 0.
pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> Result<(), String> {
    let columns = dense
        .columns()
        .into_iter()
        .enumerate()
        .map(|(at, entries)| Column::new(at.to_string().into(), entries.to_vec()))
        .collect();
    let mut frame = DataFrame::new(dense.nrows(), columns).map_err(|error| one_line(&error))?;
    ParquetWriter::new(file).finish(&mut frame).map(|_| ()).map_err(|error| one_line(&error))
}

/// polars' messages can run over several lines.
fn one_line(error: &impl ToString) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
