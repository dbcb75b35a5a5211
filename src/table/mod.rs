//! Tables over rows: grouping and statistics over seeds, and output as CSV, Parquet, Markdown and LaTeX.

pub(crate) mod columns;
pub(crate) mod error;
pub(crate) mod grid;
pub(crate) mod groups;
pub(crate) mod latex;
pub(crate) mod regression;
pub(crate) mod summary;
pub(crate) mod write;

pub use columns::Columns;
pub use error::TableError;
pub use grid::{Align, Cell, Column, Table};
pub(crate) use groups::{distinct, groups};
pub use regression::RankCorrelation;
pub(crate) use regression::least_squares;
pub use summary::{Estimate, Spread, plural, plural_range, significant};
