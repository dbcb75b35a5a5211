//! A table of typed cells, independent of where its numbers came from.

use crate::table::{Spread, significant};

/// Horizontal alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words: flush left.
    Left,
    /// Numbers: flush right.
    Right,
}

/// One column: its name in a file, its heading for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in a CSV file: `max_abs_logit`.
    pub name: String,
    /// The heading that people read, with its unit: `loss (nats)`.
    pub heading: String,
    /// Alignment of the cells.
    pub align: Align,
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A count.
    Integer(i64),
    /// A number that was set, not measured: shown in full.
    Setting(f64),
    /// A measured number with a number of significant digits.
    Number {
        /// The value in full.
        value: f64,
        /// The significant digits to show.
        digits: usize,
    },
    /// A median with minimum and maximum over seeds.
    Over {
        /// The three values in full.
        spread: Spread,
        /// The significant digits to show.
        digits: usize,
    },
    /// No value.
    Missing,
}

impl Cell {
    /// A spread shown with `digits` significant digits, or a missing value.
    pub fn over(spread: Option<Spread>, digits: usize) -> Self {
        spread.map_or(Self::Missing, |spread| Self::Over { spread, digits })
    }

    /// Formats the cell for people; a missing value is an en dash.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(value) => value.to_string(),
            Self::Setting(value) => value.to_string(),
            Self::Number { value, digits } => significant(*value, *digits),
            Self::Over { spread, digits } => spread.shown(*digits),
            Self::Missing => "–".to_owned(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        i64::try_from(count).map_or(Self::Missing, Self::Integer)
    }
}

/// A measured number, shown with three significant digits.
impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number { value, digits: 3 }
    }
}

/// A spread, shown with three significant digits.
impl From<Spread> for Cell {
    fn from(spread: Spread) -> Self {
        Self::Over { spread, digits: 3 }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// A table: its name and title, its columns, its rows and notes for the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// A short name, usable as a file name: `slopes`.
    pub name: String,
    /// What the table shows.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Notes for the reader: values that are left out or biased.
    pub notes: Vec<String>,
}

impl Table {
    /// Creates a table with `rows` rows and no columns yet.
    pub(crate) fn without_columns(name: &str, title: &str, rows: usize) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            columns: Vec::new(),
            rows: vec![Vec::new(); rows],
            notes: Vec::new(),
        }
    }

    /// Adds a column with one cell per row.
    pub(crate) fn add_column(&mut self, column: Column, cells: Vec<Cell>) {
        self.columns.push(column);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    /// Returns the rows; each has one cell per column.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}
