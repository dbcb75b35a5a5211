//! Errors of target matrices and their descriptions.

use std::path::PathBuf;

use super::visibility::Visibility;
use crate::system::NoMemory;
use crate::system::nearest::UnknownName;

/// An error while a target is built, read or written. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A name that is not valid.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// A layout that cannot be parsed.
    #[error(
        "layout {found:?}: {why}; join heads with +, each global or local:W, such as 2xglobal or \
         local:24+global"
    )]
    Layout {
        /// The layout as given.
        found: String,
        /// The part that is wrong, and why.
        why: String,
    },
    /// A parameter with an invalid value, or a missing parameter.
    #[error("family {family}: {why}")]
    Parameter {
        /// The family.
        family: &'static str,
        /// The parameter, its value, and the values it may have.
        why: String,
    },
    /// A family that is never causal, under a causal mask.
    #[error("family {family}: a permuted matrix is not causal; use the bidirectional mask")]
    NotCausal {
        /// The family.
        family: &'static str,
    },
    /// A size whose entries would not fit in memory.
    #[error(
        "n = {n} needs about {entries} nonzero entries (at most {most}); lower n, window, k or m, or raise \
         c"
    )]
    TooLarge {
        /// The requested size.
        n: usize,
        /// The entries that it needs.
        entries: u128,
        /// The limit on entries.
        most: u128,
    },
    /// A target that the machine's memory cannot hold.
    #[error("n = {n} needs at least {room}; lower n, window, k or m, or raise c")]
    NoMemory {
        /// The requested size.
        n: usize,
        /// The memory that is needed and the memory available.
        room: NoMemory,
    },
    /// Sequences that differ in length or mask and cannot be packed together.
    #[error(
        "sequences of {} and {} rows, or with different masks, cannot be packed; make them alike",
        lengths.0,
        lengths.1
    )]
    Unlike {
        /// Rows of the first sequence, and of the first that differs.
        lengths: (usize, usize),
    },
    /// A matrix with no rows.
    #[error("the target has no rows; give at least a 1 × 1 matrix")]
    Empty,
    /// A matrix that is not square.
    #[error(
        "the target is {rows} × {columns}; it must be square, with one row per query and one column per key"
    )]
    NotSquare {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// A probability below zero, or NaN, or infinite.
    #[error(
        "target row {row}, column {column} (from 0) is {value}; every entry must be a finite probability ≥ \
         0, and 0 where it is masked"
    )]
    NotAProbability {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A matrix that looks like logits instead of attention.
    #[error(
        "entries range from {least} to {greatest} and rows do not sum to 1, so these look like logits; \
         give --softmax to apply a softmax to each row"
    )]
    Logits {
        /// The smallest finite entry that the mask allows.
        least: f64,
        /// The largest finite entry that the mask allows.
        greatest: f64,
    },
    /// Rows of padding at an end.
    #[error(
        "rows {first} to {last} (from 0) are all zero, as those of padding are; leave them out with \
         --trim-padding"
    )]
    Padding {
        /// The first row.
        first: usize,
        /// The last row.
        last: usize,
    },
    /// Attention saved while dropout was on.
    #[error(
        "{:.0} % of the allowed entries are 0 and rows sum to {least:.3} to {greatest:.3}, as dropout leaves \
         attention; call model.eval() before saving it",
        100.0 * zeros
    )]
    Dropout {
        /// Share of zeros among the entries that the mask allows.
        zeros: f64,
        /// The smallest row sum.
        least: f64,
        /// The largest row sum.
        greatest: f64,
    },
    /// An entry that cannot be a logit, or a row without a finite logit.
    #[error(
        "logits row {row}, column {column} (from 0) is {value}; each row needs finite values, and −inf \
         only where masked"
    )]
    NoLogits {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A sparse row with two entries for one column.
    #[error("target row {row} lists column {column} (from 0) twice; add the two entries")]
    RepeatedColumn {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
    /// A row that does not sum to one.
    #[error(
        "target row {row} (from 0) sums to {sum}; every row must sum to 1 within 1e-5, so divide it by its \
         sum"
    )]
    RowSum {
        /// Row, from 0.
        row: usize,
        /// The sum found.
        sum: f64,
    },
    /// Weight on a pair that the mask forbids.
    #[error(
        "target row {row}, column {column} (from 0) is {value}, which the {visibility} mask forbids; set \
         it to 0, or use the other mask"
    )]
    OutsideVisibility {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The weight found there.
        value: f64,
        /// The mask.
        visibility: Visibility,
    },
    /// A file that could not be read as a matrix.
    #[error("cannot read the target {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and what to do.
        why: String,
    },
    /// A file that holds a matrix, but not one that can be a target.
    #[error("{}: {problem}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The error in the matrix.
        problem: Box<TargetError>,
    },
    /// A file that could not be written; no partial file is left.
    #[error("cannot write the target {}: {why}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The problem, and what to do.
        why: String,
    },
    /// A matrix that is too large for a spectrum.
    #[error("singular values are limited to n = {most} (n is {n}); take a smaller matrix")]
    SpectrumTooLarge {
        /// The target's size.
        n: usize,
        /// The largest size.
        most: usize,
    },
    /// A decomposition that failed.
    #[error("the singular values of the target could not be computed: {0}")]
    Decomposition(String),
}
