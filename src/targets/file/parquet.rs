//! Parquet files: one numeric column per matrix column. The library trusts the numbers in page headers, so a damaged one makes it
//! allocate any amount of memory; they are checked first.

use std::io::{self, Cursor, Read as _, Write};
use std::ops::Range;
#[cfg(feature = "study")]
use std::path::Path;

use ndarray::Array2;
use polars::prelude::{
    Column, DataFrame, DataType, ParallelStrategy, ParquetReader, ParquetWriter, PolarsResult,
    SerReader,
};
use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;

use super::stack::square;
use crate::system::caught;
use crate::targets::TargetError;

/// Largest size of one number in bytes, including its validity bit.
const OF_A_NUMBER: usize = 32;
/// Largest size of one table row (numbers and short texts) in bytes.
#[cfg(feature = "study")]
const OF_A_WORD: usize = 1 << 16;

type Reader<'b> = ParquetReader<Cursor<&'b [u8]>>;

/// How the names of index columns begin that pandas writes.
const INDEX: &str = "__index_level_";

/// Reads a square matrix, and says if an index was left out. polars panics on some damaged files, so the panic is caught on
/// this thread.
pub(super) fn read(bytes: &[u8]) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
    let read = || dense_of(bytes);
    caught(read).unwrap_or_else(|why| Err(format!("damaged file ({why}); write it again").into()))
}

fn dense_of(bytes: &[u8]) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    let (rows, names) = shape_of(&mut reader).map_err(|error| one_line(&error))?;
    let all = names.len();
    let names: Vec<String> = names.into_iter().filter(|name| !name.starts_with(INDEX)).collect();
    let left_out = if names.len() < all { vec!["an index"] } else { Vec::new() };
    // Checked before anything is decompressed: a few bytes can stand for any number of rows.
    let n = square(rows, names.len())?;
    check_pages(bytes, &mut reader, OF_A_NUMBER, |name| !name.starts_with(INDEX))
        .map_err(|why| format!("damaged file ({why}); write it again"))?;
    let frame = reader.with_columns(Some(names)).read_parallel(ParallelStrategy::None).finish();
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
    Ok((dense, left_out))
}

/// Rows and names of columns from the file's metadata. The row count is the larger of the total and the sum over row groups.
fn shape_of(reader: &mut Reader<'_>) -> PolarsResult<(usize, Vec<String>)> {
    let described = reader.get_metadata()?;
    let groups = described.row_groups.iter().map(|group| group.num_rows());
    let rows = groups.fold(0, usize::saturating_add).max(described.num_rows);
    Ok((rows, reader.schema()?.iter_names().map(ToString::to_string).collect()))
}

/// Checks that no page of the columns that are read announces more rows than its row group has, or more than `of_a_row` bytes
/// per row.
fn check_pages(
    bytes: &[u8],
    reader: &mut Reader<'_>,
    of_a_row: usize,
    is_read: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let described = reader.get_metadata().map_err(|error| one_line(&error))?;
    for group in &described.row_groups {
        let columns = group.parquet_columns().iter();
        for column in columns.filter(|column| is_read(&column.descriptor().path_in_schema[0])) {
            check_column(bytes, column.byte_range(), group.num_rows(), of_a_row)?;
        }
    }
    Ok(())
}

/// Reads a Parquet file that this program wrote, with numbers and short texts.
///
/// # Errors
/// A message if the file cannot be read or is damaged.
#[cfg(feature = "study")]
pub(crate) fn read_frame(path: &Path) -> Result<DataFrame, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let read = || {
        let mut reader = ParquetReader::new(Cursor::new(&bytes[..]));
        check_pages(&bytes, &mut reader, OF_A_WORD, |_| true)?;
        let frame = reader.read_parallel(ParallelStrategy::None).finish();
        frame.map_err(|error| one_line(&error))
    };
    caught(read).unwrap_or_else(Err)
}

/// Writes the matrix; columns are named by their index, from 0.
pub(super) fn write(dense: &Array2<f64>, file: &mut impl Write) -> io::Result<()> {
    let columns = dense.columns().into_iter().enumerate();
    let columns = columns.map(|(at, entries)| Column::new(at.to_string().into(), entries.to_vec()));
    DataFrame::new(dense.nrows(), columns.collect())
        .and_then(|mut frame| ParquetWriter::new(file).finish(&mut frame))
        .map(drop)
        .map_err(|error| io::Error::other(one_line(&error)))
}

/// Joins an error message of several lines into one line.
fn one_line(error: &impl ToString) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes that a page may take in addition to its values.
const OF_A_PAGE: usize = 4096;

/// Checks the page headers of one column before decompression, at bytes `column` of `file`: at most `rows` rows of at most `of_a_row` bytes each.
///
/// # Errors
/// A message that describes the first invalid page header.
fn check_column(
    file: &[u8],
    column: Range<u64>,
    rows: usize,
    of_a_row: usize,
) -> Result<(), String> {
    let [start, end] =
        [column.start, column.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let bytes = file.get(start..end).ok_or("a column lies outside the file")?;
    let mut reader = Cursor::new(bytes);
    let mut seen = 0;
    while seen < rows {
        let mut protocol = TCompactInputProtocol::new(&mut reader, bytes.len());
        let header = PageHeader::read_from_in_protocol(&mut protocol)
            .map_err(|error| format!("a page header cannot be read: {error}"))?;
        let values = header.data_page_header.as_ref().map(|page| page.num_values);
        let values = values.or(header.data_page_header_v2.as_ref().map(|page| page.num_values));
        let of_dictionary = header.dictionary_page_header.as_ref().map(|page| page.num_values);
        let within =
            |count: i32, most: usize| usize::try_from(count).is_ok_and(|count| count <= most);
        let most = OF_A_PAGE.saturating_add(of_a_row.saturating_mul(rows));
        let holds = within(values.unwrap_or(0), rows - seen)
            && within(of_dictionary.unwrap_or(0), rows)
            && within(header.uncompressed_page_size, most);
        if !holds {
            let size = header.uncompressed_page_size;
            let count = values.or(of_dictionary).unwrap_or(0);
            return Err(format!(
                "a page announces {count} values in {size} bytes of a column with {rows} rows"
            ));
        }
        seen += values.unwrap_or(0) as usize;
        let length = u64::try_from(header.compressed_page_size).unwrap_or(u64::MAX);
        let skipped = io::copy(&mut reader.by_ref().take(length), &mut io::sink());
        if skipped.ok() != Some(length) {
            return Err("a page extends past its column".to_owned());
        }
    }
    Ok(())
}
