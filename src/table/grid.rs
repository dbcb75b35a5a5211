//! A table of typed cells, independent of where its numbers came from.

use super::digits::{plural, significant};
use super::spread::Spread;

/// How a column's cells are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words: flush left.
    Left,
    /// Numbers: flush right.
    Right,
}

/// One column: its name in a file, its heading for people, its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in a CSV file: `max_abs_logit`.
    pub name: String,
    /// The heading that people read: `L*(ε)`.
    pub heading: String,
    /// The unit, where there is one: `nats`.
    pub unit: Option<String>,
    /// How the cells are set.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn words(name: &str, heading: &str) -> Self {
        Self { name: name.to_owned(), heading: heading.to_owned(), unit: None, align: Align::Left }
    }

    /// A column of numbers.
    pub fn numbers(name: &str, heading: &str, unit: Option<&str>) -> Self {
        Self { unit: unit.map(str::to_owned), align: Align::Right, ..Self::words(name, heading) }
    }

    /// The heading with its unit: `loss (nats)`.
    pub fn heading_with_unit(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.heading),
            None => self.heading.clone(),
        }
    }
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
    /// A measured number, and how many of its digits mean something.
    Number {
        /// The value in full.
        value: f64,
        /// The significant digits to show.
        digits: usize,
    },
    /// A median with the least and the greatest over seeds.
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
    /// A word.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A count.
    pub fn count(count: usize) -> Self {
        i64::try_from(count).map_or(Self::Missing, Self::Integer)
    }

    /// A number shown with three significant digits, or a missing one.
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, |value| Self::Number { value, digits: 3 })
    }

    /// A spread shown with three significant digits, or a missing one.
    pub fn over(spread: Option<Spread>) -> Self {
        spread.map_or(Self::Missing, |spread| Self::Over { spread, digits: 3 })
    }

    /// The cell as people read it; a missing value is an en dash.
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

/// A table: what it shows, its columns, its rows, and what a reader must know of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// A short name, fit for a file: `slopes`.
    pub name: String,
    /// What the table shows.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// What a reader must know: what is left out, what is biased.
    pub notes: Vec<String>,
}

impl Table {
    /// A table with no rows yet.
    pub fn new(name: &str, title: &str, columns: Vec<Column>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row; one shorter than the header is filled up with missing values, one longer is cut.
    pub fn push(&mut self, mut row: Vec<Cell>) {
        row.resize(self.columns.len(), Cell::Missing);
        self.rows.push(row);
    }

    /// Notes how many cells failed with an error and are left out, if any did.
    pub(super) fn note_failed(&mut self, cells: usize) {
        if cells > 0 {
            self.notes.push(format!(
                "Left out: {} that failed, see the column err of the rows.",
                plural(cells, "cell")
            ));
        }
    }

    /// The rows, each as long as the header.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}
