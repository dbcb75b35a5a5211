//! Converts rows to a polars data frame.

use polars::prelude::{
    Column as FrameColumn, DataFrame, IntoColumn, NamedFrom, PolarsResult, Series,
};

use super::column::{Column, ColumnKind};
use super::line::Line;

/// Converts lines to a data frame of typed columns; an empty field is a null.
///
/// # Errors
/// Two columns of the same name.
pub fn to_frame<L: AsRef<Line>>(columns: &[Column], lines: &[L]) -> PolarsResult<DataFrame> {
    let column = |(at, column): (usize, &Column)| {
        let fields = lines.iter().map(|line| line.as_ref().at(at));
        typed(column, fields)
    };
    DataFrame::new(lines.len(), columns.iter().enumerate().map(column).collect())
}

fn typed<'f>(column: &Column, fields: impl Iterator<Item = &'f str>) -> FrameColumn {
    let name = column.name.into();
    match column.kind {
        ColumnKind::Text => {
            let values: Vec<Option<&str>> = fields.map(|f| (!f.is_empty()).then_some(f)).collect();
            Series::new(name, values)
        }
        ColumnKind::Integer => {
            let values: Vec<Option<i64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
        ColumnKind::Number => {
            let values: Vec<Option<f64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
    }
    .into_column()
}
