//! A row of a target as its entries.

/// Columns with their probabilities; those that are not named have none.
pub(super) type Row = Vec<(usize, f64)>;
