//! A column of rows: name, type, unit, description.

/// The format of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
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
    /// The name in the header.
    pub name: &'static str,
    /// The format of the values.
    pub kind: ColumnKind,
    /// The unit, if the column has one.
    pub unit: Option<&'static str>,
    /// The description.
    pub about: &'static str,
    /// Whether every row of a cell that did not fail has a value in this column.
    pub needed: bool,
}
