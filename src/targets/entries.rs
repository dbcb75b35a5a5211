//! The type of one sparse row of a target.

/// Pairs (column, probability); all other columns have probability 0.
pub(super) type Row = Vec<(usize, f64)>;
