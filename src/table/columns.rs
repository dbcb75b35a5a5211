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

/// The grouped column `name`: the numbers of each group.
pub(super) fn grouped(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Vec<Option<f64>>>> {
    let column = frame.column(name)?;
    let lists = column.list()?;
    (0..lists.len())
        .map(|at| match lists.get_as_series(at) {
            Some(series) => number_values(&series.into()),
            None => Ok(Vec::new()),
        })
        .collect()
}

fn number_values(column: &Column) -> PolarsResult<Vec<Option<f64>>> {
    let column = column.cast(&DataType::Float64)?;
    Ok(column.f64()?.iter().collect())
}
