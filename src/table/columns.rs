//! Columns of a data frame as plain vectors.

use polars::prelude::{Column, DataFrame, DataType, PolarsResult};

/// The column `name` as numbers.
pub(super) fn numbers(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<f64>>> {
    number_values(frame.column(name)?)
}

/// The column `name` as counts; a negative value counts as none.
pub(super) fn counts(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<usize>>> {
    let column = frame.column(name)?.cast(&DataType::Int64)?;
    let values = column.i64()?.iter();
    Ok(values.map(|value| value.and_then(|value| usize::try_from(value).ok())).collect())
}

/// The column `name` as words.
pub(super) fn words(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<String>>> {
    let column = frame.column(name)?.cast(&DataType::String)?;
    Ok(column.str()?.iter().map(|value| value.map(str::to_owned)).collect())
}

/// The first value of the column `name` as a word: of rows that are alike in it.
pub(super) fn word(frame: &DataFrame, name: &str) -> PolarsResult<Option<String>> {
    Ok(words(&frame.head(Some(1)), name)?.pop().flatten())
}

/// The first value of the column `name` as a count: of rows that are alike in it.
pub(super) fn count(frame: &DataFrame, name: &str) -> PolarsResult<Option<usize>> {
    Ok(counts(&frame.head(Some(1)), name)?.pop().flatten())
}

/// The first value of the column `name` as a number: of rows that are alike in it.
pub(super) fn number(frame: &DataFrame, name: &str) -> PolarsResult<Option<f64>> {
    Ok(numbers(&frame.head(Some(1)), name)?.pop().flatten())
}

/// The rows of cells that did not fail, in the order of the columns `by`.
pub(super) fn measured(frame: &DataFrame, by: &[&str]) -> PolarsResult<DataFrame> {
    frame.filter(&frame.column("err")?.is_null())?.sort(by.iter().copied(), Default::default())
}

/// The rows that are alike in the columns `key`, group by group in the order of their first rows.
pub(super) fn groups(frame: &DataFrame, key: &[&str]) -> PolarsResult<Vec<DataFrame>> {
    if frame.height() == 0 {
        return Ok(Vec::new());
    }
    frame.partition_by_stable(key.iter().copied(), true)
}

fn number_values(column: &Column) -> PolarsResult<Vec<Option<f64>>> {
    let column = column.cast(&DataType::Float64)?;
    Ok(column.f64()?.iter().collect())
}
