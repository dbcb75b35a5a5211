//! Parquet, one numeric column a matrix column. The only use of polars in this room.

use std::io::{Cursor, Write};

use ndarray::Array2;
use polars::prelude::{Column, DataFrame, DataType, ParquetReader, ParquetWriter, SerReader};

use super::problem::{Problem, square};

pub(super) fn read(bytes: Vec<u8>) -> Result<Array2<f64>, Problem> {
    let frame =
        ParquetReader::new(Cursor::new(bytes)).finish().map_err(|error| one_line(&error))?;
    let n = square(frame.height(), frame.width())?;
    let mut dense = Array2::zeros((n, n));
    for (column, mut entries) in frame.columns().iter().zip(dense.columns_mut()) {
        let name = column.name();
        if !column.dtype().is_primitive_numeric() {
            let found = column.dtype();
            return Err(format!("column {name:?} is of type {found}, not a number").into());
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
