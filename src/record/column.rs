//! A column of rows: name, type, unit, description.

/// How a column's values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words.
    #[default]
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers, in the shortest digits that read back as the same float64.
    Number,
}

/// A column of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name in the header.
    pub name: &'static str,
    /// How its values are written.
    pub kind: ColumnKind,
    /// The unit, where it has one.
    pub unit: Option<&'static str>,
    /// Its description.
    pub about: &'static str,
    /// Whether every row of a cell that did not fail has something in it.
    pub needed: bool,
}
